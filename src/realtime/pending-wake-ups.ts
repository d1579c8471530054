/** Merges what is notified in one turn of the event loop: one wake-up for each node, with its highest number. */
export class PendingWakeUps {
  readonly #seqs = new Map<string, string>();
  readonly #send: (nodeId: string, seq: string) => void;
  #scheduled: NodeJS.Immediate | undefined;

  constructor(send: (nodeId: string, seq: string) => void) {
    this.#send = send;
  }

  add(nodeId: string, seq: string): void {
    const pending = this.#seqs.get(nodeId);
    if (pending === undefined || isHigher(seq, pending)) this.#seqs.set(nodeId, seq);
    this.#scheduled ??= setImmediate(() => this.#flush());
  }

  clear(): void {
    clearImmediate(this.#scheduled);
    this.#seqs.clear();
  }

  #flush(): void {
    this.#scheduled = undefined;
    const pending = [...this.#seqs];
    this.#seqs.clear();
    for (const [nodeId, seq] of pending) this.#send(nodeId, seq);
  }
}

// Decimal strings without leading zeros.
function isHigher(a: string, b: string): boolean {
  return a.length === b.length ? a > b : a.length > b.length;
}

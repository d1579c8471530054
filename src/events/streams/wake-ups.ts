/** Called when the log of a tenant has grown to `seq`, a decimal string. Must not throw. */
export type WakeUpListener = (nodeId: string, seq: string) => void;

/**
 * Notifies every process that a tenant's event log has grown. A hint: it may be lost, repeated, late or merged into a
 * later one, and whoever needs the events reads the log.
 */
export interface WakeUps {
  /** Call it after the commit. Never throws, never waits. */
  notify(nodeId: string, seq: string): void;
  /** Calls back for the notifications of all processes, this one included. Returns the function that ends it. */
  listen(listener: WakeUpListener): () => void;
  stop(): Promise<void>;
}

/**
 * Wake-ups within a single process. The notifications of one tick of the event loop become one wake-up for each tenant,
 * with its highest number; each is handed to `send` as well.
 */
export class MemoryWakeUps implements WakeUps {
  readonly #listeners = new Set<WakeUpListener>();
  readonly #send: WakeUpListener;
  readonly #pending = new Map<string, string>();
  #scheduled: NodeJS.Immediate | undefined;

  constructor(send: WakeUpListener = () => {}) {
    this.#send = send;
  }

  notify(nodeId: string, seq: string): void {
    const pending = this.#pending.get(nodeId);
    if (pending === undefined || isHigher(seq, pending)) this.#pending.set(nodeId, seq);
    this.#scheduled ??= setImmediate(() => this.#flush());
  }

  listen(listener: WakeUpListener): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Calls those who listen, at once. */
  wake(nodeId: string, seq: string): void {
    for (const listener of this.#listeners) listener(nodeId, seq);
  }

  async stop(): Promise<void> {
    clearImmediate(this.#scheduled);
    this.#pending.clear();
    this.#listeners.clear();
  }

  #flush(): void {
    this.#scheduled = undefined;
    const pending = [...this.#pending];
    this.#pending.clear();
    for (const [nodeId, seq] of pending) {
      this.#send(nodeId, seq);
      this.wake(nodeId, seq);
    }
  }
}

// Decimal strings without leading zeros.
function isHigher(a: string, b: string): boolean {
  return a.length === b.length ? a > b : a.length > b.length;
}

/** Called when the event log of a tenant has grown to sequence number `seq`. Must not throw. */
export type WakeUpListener = (nodeId: string, seq: bigint) => void;

/**
 * Sends wake-ups to every process when a tenant's event log has grown. A wake-up is only a hint: it may be lost,
 * repeated, late or merged into a later one, and carries no event.
 */
export interface WakeUps {
  /** Sends a wake-up. Call it after the commit; it neither throws nor waits. */
  notify(nodeId: string, seq: bigint): void;
  /** Calls `listener` for the wake-ups of all processes, including this one. Returns a function that stops it. */
  listen(listener: WakeUpListener): () => void;
  stop(): Promise<void>;
}

/**
 * Wake-ups within one process. All of one tick of the event loop are coalesced into one for each tenant, with its
 * highest sequence number, which is also passed to `send`.
 */
export class MemoryWakeUps implements WakeUps {
  readonly #listeners = new Set<WakeUpListener>();
  readonly #send: WakeUpListener;
  readonly #pending = new Map<string, bigint>();
  #scheduled: NodeJS.Immediate | undefined;

  constructor(send: WakeUpListener = () => {}) {
    this.#send = send;
  }

  notify(nodeId: string, seq: bigint): void {
    const pending = this.#pending.get(nodeId);
    if (pending === undefined || seq > pending) this.#pending.set(nodeId, seq);
    this.#scheduled ??= setImmediate(() => this.#flush());
  }

  listen(listener: WakeUpListener): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Calls all listeners at once. */
  wake(nodeId: string, seq: bigint): void {
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

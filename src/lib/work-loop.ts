import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Calls a function repeatedly to work through a queue in the database, until stopped. After a failure it continues with
 * a backoff. Services that work through a queue extend it.
 */
export class WorkLoop {
  readonly #options;
  #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  /** Resolves when the pause after the running iteration ends. */
  #woken = Promise.withResolvers<void>();
  #begunTick = performance.now();

  constructor(options: {
    /** Does part of the work. Returns true if there may be more to do at once. */
    iterate(signal: AbortSignal): Promise<boolean>;
    /** Called with the first failure after a successful iteration, and not for those that follow it directly. */
    onFailure?(error: unknown): void;
    /**
     * How long to wait for `notify` when there is nothing to do, in milliseconds; work from other processes is found by
     * then.
     */
    pollMs: number;
  }) {
    this.#options = options;
  }

  /** How long ago the last iteration began, in ms: little more than `pollMs`, unless one hangs. */
  get ageMs(): number {
    return performance.now() - this.#begunTick;
  }

  /** Starts working in the background. */
  start(): void {
    this.#stopping = new AbortController();
    this.#running = this.run(this.#stopping.signal);
  }

  /** Starts the next iteration at once, because there is something to do. */
  notify(): void {
    this.#woken.resolve();
  }

  /** Aborts the signal of the running iteration and resolves when it has ended. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /** Works until `signal` is aborted; resolves when the running iteration has ended. */
  async run(signal: AbortSignal): Promise<void> {
    const { iterate, onFailure, pollMs } = this.#options;
    signal.addEventListener('abort', () => this.notify());
    for (let failures = 0; !signal.aborted; ) {
      this.#woken = Promise.withResolvers();
      this.#begunTick = performance.now();
      try {
        const hasMore = await iterate(signal);
        failures = 0;
        if (hasMore) continue;
        const timer = setTimeout(this.#woken.resolve, pollMs);
        await this.#woken.promise;
        clearTimeout(timer);
      } catch (error) {
        failures += 1;
        if (failures === 1) onFailure?.(error);
        await pause(backoffMs(failures), signal);
      }
    }
  }
}

/**
 * Returns the pause after so many consecutive failures, in milliseconds: `minMs` (100) after the first, doubled by each
 * further one, at most `maxMs` (5,000).
 */
export function backoffMs(failures: number, { minMs = 100, maxMs = 5_000 } = {}): number {
  return Math.min(minMs * 2 ** Math.max(0, failures - 1), maxMs);
}

/** Resolves after `ms` milliseconds, or at once when `signal` aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}

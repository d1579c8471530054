import { setImmediate } from 'node:timers/promises';
import { backoffMs, pause } from './backoff.ts';
import type { EmbeddedStore, ReadPosition } from './embedded-store.ts';
import type { BatchHandler, BusLog } from './event-bus.ts';

const POLL_MS = 1_000;

export interface EmbeddedReaderOptions {
  store: EmbeddedStore;
  at: ReadPosition;
  handle: BatchHandler;
  log: BusLog;
  /** Resolves when the member of the group before this one has ended: a topic has one reader in a group at a time. */
  turn: Promise<void>;
}

/**
 * Reads one topic for one group: a batch, its handler, the offset, the next. A failed batch is read again after a
 * backoff. It holds one batch in memory however far it lags.
 */
export class EmbeddedReader {
  readonly #options: EmbeddedReaderOptions;
  readonly #stopping = new AbortController();
  #wake: () => void = () => undefined;
  #hasNews = true;
  /** Settles, never rejecting, when the reader has ended. */
  readonly ended: Promise<void>;

  constructor(options: EmbeddedReaderOptions) {
    this.#options = options;
    this.ended = this.#run();
  }

  /** There may be messages: read now rather than at the next poll. */
  notify(): void {
    this.#hasNews = true;
    this.#wake();
  }

  /** Resolves when the running handler has ended and its offset is kept. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wake();
    await this.ended;
  }

  async #run(): Promise<void> {
    await Promise.race([this.#options.turn, this.#aborted()]);
    let failures = 0;
    while (!this.#stopping.signal.aborted) {
      try {
        this.#hasNews = false;
        const isIdle = !(await this.#step());
        failures = 0;
        if (isIdle) await this.#news();
        // The embedded database answers within the turn of the event loop: many batches would keep all others waiting.
        else await setImmediate();
      } catch (error) {
        failures += 1;
        this.#options.log('warn', 'a batch of events failed and will be given again', {
          ...this.#options.at,
          failures,
          error,
        });
        await pause(backoffMs(failures), this.#stopping.signal);
      }
    }
  }

  async #step(): Promise<boolean> {
    const { store, at, handle } = this.#options;
    const batch = await store.read(at);
    const last = batch.at(-1);
    if (!last || this.#stopping.signal.aborted) return false;
    await handle(batch);
    await store.commit(at, last.offset);
    return true;
  }

  async #news(): Promise<void> {
    if (this.#hasNews || this.#stopping.signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = setTimeout(resolve, POLL_MS);
    await promise;
    clearTimeout(timer);
  }

  #aborted(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#stopping.signal.addEventListener('abort', () => resolve(), { once: true });
    return promise;
  }
}

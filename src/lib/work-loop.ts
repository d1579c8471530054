import { backoffMs, pause } from './backoff.ts';

interface WorkLoopOptions {
  /** Does some of the work. Returns whether there may be more to do at once. */
  iterate(signal: AbortSignal): Promise<boolean>;
  /** Called with the first failure after an iteration that succeeded. */
  onFailure?(error: unknown): void;
  /** How long to wait for a notice where there is nothing to do: work of other processes is seen by then. */
  pollMs: number;
}

/** Works through a queue in the database, one iteration after another; after failures it backs off and goes on. */
export class WorkLoop {
  readonly #options: WorkLoopOptions;
  #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #wake = () => {};
  #isNotified = false;

  constructor(options: WorkLoopOptions) {
    this.#options = options;
  }

  /** Works from now on. */
  start(): void {
    this.#stopping = new AbortController();
    this.#running = this.run(this.#stopping.signal);
  }

  /** Begins the next iteration at once: there is something to do. */
  notify(): void {
    this.#isNotified = true;
    this.#wake();
  }

  /** Ends after the iteration under way, whose signal is aborted. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /** Works until `signal` is aborted. Resolves when the iteration under way has ended. */
  async run(signal: AbortSignal): Promise<void> {
    const { iterate, onFailure } = this.#options;
    for (let failures = 0; !signal.aborted; ) {
      this.#isNotified = false;
      try {
        const hasMore = await iterate(signal);
        failures = 0;
        if (!hasMore) await this.#nextNotice(signal);
      } catch (error) {
        failures += 1;
        if (failures === 1) onFailure?.(error);
        await pause(backoffMs(failures), signal);
      }
    }
  }

  async #nextNotice(signal: AbortSignal): Promise<void> {
    if (this.#isNotified || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    this.#wake = wake;
    signal.addEventListener('abort', wake);
    const timer = setTimeout(wake, this.#options.pollMs);
    await promise;
    clearTimeout(timer);
    signal.removeEventListener('abort', wake);
  }
}

import { setTimeout as delay } from 'node:timers/promises';

interface WorkLoopParts {
  /** Does some of the work; says whether there may be more to do at once. */
  turn(signal: AbortSignal): Promise<boolean>;
  /** Told of the first failure after a turn that went well. */
  onFailure(error: unknown): void;
  /** How long it rests after so many failures in a row. */
  restMs(failures: number): number;
  /** How long it waits for a notice where there is nothing to do: work of other processes is seen by then. */
  pollMs: number;
}

/** Takes turns at a queue in the database, one after another; after a failure it rests and goes on. */
export class WorkLoop {
  readonly #parts: WorkLoopParts;
  #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #wake: (() => void) | undefined;
  #isNotified = false;

  constructor(parts: WorkLoopParts) {
    this.#parts = parts;
  }

  /** Works from now on. */
  start(): void {
    this.#stopping = new AbortController();
    this.#running = this.#run(this.#stopping.signal);
  }

  /** There is something to do: sooner than the next look. */
  notify(): void {
    this.#isNotified = true;
    this.#wake?.();
  }

  /** Ends after the turn that is under way, whose signal is aborted. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wake?.();
    await this.#running;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { turn, onFailure, restMs } = this.#parts;
    for (let failures = 0; !signal.aborted; ) {
      this.#isNotified = false;
      try {
        const hasMore = await turn(signal);
        failures = 0;
        if (!hasMore) await this.#nextNotice(signal);
      } catch (error) {
        failures += 1;
        if (failures === 1) onFailure(error);
        await delay(restMs(failures), undefined, { signal }).catch(() => undefined);
      }
    }
  }

  async #nextNotice(signal: AbortSignal): Promise<void> {
    if (this.#isNotified || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = setTimeout(resolve, this.#parts.pollMs);
    await promise;
    clearTimeout(timer);
    this.#wake = undefined;
  }
}

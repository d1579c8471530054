interface HousekeepingParts {
  /** What is done, by what it is called in a log line. */
  tasks: Readonly<Record<string, () => Promise<void>>>;
  onError(error: unknown, task: string): void;
}

const FIRST_AFTER_MS = 60_000;
const EVERY_MS = 3_600_000;

/** Does what has time: one task after another, a minute after the start and then once an hour. */
export class Housekeeping {
  readonly #parts: HousekeepingParts;
  #timer: NodeJS.Timeout | undefined;
  #working: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(parts: HousekeepingParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#workIn(FIRST_AFTER_MS);
  }

  /** Lets the task that runs come to its end. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#working;
  }

  /** Does every task once, also after one that fails. */
  async work(): Promise<void> {
    for (const [name, task] of Object.entries(this.#parts.tasks)) {
      if (this.#isStopped) return;
      await task().catch((error: unknown) => this.#parts.onError(error, name));
    }
  }

  #workIn(delayMs: number): void {
    this.#timer = setTimeout(() => {
      this.#working = this.work().then(() => {
        if (!this.#isStopped) this.#workIn(EVERY_MS);
      });
    }, delayMs).unref();
  }
}

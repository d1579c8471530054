/**
 * Repeats one task, one run at a time. Calls during a run share the next one, which begins after it, so that each call's
 * run has seen everything before the call.
 */
export class SharedRuns {
  readonly #task: () => Promise<void>;
  /** The last run; it never rejects. */
  #latest: Promise<void> = Promise.resolve();
  /** The next run, if it has not begun. */
  #next: Promise<void> | undefined;

  constructor(task: () => Promise<void>) {
    this.#task = task;
  }

  /**
   * Runs the task after this call.
   * @throws what the task throws.
   */
  run(): Promise<void> {
    if (this.#next) return this.#next;
    const next = this.#latest.then(() => {
      this.#next = undefined;
      return this.#task();
    });
    this.#latest = next.catch(() => undefined);
    this.#next = next;
    return next;
  }

  /** Resolves when no run is left. Never rejects. */
  ended(): Promise<void> {
    return this.#latest;
  }
}

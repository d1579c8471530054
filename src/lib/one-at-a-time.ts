interface OneAtATimeLimits {
  /** How many may wait under one key. */
  waiting: number;
  /** What one more is sent away with. */
  refusal(): Error;
}

/** Work under one key goes one after another; work under different keys goes on beside each other. */
export class OneAtATime {
  readonly #limits: OneAtATimeLimits;
  readonly #queues = new Map<string, (() => void)[]>();

  constructor(limits: OneAtATimeLimits) {
    this.#limits = limits;
  }

  /**
   * Runs `work` once all that came before it under this key has ended, well or not.
   * @throws what `refusal` gives, where as many are waiting as may.
   */
  async run<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const waiting = this.#queues.get(key);
    if (!waiting) this.#queues.set(key, []);
    else if (waiting.length >= this.#limits.waiting) throw this.#limits.refusal();
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#queues.get(key)?.shift();
      if (next) next();
      else this.#queues.delete(key);
    }
  }
}

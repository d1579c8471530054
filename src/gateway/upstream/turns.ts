interface TurnsLimits {
  /** How many may go on at once. */
  atOnce: number;
  /** How many may wait. */
  waiting: number;
}

/** One that waits for its turn. */
export interface Waiter {
  /** Its turn has come; it ends by `leave`. */
  begin(): void;
  /** Its turn will never come. */
  dismiss(): void;
}

/** Bounded concurrency with a bounded queue, first come, first served. */
export class Turns {
  readonly #limits: TurnsLimits;
  readonly #onIdle: () => void;
  readonly #waiting = new Set<Waiter>();
  #going = 0;

  /** `onIdle` is called when the last turn has ended. */
  constructor(limits: TurnsLimits, onIdle = () => {}) {
    this.#limits = limits;
    this.#onIdle = onIdle;
  }

  /** How many go on. */
  get going(): number {
    return this.#going;
  }

  /** How many wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Begins at once, or waits; false when the queue is full. */
  enter(waiter: Waiter): boolean {
    if (this.#going < this.#limits.atOnce) {
      this.#going += 1;
      waiter.begin();
      return true;
    }
    if (this.#waiting.size >= this.#limits.waiting) return false;
    this.#waiting.add(waiter);
    return true;
  }

  /** Gives a place in the queue up. */
  cancel(waiter: Waiter): void {
    this.#waiting.delete(waiter);
  }

  /** Ends a turn: the first one that waits begins. */
  leave(): void {
    for (const next of this.#waiting) {
      this.#waiting.delete(next);
      next.begin();
      return;
    }
    this.#going -= 1;
    if (this.#going === 0) this.#onIdle();
  }

  /** Sends everybody away who waits. */
  dismissAll(): void {
    const all = [...this.#waiting];
    this.#waiting.clear();
    for (const waiter of all) waiter.dismiss();
  }
}

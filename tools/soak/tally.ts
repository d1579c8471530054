const BUCKETS_PER_DOUBLING = 8;

/** How long answers took: a count for each twelfth part more, so that memory does not grow with them. */
export class Durations {
  readonly #counts: number[] = [];
  #total = 0;

  add(ms: number): void {
    const bucket = Math.max(0, Math.ceil(Math.log2(Math.max(ms, 0.01) * 100) * BUCKETS_PER_DOUBLING));
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#total += 1;
  }

  /** The milliseconds that a fraction of them took at most, to a tenth; 0 where there are none. */
  at(fraction: number): number {
    let left = Math.ceil(this.#total * fraction);
    for (const [bucket, count = 0] of this.#counts.entries()) {
      left -= count;
      if (left <= 0 && this.#total > 0) return 2 ** (bucket / BUCKETS_PER_DOUBLING) / 100;
    }
    return 0;
  }
}

/** What was asked of one kind, and what came of it. */
export interface KindTally {
  answered: number;
  unexpected: number;
  /** What the first unexpected answer was. */
  example: string | undefined;
  durations: Durations;
}

/** What was asked and answered so far, by kind. */
export class Tally {
  readonly kinds = new Map<string, KindTally>();

  /** One answer; `fault` says what was not as expected. */
  answered(kind: string, ms: number, fault?: string): void {
    const tally = this.#of(kind);
    tally.answered += 1;
    tally.durations.add(ms);
    if (fault !== undefined) this.#fault(tally, fault);
  }

  /** What has no answer. */
  failed(kind: string, fault: string): void {
    this.#fault(this.#of(kind), fault);
  }

  get total(): { answered: number; unexpected: number } {
    const all = [...this.kinds.values()];
    return {
      answered: all.reduce((sum, { answered }) => sum + answered, 0),
      unexpected: all.reduce((sum, { unexpected }) => sum + unexpected, 0),
    };
  }

  #of(kind: string): KindTally {
    const tally = this.kinds.get(kind) ?? {
      answered: 0,
      unexpected: 0,
      example: undefined,
      durations: new Durations(),
    };
    this.kinds.set(kind, tally);
    return tally;
  }

  #fault(tally: KindTally, fault: string): void {
    tally.unexpected += 1;
    tally.example ??= fault;
  }
}

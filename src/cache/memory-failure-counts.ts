import { type CountedFailure, FAILURE_WINDOW_MS, secondsLeft } from './failure-counts.rules.ts';

const MAX_KEYS = 50_000;

interface Failures {
  startedAtMs: number;
  count: number;
}

/** Failures as one process has counted them; of more than 50,000 keys the oldest is forgotten. */
export class MemoryFailureCounts {
  /** In the order in which their windows began. */
  readonly #failures = new Map<string, Failures>();
  readonly #maxKeys: number;

  constructor(maxKeys = MAX_KEYS) {
    this.#maxKeys = maxKeys;
  }

  count(key: string, nowMs: number): CountedFailure {
    const known = this.#failures.get(key);
    if (known && nowMs < known.startedAtMs + FAILURE_WINDOW_MS) {
      known.count += 1;
      return { count: known.count, resetInSeconds: secondsLeft(known.startedAtMs, nowMs) };
    }
    this.#failures.delete(key);
    this.#makeRoom(nowMs);
    this.#failures.set(key, { startedAtMs: nowMs, count: 1 });
    return { count: 1, resetInSeconds: secondsLeft(nowMs, nowMs) };
  }

  #makeRoom(nowMs: number): void {
    for (const [key, { startedAtMs }] of this.#failures) {
      if (this.#failures.size < this.#maxKeys && nowMs < startedAtMs + FAILURE_WINDOW_MS) return;
      this.#failures.delete(key);
    }
  }
}

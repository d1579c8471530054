import { withTimeout } from './with-timeout.ts';

interface MemoizedReadOptions {
  /** How long a value is used. */
  maxAgeMs: number;
  /** How long a caller waits at most. */
  deadlineMs: number;
}

/**
 * Memoizes an expensive read: callers at the same time share one read, and its value is used for `maxAgeMs`. Where it
 * cannot be read in time there is no value, rather than an old one.
 */
export class MemoizedRead<Value> {
  readonly #read: () => Promise<Value>;
  readonly #options: MemoizedReadOptions;
  #reading: Promise<Value | undefined> | undefined;
  #value: Value | undefined;
  #readTick = Number.NEGATIVE_INFINITY;

  constructor(read: () => Promise<Value>, options: MemoizedReadOptions) {
    this.#read = read;
    this.#options = options;
  }

  /** Returns the value, or undefined where it could not be read within `deadlineMs`. Never rejects. */
  async get(): Promise<Value | undefined> {
    const { maxAgeMs, deadlineMs } = this.#options;
    if (performance.now() - this.#readTick < maxAgeMs) return this.#value;
    this.#reading ??= this.#renew();
    return withTimeout(this.#reading, deadlineMs).catch(() => undefined);
  }

  async #renew(): Promise<Value | undefined> {
    try {
      this.#value = await this.#read();
      this.#readTick = performance.now();
      return this.#value;
    } catch {
      return undefined;
    } finally {
      this.#reading = undefined;
    }
  }
}

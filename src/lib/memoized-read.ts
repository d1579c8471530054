import { withTimeout } from './with-timeout.ts';

/**
 * Memoizes an expensive read: concurrent callers share one, and its value is used for `maxAgeMs`. If it fails or takes
 * too long, there is no value, rather than an outdated one.
 */
export class MemoizedRead<Value> {
  readonly #read: () => Promise<Value>;
  readonly #options;
  #reading: Promise<Value | undefined> | undefined;
  #value: Value | undefined;
  #readTick = Number.NEGATIVE_INFINITY;

  constructor(
    read: () => Promise<Value>,
    options: {
      /** How long a value is used after it was read, in milliseconds. */
      maxAgeMs: number;
      /** How long `get` waits for a read, in milliseconds. */
      deadlineMs: number;
    },
  ) {
    this.#read = read;
    this.#options = options;
  }

  /** Returns the value; undefined if it could not be read within `deadlineMs`. Never rejects. */
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

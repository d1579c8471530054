interface SnapshotOptions {
  /** How long what was read is good. */
  maxAgeMs: number;
  /** How long whoever asks waits. */
  deadlineMs: number;
}

/**
 * What is read for many and costs something: once for all who ask at once, and not again before its age. Where it cannot be
 * read in time there is nothing, rather than something old.
 */
export class Snapshot<Value> {
  readonly #read: () => Promise<Value>;
  readonly #options: SnapshotOptions;
  #reading: Promise<Value | undefined> | undefined;
  #value: Value | undefined;
  #readTick = Number.NEGATIVE_INFINITY;

  constructor(read: () => Promise<Value>, options: SnapshotOptions) {
    this.#read = read;
    this.#options = options;
  }

  /** Never rejects. */
  async get(): Promise<Value | undefined> {
    const { maxAgeMs, deadlineMs } = this.#options;
    if (performance.now() - this.#readTick < maxAgeMs) return this.#value;
    const { promise: late, resolve } = Promise.withResolvers<undefined>();
    const timer = setTimeout(() => resolve(undefined), deadlineMs);
    this.#reading ??= this.#renew();
    const value = await Promise.race([this.#reading, late]);
    clearTimeout(timer);
    return value;
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

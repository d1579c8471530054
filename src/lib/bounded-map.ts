/** A map of limited size: the least recently used entries beyond its maximum are dropped. */
export class BoundedMap<Key, Value> {
  readonly #max: number;
  readonly #options;
  /** The entries, the least recently used first. */
  readonly #entries = new Map<Key, Value>();
  #weight = 0;

  constructor(
    max: number,
    options: {
      /** Returns how much of the maximum an entry takes; 1 if not set. */
      weightOf?(value: Value, key: Key): number;
      /** Called with an entry that was dropped to make room for others. */
      onDropped?(key: Key, value: Value): void;
    } = {},
  ) {
    this.#max = max;
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: Key): Value | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined && this.#entries.delete(key)) this.#entries.set(key, value);
    return value;
  }

  set(key: Key, value: Value): void {
    this.delete(key);
    this.#entries.set(key, value);
    this.#weight += this.#weightOf(value, key);
    for (const [oldest, dropped] of this.#entries) {
      if (this.#weight <= this.#max) return;
      this.delete(oldest);
      this.#options.onDropped?.(oldest, dropped);
    }
  }

  /** Returns whether there was an entry with this key. */
  delete(key: Key): boolean {
    const value = this.#entries.get(key);
    if (value !== undefined) this.#weight -= this.#weightOf(value, key);
    return this.#entries.delete(key);
  }

  #weightOf(value: Value, key: Key): number {
    return this.#options.weightOf?.(value, key) ?? 1;
  }
}

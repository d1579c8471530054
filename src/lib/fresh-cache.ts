interface Entry<Value> {
  value: Value;
  loadedAtMs: number;
}

interface FreshCacheOptions<Value> {
  load(key: string): Promise<Value>;
  /** How long a value may be used after its load began. */
  freshMs: number;
  maxEntries: number;
}

/**
 * Remembers what was loaded for a short time. A key in steady use is loaded anew before its value is stale, so that
 * nobody waits for it; whoever asks while a load is under way shares it.
 */
export class FreshCache<Value> {
  readonly #options: FreshCacheOptions<Value>;
  readonly #entries = new Map<string, Entry<Value>>();
  readonly #loads = new Map<string, Promise<Value>>();

  constructor(options: FreshCacheOptions<Value>) {
    this.#options = options;
  }

  /** The value, at once where it is fresh. Rejects where it cannot be loaded. */
  get(key: string): Value | Promise<Value> {
    const entry = this.#entries.get(key);
    if (!entry) return this.#load(key);
    const age = performance.now() - entry.loadedAtMs;
    if (age >= this.#options.freshMs) return this.#load(key);
    if (age >= this.#options.freshMs / 2 && !this.#loads.has(key)) this.#load(key).catch(() => undefined);
    return entry.value;
  }

  /** Forgets a value, also one that is being loaded: it may have been read before the change. */
  forget(key: string): void {
    this.#entries.delete(key);
    this.#loads.delete(key);
  }

  #load(key: string): Promise<Value> {
    const before = this.#loads.get(key);
    if (before) return before;
    const loadedAtMs = performance.now();
    const loading: Promise<Value> = this.#options.load(key).then(
      (value) => {
        if (this.#loads.get(key) === loading) {
          this.#loads.delete(key);
          this.#remember(key, { value, loadedAtMs });
        }
        return value;
      },
      (error: unknown) => {
        if (this.#loads.get(key) === loading) this.#loads.delete(key);
        throw error;
      },
    );
    this.#loads.set(key, loading);
    return loading;
  }

  #remember(key: string, entry: Entry<Value>): void {
    this.#entries.delete(key);
    if (this.#entries.size >= this.#options.maxEntries) {
      const oldest = this.#entries.keys().next();
      if (!oldest.done) this.#entries.delete(oldest.value);
    }
    this.#entries.set(key, entry);
  }
}

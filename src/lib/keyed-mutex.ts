import { Semaphore } from './semaphore.ts';

interface KeyedMutexOptions {
  /** How many callers may wait for one key. */
  maxWaiting: number;
  /** Makes the error that `run` rejects with when too many callers wait. */
  refusal(): Error;
  /** Returns the signal that ends the wait of the current work. */
  signalOf?: () => AbortSignal | undefined;
}

/**
 * A mutex for each key: work with the same key runs one after another, first come, first served; work with different
 * keys runs concurrently. Without options, any number of callers may wait.
 */
export class KeyedMutex<Key = string> {
  readonly #options: KeyedMutexOptions | undefined;
  /** The mutexes of the keys that are locked. */
  readonly #locks = new Map<Key, Semaphore>();

  constructor(options?: KeyedMutexOptions) {
    this.#options = options;
  }

  /**
   * Runs `work` once all earlier work with the same key has ended, whether or not it succeeded.
   * @throws what `refusal` returns, when too many callers wait; the reason of `signal`, when it is aborted before
   * `work` begins.
   */
  async run<Result>(key: Key, work: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    const lock = this.#locks.getOrInsertComputed(key, () => new Semaphore({ ...this.#options, permits: 1 }));
    if (this.#options && lock.waiting() >= this.#options.maxWaiting) throw this.#options.refusal();
    try {
      return await lock.run(undefined, work, signal);
    } finally {
      if (lock.held() === 0 && this.#locks.get(key) === lock) this.#locks.delete(key);
    }
  }
}

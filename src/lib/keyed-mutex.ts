import { Semaphore } from './semaphore.ts';

interface KeyedMutexOptions {
  /** How much work may wait under one key; as much as comes, without it. */
  maxWaiting: number;
  /** Makes the error that work beyond that is refused with. */
  refusal(): Error;
}

/** Runs work of one key one after another, first come, first served; work of different keys runs concurrently. */
export class KeyedMutex<Key = string> {
  readonly #options: KeyedMutexOptions | undefined;
  /** The keys that are locked. */
  readonly #locks = new Map<Key, Semaphore>();

  constructor(options?: KeyedMutexOptions) {
    this.#options = options;
  }

  /**
   * Runs `work` once all earlier work of the key has ended, well or not.
   * @throws what `refusal` makes, where too much work waits; the reason of `signal`, where it is aborted before `work` begins.
   */
  async run<Result>(key: Key, work: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    const lock = this.#locks.get(key) ?? new Semaphore({ permits: 1 });
    if (this.#options && lock.waiting() >= this.#options.maxWaiting) throw this.#options.refusal();
    this.#locks.set(key, lock);
    try {
      return await lock.run(undefined, work, signal);
    } finally {
      if (lock.held() === 0 && this.#locks.get(key) === lock) this.#locks.delete(key);
    }
  }
}

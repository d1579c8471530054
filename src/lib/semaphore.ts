/** A waiter for a permit that is notified by callbacks. */
export interface Waiter {
  /** Called once with a permit, which must be given back with `release`. */
  onPermit(): void;
  /** Called instead if the waiter is refused. */
  onRefused(): void;
}

/** The key that stands for work without a key. */
const SYSTEM = '';
/** The key of work of callers who are not known yet: it may hold reserved permits, and is limited and refused as others are. */
export const UNIDENTIFIED = 'unidentified';

/**
 * A fair semaphore: permits go round-robin to keys (tenants or callers), and first come, first served within a key.
 * The queue is bounded.
 *
 * A key holds at most its share of the permits, half of them by default. While another key waits, it also has at most half of the
 * queue: its newest waiters beyond that are refused. When several keys fill the queue, the one with the most waiters
 * loses its newest. Work without a key is the product's own: only the number of permits limits it, and it is never
 * refused.
 */
export class Semaphore {
  readonly #options;
  /** The waiters of each key; keys and waiters are in the order in which they are served. */
  readonly #queues = new Map<string, Set<Waiter>>();
  readonly #heldByKey = new Map<string, number>();
  #held = 0;
  #waiting = 0;

  constructor(options: {
    /** The number of permits. */
    permits: number;
    /**
     * How many permits a key may hold; half of them, but at least one, if not set. `free`: as many as are free, so that
     * the first key gets half of them, the next one half of the rest, and no few keys hold all of them.
     */
    share?: number | 'free';
    /** How many of the permits are reserved for work without a key; 0 if not set. */
    reserved?: number;
    /**
     * Whether a key may hold more than half of the permits while no other key waits; for work so short that others hardly
     * wait.
     */
    mayBorrow?: boolean;
    /** How many waiters with a key the queue holds; 0 if not set. */
    maxWaiting?: number;
    /** How long work with a key waits for a permit at most, in milliseconds; without a limit if not set. */
    waitMs?: number;
    /** Makes the error that `run` rejects with when work is refused. */
    refusal?(): Error;
    /** Returns the signal that ends the wait of the current work. It is asked for only by work that must wait. */
    signalOf?(): AbortSignal | undefined;
  }) {
    this.#options = options;
  }

  /** Returns the number of permits held: in total, or by one key (`''` for work without a key). */
  held(key?: string): number {
    return key === undefined ? this.#held : (this.#heldByKey.get(key) ?? 0);
  }

  /** Returns the number of waiters: in total, or with one key (`''` for work without a key). */
  waiting(key?: string): number {
    return key === undefined ? this.#waiting : (this.#queues.get(key)?.size ?? 0);
  }

  /**
   * Runs `work` while holding a permit for `key` (undefined for work without a key).
   * @throws what `refusal` returns, when the queue is full or `waitMs` have passed; the reason of `signal`, when it is
   * aborted before a permit is granted.
   */
  async run<Result>(key: string | undefined, work: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    const holder = key ?? SYSTEM;
    signal?.throwIfAborted();
    if (this.#mayHold(holder)) this.#grant(holder);
    else await this.#wait(holder, signal);
    try {
      return await work();
    } finally {
      this.release(holder);
    }
  }

  /** Grants the waiter a permit for `key`, now or later. Returns false if the queue is full. */
  acquire(key: string, waiter: Waiter): boolean {
    if (this.#mayHold(key)) {
      this.#grant(key);
      waiter.onPermit();
      return true;
    }
    if (key !== SYSTEM && !this.#hasCapacity(key)) return false;
    this.#queues.getOrInsertComputed(key, () => new Set()).add(waiter);
    this.#waiting += 1;
    return true;
  }

  /** Removes a waiter from the queue without calling it. Returns false if it was not waiting. */
  cancel(key: string, waiter: Waiter): boolean {
    const queue = this.#queues.get(key);
    if (!queue?.delete(waiter)) return false;
    this.#waiting -= 1;
    if (queue.size === 0) this.#queues.delete(key);
    // Other keys may hold more permits now that this one does not wait.
    this.#serve();
    return true;
  }

  /** Releases a permit of `key`. */
  release(key: string): void {
    this.#held -= 1;
    const held = this.held(key) - 1;
    if (held === 0) this.#heldByKey.delete(key);
    else this.#heldByKey.set(key, held);
    this.#serve();
  }

  /** Refuses all waiters. */
  refuseAll(): void {
    const waiters = [...this.#queues.values()].flatMap((queue) => [...queue]);
    this.#queues.clear();
    this.#waiting = 0;
    for (const waiter of waiters) waiter.onRefused();
  }

  #mayHold(key: string): boolean {
    const { permits, reserved = 0, mayBorrow, share = Math.max(1, Math.floor(permits / 2)) } = this.#options;
    if (this.#held >= permits) return false;
    if (key === SYSTEM) return true;
    const isReserved = this.#held - this.held(SYSTEM) - this.held(UNIDENTIFIED) >= permits - reserved;
    if (isReserved && key !== UNIDENTIFIED) return false;
    const most = share === 'free' ? Math.max(1, permits - this.#held) : share;
    return this.held(key) < most || (mayBorrow === true && this.#otherKeys(key).length === 0);
  }

  #grant(key: string): void {
    this.#held += 1;
    this.#heldByKey.set(key, this.held(key) + 1);
  }

  async #wait(key: string, signal: AbortSignal | undefined): Promise<void> {
    const { waitMs, refusal = () => new Error('the semaphore rejected the task') } = this.#options;
    const ends = [signal, this.#options.signalOf?.()].filter((candidate) => candidate !== undefined);
    for (const end of ends) end.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { onPermit: resolve, onRefused: () => reject(refusal()) };
    if (!this.acquire(key, waiter)) throw refusal();
    const isTimed = key !== SYSTEM && waitMs !== undefined;
    const timer = isTimed ? setTimeout(() => this.#refuse(key, waiter), waitMs) : undefined;
    const abort = ({ target }: Event) => {
      if (this.cancel(key, waiter)) reject((target as AbortSignal).reason);
    };
    for (const end of ends) end.addEventListener('abort', abort, { once: true });
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      for (const end of ends) end.removeEventListener('abort', abort);
    }
  }

  /**
   * Returns whether one more waiter of the key may enter the queue. It first refuses the newest waiters of other keys
   * that have more than half of the queue or, if the queue is full, the newest of the key with the most waiters.
   */
  #hasCapacity(key: string): boolean {
    const { maxWaiting = 0 } = this.#options;
    const share = Math.floor(maxWaiting / 2);
    const otherKeys = this.#otherKeys(key);
    for (const other of otherKeys) if (this.waiting(other) > share) this.#refuseNewest(other, share);
    const own = this.waiting(key);
    if (own >= (otherKeys.length > 0 ? share : maxWaiting)) return false;
    if (this.#waiting - this.waiting(SYSTEM) < maxWaiting) return true;
    const longest = otherKeys.reduce((a, b) => (this.waiting(b) > this.waiting(a) ? b : a));
    const most = this.waiting(longest);
    if (most <= own + 1) return false;
    this.#refuseNewest(longest, most - 1);
    return true;
  }

  /** Returns the other keys that have waiters. */
  #otherKeys(key: string): string[] {
    if (this.#waiting === 0) return [];
    return [...this.#queues.keys()].filter((other) => other !== key && other !== SYSTEM);
  }

  /** Refuses the newest waiters of a key until `count` are left. */
  #refuseNewest(key: string, count: number): void {
    const waiters = [...(this.#queues.get(key) ?? [])];
    for (const waiter of waiters.slice(count)) this.#refuse(key, waiter);
  }

  #refuse(key: string, waiter: Waiter): void {
    if (this.cancel(key, waiter)) waiter.onRefused();
  }

  /** Grants free permits to waiters, round-robin by key. */
  #serve(): void {
    while (this.#waiting > 0) {
      const entry = this.#queues.entries().find(([key]) => this.#mayHold(key));
      if (!entry) return;
      const [key, queue] = entry;
      const [next] = queue;
      if (!next) return;
      queue.delete(next);
      this.#waiting -= 1;
      // The key goes behind all others.
      this.#queues.delete(key);
      if (queue.size > 0) this.#queues.set(key, queue);
      this.#grant(key);
      next.onPermit();
    }
  }
}

/** The key of all work of one mutex. */
const LOCKED = 'locked';

/**
 * A mutex for each key: work with the same key runs one after another, first come, first served; work with different
 * keys runs concurrently. Without options, any number of callers may wait.
 */
export class KeyedMutex<Key = string> {
  readonly #options;
  /** The mutexes of the keys that are locked. */
  readonly #locks = new Map<Key, Semaphore>();

  constructor(options: Pick<ConstructorParameters<typeof Semaphore>[0], 'maxWaiting' | 'refusal' | 'signalOf'> = {}) {
    this.#options = { maxWaiting: Number.POSITIVE_INFINITY, ...options, permits: 1 };
  }

  /**
   * Runs `work` once all earlier work with the same key has ended, whether or not it succeeded.
   * @throws what `refusal` returns, when too many callers wait; the reason of `signal`, when it is aborted before
   * `work` begins.
   */
  async run<Result>(key: Key, work: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    const lock = this.#locks.getOrInsertComputed(key, () => new Semaphore(this.#options));
    try {
      return await lock.run(LOCKED, work, signal);
    } finally {
      if (lock.held() === 0 && this.#locks.get(key) === lock) this.#locks.delete(key);
    }
  }
}

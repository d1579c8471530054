interface SemaphoreOptions {
  /** How many permits there are. */
  permits: number;
  /** How many of the permits only work without a key may hold. */
  reserved?: number;
  /** Whether a key may hold more than half of the permits while no other key waits: for work so short that nobody minds. */
  mayBorrow?: boolean;
  /** How much work of keys may wait, all keys together. */
  maxWaiting?: number;
  /** How long work of a key waits at most, in milliseconds. */
  waitMs?: number;
  /** Makes the error that `run` rejects with where work is refused. */
  refusal?(): Error;
}

/** Somebody who asks for a permit by callbacks. */
export interface Waiter {
  /** Called once with a permit, which the waiter gives back by `release`. */
  onPermit(): void;
  /** Called instead where the waiter will never have one. */
  onRefused(): void;
}

/** The key of work that has none. */
const SYSTEM = '';

/**
 * A semaphore with a bounded queue that is fair by key (a tenant, a service): keys are served round-robin, work of one key
 * first come, first served.
 *
 * A key holds at most half of the permits (at least one), and while another key waits it has at most half of the queue:
 * its newest work beyond that is refused. Where several keys fill the queue, the one with the most in it gives way. Work
 * without a key belongs to the product itself: only the permits bound it, and it is never refused.
 */
export class Semaphore {
  readonly #options: SemaphoreOptions;
  /** How many permits a key may hold while another key waits. */
  readonly #share: number;
  /** The waiters by key, both in the order in which they are served. */
  readonly #queues = new Map<string, Set<Waiter>>();
  readonly #heldByKey = new Map<string, number>();
  #held = 0;
  #waiting = 0;

  constructor(options: SemaphoreOptions) {
    this.#options = options;
    this.#share = Math.max(1, Math.floor(options.permits / 2));
  }

  /** Returns how many permits are held: in total, or by a key (`''` for work without one). */
  held(key?: string): number {
    return key === undefined ? this.#held : (this.#heldByKey.get(key) ?? 0);
  }

  /** Returns how many wait: in total, or of a key (`''` for work without one). */
  waiting(key?: string): number {
    return key === undefined ? this.#waiting : (this.#queues.get(key)?.size ?? 0);
  }

  /**
   * Runs `work` while holding a permit of `key`.
   * @throws what `refusal` makes, where the queue is full or `waitMs` have passed; the reason of `signal`, where it is
   * aborted before the permit is there.
   */
  async run<Result>(key: string | undefined, work: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    const holder = key ?? SYSTEM;
    signal?.throwIfAborted();
    if (this.#mayHold(holder)) this.#take(holder);
    else await this.#wait(holder, signal);
    try {
      return await work();
    } finally {
      this.release(holder);
    }
  }

  /** Gives a permit of `key` to the waiter, at once or later. Returns false where the queue is full. */
  acquire(key: string, waiter: Waiter): boolean {
    if (this.#mayHold(key)) {
      this.#take(key);
      waiter.onPermit();
      return true;
    }
    if (key !== SYSTEM && !this.#hasCapacity(key)) return false;
    const queue = this.#queues.get(key);
    if (queue) queue.add(waiter);
    else this.#queues.set(key, new Set([waiter]));
    this.#waiting += 1;
    return true;
  }

  /** Takes a waiter out of the queue without a call. Returns false where it does not wait. */
  cancel(key: string, waiter: Waiter): boolean {
    const queue = this.#queues.get(key);
    if (!queue?.delete(waiter)) return false;
    this.#waiting -= 1;
    if (queue.size === 0) this.#queues.delete(key);
    // Another key may hold more now that this one does not wait.
    this.#serve();
    return true;
  }

  /** Gives a permit back. */
  release(key: string): void {
    this.#held -= 1;
    const held = this.held(key) - 1;
    if (held === 0) this.#heldByKey.delete(key);
    else this.#heldByKey.set(key, held);
    this.#serve();
  }

  /** Refuses every waiter. */
  refuseAll(): void {
    const waiters = [...this.#queues.values()].flatMap((queue) => [...queue]);
    this.#queues.clear();
    this.#waiting = 0;
    for (const waiter of waiters) waiter.onRefused();
  }

  #mayHold(key: string): boolean {
    const { permits, reserved = 0, mayBorrow } = this.#options;
    if (this.#held >= permits) return false;
    if (key === SYSTEM) return true;
    if (this.#held - this.held(SYSTEM) >= permits - reserved) return false;
    return this.held(key) < this.#share || (mayBorrow === true && this.#otherKeys(key).length === 0);
  }

  #take(key: string): void {
    this.#held += 1;
    this.#heldByKey.set(key, this.held(key) + 1);
  }

  async #wait(key: string, signal: AbortSignal | undefined): Promise<void> {
    const { waitMs, refusal = () => new Error('the semaphore refused the work') } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { onPermit: resolve, onRefused: () => reject(refusal()) };
    if (!this.acquire(key, waiter)) throw refusal();
    const isTimed = key !== SYSTEM && waitMs !== undefined;
    const timer = isTimed ? setTimeout(() => this.#refuse(key, waiter), waitMs) : undefined;
    const abort = () => {
      if (this.cancel(key, waiter)) reject(signal?.reason);
    };
    signal?.addEventListener('abort', abort, { once: true });
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    }
  }

  /** Returns whether one more of the key may wait, and refuses for it what other keys have beyond their share. */
  #hasCapacity(key: string): boolean {
    const { maxWaiting = 0 } = this.#options;
    const share = Math.floor(maxWaiting / 2);
    const others = this.#otherKeys(key);
    for (const other of others) if (this.waiting(other) > share) this.#refuseNewest(other, share);
    const own = this.waiting(key);
    if (own >= (others.length > 0 ? share : maxWaiting)) return false;
    if (this.#waiting - this.waiting(SYSTEM) < maxWaiting) return true;
    const longest = others.reduce((a, b) => (this.waiting(b) > this.waiting(a) ? b : a));
    const most = this.waiting(longest);
    if (most <= own + 1) return false;
    this.#refuseNewest(longest, most - 1);
    return true;
  }

  /** Returns the other keys that wait. */
  #otherKeys(key: string): string[] {
    if (this.#waiting === 0) return [];
    return [...this.#queues.keys()].filter((other) => other !== key && other !== SYSTEM);
  }

  /** Refuses the newest waiters of a key, so that `count` are left. */
  #refuseNewest(key: string, count: number): void {
    const waiters = [...(this.#queues.get(key) ?? [])];
    for (const waiter of waiters.slice(count)) this.#refuse(key, waiter);
  }

  #refuse(key: string, waiter: Waiter): void {
    if (this.cancel(key, waiter)) waiter.onRefused();
  }

  /** Gives free permits to those who wait, round-robin by key. */
  #serve(): void {
    while (this.#waiting > 0) {
      const entry = this.#queues.entries().find(([key]) => this.#mayHold(key));
      if (!entry) return;
      const [key, queue] = entry;
      const [next] = queue;
      if (!next) return;
      queue.delete(next);
      this.#waiting -= 1;
      // Moved behind all other keys.
      this.#queues.delete(key);
      if (queue.size > 0) this.#queues.set(key, queue);
      this.#take(key);
      next.onPermit();
    }
  }
}

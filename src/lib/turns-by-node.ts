interface TurnsByNodeLimits {
  /** How many may go on at once. */
  atOnce: number;
  /** How many of nodes may wait. */
  waiting: number;
  /** Of those at once: how many are for what is of no node alone. */
  kept: number;
  /** Whether a node may hold more than half while no other waits: for turns so short that whoever comes need not mind. */
  lends: boolean;
  /** How long one of a node waits at most; without it as long as it takes. */
  waitMs?: number;
  /** What one is sent away with. */
  refusal(): Error;
}

interface Waiter {
  begin(): void;
  sendAway(): void;
}

/** The key of what is of no node: it is limited by nothing but the places, and never sent away. */
const OURS = '';

/**
 * Bounded concurrency that is served in turn by node, within a node first come, first served. A node holds at most half of
 * the places (at least one), and of the queue at most half while another node waits: what it has beyond that is sent away,
 * the newest first. Where several fill the queue, whoever waits with the most gives way.
 */
export class TurnsByNode {
  readonly #limits: TurnsByNodeLimits;
  readonly #most: number;
  /** Those who wait, by node; the node whose turn comes next first. */
  readonly #queues = new Map<string, Waiter[]>();
  readonly #held = new Map<string, number>();
  #going = 0;
  #waiting = 0;

  constructor(limits: TurnsByNodeLimits) {
    this.#limits = limits;
    this.#most = Math.max(1, Math.floor(limits.atOnce / 2));
  }

  /** How many go on, all of them or those of a node. */
  going(nodeId?: string): number {
    return nodeId === undefined ? this.#going : (this.#held.get(nodeId) ?? 0);
  }

  /** How many wait, all of them or those of a node. */
  waiting(nodeId?: string): number {
    return nodeId === undefined ? this.#waiting : (this.#queues.get(nodeId)?.length ?? 0);
  }

  /**
   * Runs `work` in a turn of the node; without one, of what is of no node.
   * @throws what `refusal` gives, where the node has as many waiting as it may, or has waited for as long.
   */
  async run<Result>(nodeId: string | undefined, work: () => Promise<Result>): Promise<Result> {
    const key = nodeId ?? OURS;
    if (this.#mayBegin(key)) this.#begin(key);
    else await this.#wait(key);
    try {
      return await work();
    } finally {
      this.#leave(key);
    }
  }

  #mayBegin(key: string): boolean {
    const { atOnce, kept, lends } = this.#limits;
    if (this.#going >= atOnce) return false;
    if (key === OURS) return true;
    if (this.#going - this.going(OURS) >= atOnce - kept) return false;
    return this.going(key) < this.#most || (lends && this.#others(key).length === 0);
  }

  #begin(key: string): void {
    this.#going += 1;
    this.#held.set(key, this.going(key) + 1);
  }

  #leave(key: string): void {
    this.#going -= 1;
    const held = this.going(key) - 1;
    if (held === 0) this.#held.delete(key);
    else this.#held.set(key, held);
    this.#beginNext();
  }

  async #wait(key: string): Promise<void> {
    if (key !== OURS && !this.#makesRoom(key)) throw this.#limits.refusal();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { begin: resolve, sendAway: () => reject(this.#limits.refusal()) };
    const queue = this.#queues.get(key);
    if (queue) queue.push(waiter);
    else this.#queues.set(key, [waiter]);
    this.#waiting += 1;
    const { waitMs } = this.#limits;
    const late = key === OURS || waitMs === undefined ? undefined : setTimeout(() => this.#giveUp(key, waiter), waitMs);
    try {
      await promise;
    } finally {
      clearTimeout(late);
    }
  }

  /** Whether one more of the node may wait; what others have beyond their part is sent away for it. */
  #makesRoom(key: string): boolean {
    const { waiting } = this.#limits;
    const half = Math.floor(waiting / 2);
    const others = this.#others(key);
    for (const other of others) while (this.waiting(other) > half) this.#sendNewestAway(other);
    const own = this.waiting(key);
    if (own >= (others.length > 0 ? half : waiting)) return false;
    if (this.#waiting - this.waiting(OURS) < waiting) return true;
    const longest = others.reduce((a, b) => (this.waiting(b) > this.waiting(a) ? b : a));
    if (this.waiting(longest) <= own + 1) return false;
    this.#sendNewestAway(longest);
    return true;
  }

  /** The other nodes that wait. */
  #others(key: string): string[] {
    return [...this.#queues.keys()].filter((other) => other !== key && other !== OURS);
  }

  #sendNewestAway(key: string): void {
    const newest = this.#queues.get(key)?.at(-1);
    if (newest) this.#giveUp(key, newest);
  }

  #giveUp(key: string, waiter: Waiter): void {
    this.#remove(key, waiter);
    waiter.sendAway();
    // Another node may hold more now that this one does not wait.
    this.#beginNext();
  }

  /** Whoever may begin does, in turn by node. */
  #beginNext(): void {
    for (;;) {
      const key = this.#queues.keys().find((one) => this.#mayBegin(one));
      const queue = key === undefined ? undefined : this.#queues.get(key);
      const next = queue?.shift();
      if (key === undefined || !queue || !next) return;
      this.#waiting -= 1;
      // Its next turn comes after those of all others.
      this.#queues.delete(key);
      if (queue.length > 0) this.#queues.set(key, queue);
      this.#begin(key);
      next.begin();
    }
  }

  #remove(key: string, waiter: Waiter): void {
    const queue = this.#queues.get(key) ?? [];
    queue.splice(queue.indexOf(waiter), 1);
    this.#waiting -= 1;
    if (queue.length === 0) this.#queues.delete(key);
  }
}

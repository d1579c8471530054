import type { Db } from '../db.ts';
import { sqlState } from '../lib/sql-state.ts';
import { accessFollower, type Follow, type Follower } from './access-follower.ts';

/** What has ended. `subject` and `item`: a client and null, a supervisor and a session, a client and a token or family. */
export interface AccessChange {
  kind: 'client' | 'session' | 'token';
  nodeId: string;
  subject: string;
  item: string | null;
}

interface AccessChangesParts {
  db: Db;
  nowMs(): number;
  onError(error: unknown): void;
}

const LOCK = 4_273_002;
/** SQLSTATE of the transaction that a deadlock was resolved by: two ends of access met in the same sessions. */
const DEADLOCK = '40P01';
const MAX_ATTEMPTS = 5;
/** Twice in the second in which every replica has to know. */
const POLL_MS = 500;
const BATCH = 1_000;
const KEPT_MS = 24 * 3_600_000;
const PRUNE_EVERY_MS = 3_600_000;

/**
 * The append-only table by which replicas learn what has ended. Whoever ends access adds to it in the same transaction;
 * each replica reads on twice a second and tells its followers, every one of them until it has succeeded.
 */
export class AccessChanges {
  readonly #parts: AccessChangesParts;
  readonly #followers: Follower[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** What was begun last for each follower. */
  readonly #turns = new Map<Follower, Promise<void>>();
  #prunedAtMs = performance.now();
  #isFailing = false;

  constructor(parts: AccessChangesParts) {
    this.#parts = parts;
  }

  /** Calls `apply` for changes of some kinds, from those of the last `sinceMs` on; a failed one is repeated. */
  follow(follow: Follow): void {
    this.#followers.push(accessFollower(follow));
  }

  /**
   * Runs `work` in a transaction and tells everybody what it has ended: this process at once, when it has committed.
   * `work` hands each change to `ended`; it runs again where a deadlock has undone it.
   */
  async commit<Result>(work: (ended: (change: AccessChange) => void) => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt += 1) {
      const changes: AccessChange[] = [];
      try {
        const result = await this.#commitOnce(work, changes);
        // What fails here is done by the next poll.
        await Promise.allSettled(this.#followers.map((follower) => follower.tell(changes)));
        return result;
      } catch (error) {
        if (sqlState(error) !== DEADLOCK || attempt === MAX_ATTEMPTS) throw error;
      }
    }
  }

  /** Begins to read on. Resolves when what there is has been read once. */
  async start(): Promise<void> {
    await this.poll();
    this.#timer = setInterval(() => void this.poll(), POLL_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.allSettled(this.#turns.values());
  }

  /** Reads on now. A follower that is slow keeps no other one waiting. */
  async poll(): Promise<void> {
    const work = [...this.#followers.map((follower) => this.#inTurn(follower)), this.#prune()];
    const failed = (await Promise.allSettled(work)).find((result) => result.status === 'rejected');
    if (failed && !this.#isFailing) this.#parts.onError(failed.reason);
    this.#isFailing = failed !== undefined;
  }

  #commitOnce<Result>(
    work: (ended: (change: AccessChange) => void) => Promise<Result>,
    changes: AccessChange[],
  ): Promise<Result> {
    return this.#parts.db.transaction(async () => {
      const result = await work((change) => void changes.push(change));
      await this.#append(changes);
      return result;
    });
  }

  #inTurn(follower: Follower): Promise<void> {
    const before = this.#turns.get(follower) ?? Promise.resolve();
    const turn = before.catch(() => undefined).then(() => this.#advance(follower));
    this.#turns.set(follower, turn);
    return turn;
  }

  async #advance(follower: Follower): Promise<void> {
    const door = this.#parts.db.unscoped('access ends for every node');
    for (;;) {
      const { position, since } = follower.place(this.#parts.nowMs());
      const rows = await door.run((k) =>
        k
          .selectFrom('access_changes')
          .select(['seq', 'kind', 'node_id', 'subject', 'item'])
          .where('seq', '>', position)
          .$if(since !== undefined, (query) => query.where('created_at', '>', since ?? ''))
          .orderBy('seq')
          .limit(BATCH),
      );
      const last = rows.at(-1);
      if (!last) return follower.reached(position);
      await follower.tell(rows.map(({ node_id: nodeId, ...row }) => ({ ...row, nodeId })));
      follower.reached(last.seq);
      if (rows.length < BATCH) return;
    }
  }

  /** The lock makes the order of `seq` that of the commits: a reader at n has seen everything up to n. */
  async #append(changes: readonly AccessChange[]): Promise<void> {
    if (changes.length === 0) return;
    const door = this.#parts.db.unscoped('access ends for every node');
    await door.raw((sql) => sql`select pg_advisory_xact_lock(${LOCK})`);
    const createdAt = new Date(this.#parts.nowMs()).toISOString();
    const rows = changes.map(({ nodeId, ...change }) => ({ ...change, node_id: nodeId, created_at: createdAt }));
    await door.run((k) => k.insertInto('access_changes').values(rows));
  }

  async #prune(): Promise<void> {
    if (performance.now() - this.#prunedAtMs < PRUNE_EVERY_MS) return;
    this.#prunedAtMs = performance.now();
    const before = new Date(this.#parts.nowMs() - KEPT_MS).toISOString();
    const door = this.#parts.db.unscoped('access ends for every node');
    await door.run((k) => k.deleteFrom('access_changes').where('created_at', '<', before));
  }
}

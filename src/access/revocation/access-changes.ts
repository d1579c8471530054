import { withTimeout } from '../../lib/with-timeout.ts';
import type { Db } from '../../platform/database/database.ts';
import { sqlState } from '../../platform/database/sql-state.ts';
import { outsideRequest } from '../../platform/database/tenant-db.ts';
import { serviceUnavailable } from '../../platform/errors.ts';

/** A subscription to revocations of some kinds. */
interface Follow {
  kinds: readonly AccessChange['kind'][];
  /** The age, in ms, of the oldest revocations that the first read returns. */
  sinceMs: number;
  /** Returns a number that changes when applied revocations may have been lost; the next read then starts over. */
  generation?(): number;
  /** Whether requests are served while this subscriber lags behind (`current`). */
  mayLag?: boolean;
  apply(changes: readonly AccessChange[]): Promise<void>;
}

/** A subscriber to revocations, with its position in the table. */
interface Follower extends Follow {
  /** The `seq` after which the next read begins; `NOWHERE` before the first row. */
  position: string;
  /** The sum of the generations in which that position was reached. */
  begunIn: number;
  /** When its last successful read began, by the monotonic clock. */
  readTick: number;
  /** The read that is running; it never rejects. */
  reading: Promise<void>;
  /** The read that begins after the running one, for all that have asked meanwhile. */
  next: Promise<void> | undefined;
}

const NOWHERE = '0';

async function tell({ kinds, apply }: Follow, changes: readonly AccessChange[]): Promise<void> {
  const wanted = changes.filter(({ kind }) => kinds.includes(kind));
  if (wanted.length > 0) await apply(wanted);
}

/**
 * A revocation. By kind, `subject` and `item` are: `client`, the client and null; `session`, the supervisor and the
 * session; `token`, the client and the token or family.
 */
export interface AccessChange {
  kind: 'client' | 'session' | 'token';
  nodeId: string;
  subject: string;
  item: string | null;
}

interface AccessChangesDependencies {
  db: Db;
  /** Returns a number that changes when another server may have rows with numbers that were read before. */
  generation?(): number;
  nowMs(): number;
  onError(error: unknown): void;
}

const LOCK = 4_273_002;
/** The SQLSTATE of a deadlock, which happens when two transactions revoke the same sessions. */
const DEADLOCK = '40P01';
const MAX_ATTEMPTS = 5;
/** The interval between polls, in ms; every process must learn of a revocation within a second. */
const POLL_MS = 500;
/** The age, in ms, of the last read from which a request waits for another one. */
const CURRENT_MS = 1_000;
/** The longest time, in ms, that a request waits for it. */
const CURRENT_WITHIN_MS = 2_000;
const BATCH = 1_000;
const KEPT_MS = 24 * 3_600_000;
const PRUNE_EVERY_MS = 3_600_000;

/**
 * The append-only table of revocations (`access_changes`), by which processes learn of them. A transaction that revokes
 * something also appends the row. Each process polls twice a second and calls its subscribers; a call that fails is
 * repeated.
 */
export class AccessChanges {
  readonly #deps: AccessChangesDependencies;
  readonly #followers: Follower[] = [];
  #timer: NodeJS.Timeout | undefined;
  #prunedAtMs = performance.now();
  #isFailing = false;

  constructor(deps: AccessChangesDependencies) {
    this.#deps = deps;
  }

  /**
   * Subscribes `apply` to revocations of some kinds, beginning with the last `sinceMs`. A call that fails is
   * repeated by the next poll.
   */
  follow(follow: Follow): void {
    this.#followers.push({
      ...follow,
      position: NOWHERE,
      begunIn: this.#generationOf(follow),
      readTick: Number.NEGATIVE_INFINITY,
      reading: Promise.resolve(),
      next: undefined,
    });
  }

  /**
   * Runs `work` in a transaction and calls the subscribers of this process after the commit. `work` passes each
   * revocation to `ended`; it is run again after a deadlock.
   */
  async commit<Result>(work: (ended: (change: AccessChange) => void) => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt += 1) {
      const changes: AccessChange[] = [];
      try {
        const result = await this.#commitOnce(work, changes);
        // A subscriber that fails here is called again by the next poll.
        await Promise.allSettled(this.#followers.map((follower) => tell(follower, changes)));
        return result;
      } catch (error) {
        if (sqlState(error) !== DEADLOCK || attempt === MAX_ATTEMPTS) throw error;
      }
    }
  }

  /** Starts polling. Resolves once the existing rows have been read. */
  async start(): Promise<void> {
    await this.poll();
    this.#timer = setInterval(() => void this.poll(), POLL_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#followers.map(({ reading }) => reading));
  }

  /** How long ago, in ms, the last read began that all subscribers have applied which must not lag. */
  get ageMs(): number {
    const ticks = this.#followers.filter(({ mayLag }) => !mayLag).map(({ readTick }) => readTick);
    return performance.now() - Math.min(...ticks);
  }

  /**
   * Returns undefined if the subscribers that must not lag know all revocations up to a second ago; otherwise reads,
   * and resolves once they do.
   * @throws Refusal `service_unavailable` when that takes more than two seconds; errors of the database.
   */
  current(): Promise<unknown> | undefined {
    const sinceTick = performance.now() - CURRENT_MS;
    const late = this.#followers.filter(({ mayLag, readTick }) => !mayLag && readTick < sinceTick);
    if (late.length === 0) return undefined;
    const reading = outsideRequest(() => Promise.all(late.map((follower) => this.#read(follower))));
    return withTimeout(reading, CURRENT_WITHIN_MS, serviceUnavailable);
  }

  /** Reads new rows now. A slow subscriber does not delay the others. */
  async poll(): Promise<void> {
    const work = [...this.#followers.map((follower) => this.#read(follower)), this.#prune()];
    const failed = (await Promise.allSettled(work)).find((result) => result.status === 'rejected');
    if (failed && !this.#isFailing) this.#deps.onError(failed.reason);
    this.#isFailing = failed !== undefined;
  }

  #generationOf({ generation }: Follow): number {
    return (generation?.() ?? 0) + (this.#deps.generation?.() ?? 0);
  }

  #commitOnce<Result>(
    work: (ended: (change: AccessChange) => void) => Promise<Result>,
    changes: AccessChange[],
  ): Promise<Result> {
    return this.#deps.db.transaction(async () => {
      const result = await work((change) => void changes.push(change));
      await this.#append(changes);
      return result;
    });
  }

  #read(follower: Follower): Promise<void> {
    follower.next ??= follower.reading.then(() => {
      follower.next = undefined;
      const reading = this.#advance(follower);
      follower.reading = reading.catch(() => undefined);
      return reading;
    });
    return follower.next;
  }

  async #advance(follower: Follower): Promise<void> {
    const unscoped = this.#deps.db.unscoped('revocations of all nodes');
    for (;;) {
      const readTick = performance.now();
      const generation = this.#generationOf(follower);
      if (generation !== follower.begunIn) Object.assign(follower, { position: NOWHERE, begunIn: generation });
      const { position, sinceMs } = follower;
      const since = new Date(this.#deps.nowMs() - sinceMs).toISOString();
      const rows = await unscoped.run((k) =>
        k
          .selectFrom('access_changes')
          .select(['seq', 'kind', 'node_id', 'subject', 'item'])
          .where('seq', '>', position)
          .$if(position === NOWHERE, (query) => query.where('created_at', '>', since))
          .orderBy('seq')
          .limit(BATCH),
      );
      const last = rows.at(-1);
      if (last) {
        await tell(
          follower,
          rows.map(({ node_id: nodeId, ...row }) => ({ ...row, nodeId })),
        );
        follower.position = last.seq;
      }
      if (rows.length === BATCH) continue;
      follower.readTick = readTick;
      return;
    }
  }

  /**
   * Appends revocations under a lock that makes `seq` follow the order of commits: a reader that has seen row n has
   * seen all rows before it.
   */
  async #append(changes: readonly AccessChange[]): Promise<void> {
    if (changes.length === 0) return;
    const unscoped = this.#deps.db.unscoped('revocations of all nodes');
    await unscoped.raw((sql) => sql`select pg_advisory_xact_lock(${LOCK})`);
    const createdAt = new Date(this.#deps.nowMs()).toISOString();
    const rows = changes.map(({ nodeId, ...change }) => ({ ...change, node_id: nodeId, created_at: createdAt }));
    await unscoped.run((k) => k.insertInto('access_changes').values(rows));
  }

  async #prune(): Promise<void> {
    if (performance.now() - this.#prunedAtMs < PRUNE_EVERY_MS) return;
    this.#prunedAtMs = performance.now();
    const before = new Date(this.#deps.nowMs() - KEPT_MS).toISOString();
    const unscoped = this.#deps.db.unscoped('revocations of all nodes');
    await unscoped.run((k) => k.deleteFrom('access_changes').where('created_at', '<', before));
  }
}

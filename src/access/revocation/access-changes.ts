import { SharedRuns } from '../../lib/shared-runs.ts';
import { every } from '../../lib/shared-ticks.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import type { Db } from '../../platform/database/database.ts';
import { DEADLOCK, serviceUnavailable, sqlState } from '../../platform/errors.ts';
import { outsideRequest } from '../../platform/held-memory.ts';
import type { DatabaseClock } from './database-clock.ts';

/** The subscriber to revocations. */
interface Follow {
  /** The age, in ms, of the oldest revocations that the first read returns. */
  sinceMs: number;
  /** Called with the changes of each read, even if there are none. Requests may wait for it. */
  apply(changes: readonly AccessChange[]): Promise<void>;
}

const NOWHERE = '0';

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

const LOCK = 4_273_002;
/** Two transactions that revoke the same sessions can be in a deadlock. */
const MAX_ATTEMPTS = 5;
/** The interval between polls, in ms; every process must learn of a revocation within a second. */
const CHANGES_POLL_MS = 500;
/** The age, in ms, of the last read from which a request waits for another one. */
const CURRENT_MS = 1_000;
/** The longest time, in ms, that a request waits for it. */
const CURRENT_WITHIN_MS = 2_000;
const BATCH = 1_000;
/**
 * Reads the revocations after $1 (all since $2 if it is 0), with the database's time in each row; one row without a
 * revocation if there is none. It is written out, since building it takes longer than all else that a poll does.
 */
const READ = `
  select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as ms,
    current_setting('transaction_read_only') = 'on' as "isReadOnly", new.*
  from (values (1)) as one left join lateral (
    select seq, kind, node_id as "nodeId", subject, item from access_changes
    where seq > $1 and ($1 > ${NOWHERE} or created_at > $2) order by seq limit ${BATCH}) as new on true`;

/**
 * The append-only table of revocations (`access_changes`), by which processes learn of them. A transaction that revokes
 * something also appends the row. Each process polls twice a second and calls its subscriber; a call that fails is
 * repeated.
 */
export class AccessChanges {
  /** Whether the server took no writes when it was last read. */
  isReadOnly = false;
  readonly #deps;
  #follow: Follow = { sinceMs: 0, apply: async () => undefined };
  /** The `seq` after which the next read begins; `NOWHERE` before the first row. */
  #position = NOWHERE;
  /** The generation in which that position was reached. */
  #begunIn: number;
  /** When the last successful read began, by the monotonic clock. */
  #readTick = Number.NEGATIVE_INFINITY;
  readonly #reads = new SharedRuns(() => this.#advance());
  #stopPolling: (() => void) | undefined;
  #isFailing = false;

  constructor(deps: {
    db: Db;
    clock: Pick<DatabaseClock, 'note'>;
    /** Returns a number that changes when another server may have rows with numbers that were read before. */
    generation(): number;
    nowMs(): number;
    onError(error: unknown): void;
  }) {
    this.#deps = deps;
    this.#begunIn = deps.generation();
  }

  /**
   * Sets the subscriber of this process, which gets revocations beginning with the last `sinceMs`. A call that fails is
   * repeated by the next poll.
   */
  follow(follow: Follow): void {
    this.#follow = follow;
  }

  /**
   * Runs `work` in a transaction and calls the subscriber of this process after the commit. `work` passes each
   * revocation to `recordRevocation`; it is run again after a deadlock.
   */
  async commit<Result>(work: (recordRevocation: (change: AccessChange) => void) => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt += 1) {
      const changes: AccessChange[] = [];
      try {
        const result = await this.#deps.db.transaction(async () => {
          const worked = await work((change) => void changes.push(change));
          await this.#append(changes);
          return worked;
        });
        // A subscriber that fails here is called again by the next poll.
        if (changes.length > 0) await this.#follow.apply(changes).catch(() => undefined);
        return result;
      } catch (error) {
        if (sqlState(error) !== DEADLOCK || attempt === MAX_ATTEMPTS) throw error;
      }
    }
  }

  /** Starts polling. Resolves once the existing rows have been read. */
  async start(): Promise<void> {
    await this.poll();
    this.#stopPolling = every(CHANGES_POLL_MS, () => void this.poll());
  }

  async stop(): Promise<void> {
    this.#stopPolling?.();
    await this.#reads.ended();
  }

  /** How long ago, in ms, the last read began that the subscriber has applied. */
  get ageMs(): number {
    return performance.now() - this.#readTick;
  }

  /**
   * Returns undefined if the subscriber knows all revocations up to a second ago; otherwise reads, and resolves once it
   * does.
   * @throws Refusal `service_unavailable` when that takes more than two seconds; errors of the database.
   */
  waitUntilFresh(): Promise<unknown> | undefined {
    if (this.ageMs <= CURRENT_MS) return undefined;
    return withTimeout(
      outsideRequest(() => this.#reads.run()),
      CURRENT_WITHIN_MS,
      serviceUnavailable,
    );
  }

  /** Reads new rows now. */
  async poll(): Promise<void> {
    try {
      await this.#reads.run();
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) this.#deps.onError(error);
      this.#isFailing = true;
    }
  }

  async #advance(): Promise<void> {
    for (;;) {
      const readTick = performance.now();
      const generation = this.#deps.generation();
      if (generation !== this.#begunIn) this.#position = NOWHERE;
      this.#begunIn = generation;
      const since = new Date(this.#deps.nowMs() - this.#follow.sinceMs);
      const { rows } = await this.#deps.db
        .unscoped('revocations of all nodes')
        .compiled<AccessChange & { ms: string; isReadOnly: boolean; seq: string | null }>(READ, [
          this.#position,
          since.toISOString(),
        ]);
      this.#deps.clock.note(Number(rows.at(-1)?.ms));
      this.isReadOnly = rows.at(-1)?.isReadOnly === true;
      const changes = rows.filter(({ seq }) => seq !== null);
      await this.#follow.apply(changes);
      this.#position = changes.at(-1)?.seq ?? this.#position;
      if (rows.length === BATCH) continue;
      this.#readTick = readTick;
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
    await unscoped.run((k) =>
      k.insertInto('access_changes').values(
        changes.map(({ nodeId, ...change }) => ({
          ...change,
          node_id: nodeId,
          created_at: new Date(this.#deps.nowMs()).toISOString(),
        })),
      ),
    );
  }
}

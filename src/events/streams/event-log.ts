import { backoffMs } from '../../lib/backoff.ts';
import { Semaphore } from '../../lib/semaphore.ts';
import type { Db } from '../../platform/database/database.ts';
import { isOverload } from '../../platform/errors.ts';
import { type Clock, sleep } from './clock.ts';
import { SlowConsumerError } from './stream-errors.ts';

/** A row of a tenant's event log: an applied change, with the transaction as it was after that change. */
export interface LoggedEvent {
  /** The sequence number: from 1 in each tenant, in commit order. */
  seq: bigint;
  transactionId: string;
  /** The status before the change (docs/contract.md, 2.7-03); null if this is the first one. */
  previousStatus: number | null;
  correlationId: string;
  /** The trace of the change (W3C Trace Context); null or undefined if it has none. */
  traceparent?: string | null | undefined;
  transaction: Record<string, unknown>;
  /** Whether a read ended with this event because of its size, although there may be more. */
  isCut?: boolean | undefined;
}

/**
 * Read access to the tenants' event logs. Sequence numbers are given in commit order: after an event has become
 * visible, no event with a lower number appears. A subscriber that has read up to `n` has therefore seen every event up
 * to `n`.
 */
export interface EventLog {
  /**
   * Returns the first `limit` events of a tenant after `afterSeq`, in order. If the first few reach `PAGE_BYTES`,
   * returns only these, and the last of them has `isCut`.
   */
  readEvents(nodeId: string, afterSeq: bigint, limit: number): Promise<LoggedEvent[]>;
  /** Returns the last sequence number given to an event of a tenant; 0 if it has had none. */
  headSeq(nodeId: string): Promise<bigint>;
  /** Returns the sequence number of the oldest event in a tenant's log; undefined if the log is empty. */
  oldestKept(nodeId: string): Promise<bigint | undefined>;
}

/** The size in bytes, as JSON, at which a page of events ends: 500 long events could take 128 MB. */
export const PAGE_BYTES = 1_048_576;

/** Returns an event log that reads from the database. */
export function databaseEventLog(db: Db): EventLog {
  const page = db.prepareForms((k, { after, limit, most }: { after: string; limit: number; most: number }) =>
    k
      .selectFrom(
        k
          .selectFrom('transaction_events')
          .select(['seq', 'transaction_id', 'previous_status', 'correlation_id', 'traceparent', 'transaction'])
          .select((eb) => {
            const size = eb.fn<number>('octet_length', [eb.cast('transaction', 'text')]);
            const bytes = eb.fn.sum<number>(size).over((over) => over.orderBy('seq'));
            return [size.as('size'), bytes.as('bytes')];
          })
          .where('seq', '>', after)
          .orderBy('seq')
          .limit(limit)
          .as('event'),
      )
      .selectAll()
      .where((eb) => eb(eb('bytes', '-', eb.ref('size')), '<', most))
      .orderBy('seq'),
  );
  return {
    async readEvents(nodeId, afterSeq, limit) {
      const rows = await page.run(nodeId, { after: afterSeq.toString(), limit, most: PAGE_BYTES });
      return rows.map((row) => ({
        seq: BigInt(row.seq),
        transactionId: row.transaction_id,
        previousStatus: row.previous_status,
        correlationId: row.correlation_id,
        traceparent: row.traceparent,
        transaction: row.transaction,
        isCut: Number(row.bytes) >= PAGE_BYTES,
      }));
    },

    async headSeq(nodeId) {
      const [row] = await db.forNode(nodeId).run((k) => k.selectFrom('node_event_seq').select('seq'));
      return BigInt(row?.seq ?? 0);
    },

    async oldestKept(nodeId) {
      const [row] = await db
        .forNode(nodeId)
        .run((k) => k.selectFrom('transaction_events').select('seq').orderBy('seq').limit(1));
      return row && BigInt(row.seq);
    },
  };
}

interface EventRetentionDependencies {
  db: Db;
  nowMs(): number;
  retentionDays: number;
}

const BATCH = 5_000;
const DAY_MS = 24 * 3_600_000;

/**
 * Deletes the events that are older than `retentionDays`, tenant by tenant, from the oldest on. Cursors before the
 * remaining events have then expired.
 */
export async function deleteOldEvents({ db, nowMs, retentionDays }: EventRetentionDependencies): Promise<void> {
  const oldest = new Date(nowMs() - retentionDays * DAY_MS).toISOString();
  const unscoped = db.unscoped('retention of all nodes');
  const nodes = await unscoped.run((k) => k.selectFrom('node_event_seq').select('node_id'));
  for (const { node_id: nodeId } of nodes) {
    for (let deleted = BATCH; deleted === BATCH; ) {
      // A tenant's log is in the order of time, so its old events come first.
      const rows = await db.forNode(nodeId).run((k) =>
        k
          .deleteFrom('transaction_events')
          .where('occurred_at', '<', oldest)
          .where('seq', 'in', (eb) => eb.selectFrom('transaction_events').select('seq').orderBy('seq').limit(BATCH))
          .returning('seq'),
      );
      deleted = rows.length;
    }
  }
}

/** The maximum number of events in one read of the event log. */
export const PAGE_EVENTS = 500;
/**
 * The maximum number of events in the first read of a replay. PostgreSQL computes the size of all of them, even if the
 * first few reach `PAGE_BYTES`.
 */
export const FIRST_EVENTS = 50;

/** Returns whether there may be more events after a page that was read with a limit. */
export function hasMore(page: readonly LoggedEvent[], limit = PAGE_EVENTS): boolean {
  return page.length >= limit || page.at(-1)?.isCut === true;
}

const BACKFILLS_AT_ONCE = 8;
const RETRY_MAX_MS = 1_000;
/** How long the reads of one subscriber may be refused because of overload, in milliseconds. */
export const OVERLOAD_MAX_MS = 10_000;

interface Dependencies {
  log: EventLog;
  clock: Clock;
  /** Called once for each outage, with its first error. */
  onError: (error: unknown) => void;
}

/**
 * Reads the event log and retries with a backoff until a read succeeds. Each method rejects with the reason of its
 * signal once that is aborted, even if the read has succeeded meanwhile.
 */
export class RetryingLog {
  readonly #deps: Dependencies;
  readonly #backfills = new Semaphore({ permits: BACKFILLS_AT_ONCE, maxWaiting: Number.POSITIVE_INFINITY });
  #isDown = false;

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
  }

  /** Reads the next page for a tailer. */
  readEvents(nodeId: string, afterSeq: bigint, signal: AbortSignal): Promise<LoggedEvent[]> {
    return this.#persist(() => this.#deps.log.readEvents(nodeId, afterSeq, PAGE_EVENTS), signal);
  }

  /**
   * Reads the next page of a replay. All replays share a few permits, at most half of them for one tenant, each held
   * only while a page is read, so that neither a slow subscriber nor a tenant whose reads wait blocks the others.
   */
  backfill(nodeId: string, afterSeq: bigint, signal: AbortSignal, limit = PAGE_EVENTS): Promise<LoggedEvent[]> {
    const read = () => this.#deps.log.readEvents(nodeId, afterSeq, limit);
    return this.#persist(() => this.#backfills.run(nodeId, read, signal), signal, OVERLOAD_MAX_MS);
  }

  headSeq(nodeId: string, signal: AbortSignal): Promise<bigint> {
    return this.#persist(() => this.#deps.log.headSeq(nodeId), signal, OVERLOAD_MAX_MS);
  }

  oldestKept(nodeId: string, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#persist(() => this.#deps.log.oldestKept(nodeId), signal, OVERLOAD_MAX_MS);
  }

  /** @throws SlowConsumerError when reads have been refused because of overload for `overloadMs`. */
  async #persist<Result>(
    read: () => Promise<Result>,
    signal: AbortSignal,
    overloadMs = Number.POSITIVE_INFINITY,
  ): Promise<Result> {
    const { clock, onError } = this.#deps;
    const givesUpAtMs = clock.nowMs() + overloadMs;
    signal.throwIfAborted();
    for (let failures = 1; ; failures += 1) {
      try {
        const result = await read();
        this.#isDown = false;
        signal.throwIfAborted();
        return result;
      } catch (error) {
        signal.throwIfAborted();
        if (isOverload(error)) {
          if (clock.nowMs() >= givesUpAtMs) throw new SlowConsumerError();
        } else {
          if (!this.#isDown) onError(error);
          this.#isDown = true;
        }
        await sleep(clock, backoffMs(failures, { maxMs: RETRY_MAX_MS }), signal);
      }
    }
  }
}

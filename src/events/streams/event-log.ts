import { backoffMs } from '../../lib/backoff.ts';
import { Semaphore } from '../../lib/semaphore.ts';
import type { Db } from '../../platform/database/database.ts';
import { type Clock, sleep } from './clock.ts';

/** One row of a tenant's event log: a change that was applied, with the transaction as of that change. */
export interface LoggedEvent {
  /** One sequence for each tenant, in commit order, from 1. */
  seq: bigint;
  transactionId: string;
  /** A status of specification section 2.7; null for the first one. */
  previousStatus: number | null;
  correlationId: string;
  /** Where the trace of the change goes on; none where there is none. */
  traceparent?: string | null | undefined;
  transaction: Record<string, unknown>;
}

/**
 * The log as its readers need it. Whoever has read up to `n` has seen every event up to `n`: numbers are given in
 * commit order, so none below the highest one that is visible appears later. A failing read is tried again.
 */
export interface EventLog {
  /** Returns the first `limit` events of a tenant after `afterSeq`, in order. */
  readEvents(nodeId: string, afterSeq: bigint, limit: number): Promise<LoggedEvent[]>;
  /** Returns the last number given to an event of a tenant; 0 before the first one. */
  headSeq(nodeId: string): Promise<bigint>;
  /** Returns the number of the oldest event in the log; undefined where there is none. */
  oldestKept(nodeId: string): Promise<bigint | undefined>;
}

/** The event log as the database keeps it. */
export function databaseEventLog(db: Db): EventLog {
  const page = db.prepare((k, value: <Value>(name: 'after' | 'limit') => Value) =>
    k
      .selectFrom('transaction_events')
      .select(['seq', 'transaction_id', 'previous_status', 'correlation_id', 'traceparent', 'transaction'])
      .where('seq', '>', value<string>('after'))
      .orderBy('seq')
      .limit(value<number>('limit')),
  );
  return {
    async readEvents(nodeId, afterSeq, limit) {
      const rows = await page.run(nodeId, { after: afterSeq.toString(), limit });
      return rows.map((row) => ({
        seq: BigInt(row.seq),
        transactionId: row.transaction_id,
        previousStatus: row.previous_status,
        correlationId: row.correlation_id,
        traceparent: row.traceparent,
        transaction: row.transaction,
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

interface EventRetentionParts {
  db: Db;
  nowMs(): number;
  retentionDays: number;
}

const BATCH = 5_000;
const DAY_MS = 24 * 3_600_000;

/**
 * Deletes the events of transactions that are older than their days, of each tenant from the oldest on. A cursor from before
 * what is left has then expired.
 */
export async function deleteOldEvents({ db, nowMs, retentionDays }: EventRetentionParts): Promise<void> {
  const oldest = new Date(nowMs() - retentionDays * DAY_MS).toISOString();
  const door = db.unscoped('events age in every node');
  const nodes = await door.run((k) => k.selectFrom('node_event_seq').select('node_id'));
  for (const { node_id: nodeId } of nodes) {
    for (let deleted = BATCH; deleted === BATCH; ) {
      // The log of a tenant is in the order of time: old events stand at its beginning.
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

/** Events in a page of a replay or of a tailer's read. */
export const PAGE_EVENTS = 500;

const BACKFILLS_AT_ONCE = 8;
const RETRY_MAX_MS = 1_000;

interface RetryingLogParts {
  log: EventLog;
  clock: Clock;
  /** Called once for each outage, with its first error. */
  onError: (error: unknown) => void;
}

/**
 * Reads the event log, and tries again until a read succeeds. Each method throws its signal's reason once that is aborted,
 * also where the read has succeeded meanwhile.
 */
export class RetryingLog {
  readonly #parts: RetryingLogParts;
  readonly #backfills = new Semaphore({ permits: BACKFILLS_AT_ONCE });
  #isOut = false;

  constructor(parts: RetryingLogParts) {
    this.#parts = parts;
  }

  /** Reads the next page for a tailer. */
  readEvents(nodeId: string, afterSeq: bigint, signal: AbortSignal): Promise<LoggedEvent[]> {
    return this.#persist(() => this.#parts.log.readEvents(nodeId, afterSeq, PAGE_EVENTS), signal);
  }

  /**
   * Reads the next page of a replay. Replays share a few permits, each for the read of one page: a subscriber that does
   * not take what it was given keeps no other one waiting.
   */
  backfill(nodeId: string, afterSeq: bigint, signal: AbortSignal): Promise<LoggedEvent[]> {
    return this.#backfills.run(undefined, () => this.readEvents(nodeId, afterSeq, signal), signal);
  }

  headSeq(nodeId: string, signal: AbortSignal): Promise<bigint> {
    return this.#persist(() => this.#parts.log.headSeq(nodeId), signal);
  }

  oldestKept(nodeId: string, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#persist(() => this.#parts.log.oldestKept(nodeId), signal);
  }

  async #persist<Result>(read: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    signal.throwIfAborted();
    for (let failures = 1; ; failures += 1) {
      try {
        const result = await read();
        this.#isOut = false;
        signal.throwIfAborted();
        return result;
      } catch (error) {
        signal.throwIfAborted();
        if (!this.#isOut) this.#parts.onError(error);
        this.#isOut = true;
        await sleep(this.#parts.clock, backoffMs(failures, { maxMs: RETRY_MAX_MS }), signal);
      }
    }
  }
}

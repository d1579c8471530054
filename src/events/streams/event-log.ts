import type { Db } from '../../platform/database/database.ts';

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

import type { Db } from '../db.ts';
import { isoFromPg } from '../lib/pg-time.ts';
import type { EventLog } from './event-log.ts';

/** The event log as the database keeps it. */
export function databaseEventLog(db: Db): EventLog {
  const page = db.prepare((k, value: <Value>(name: 'after' | 'limit') => Value) =>
    k
      .selectFrom('transaction_events')
      .selectAll()
      .where('seq', '>', value<string>('after'))
      .orderBy('seq')
      .limit(value<number>('limit')),
  );
  return {
    async readEvents(nodeId, afterSeq, limit) {
      const rows = await page.run(nodeId, { after: afterSeq.toString(), limit });
      return rows.map((row) => ({
        nodeId,
        seq: BigInt(row.seq),
        transactionId: row.transaction_id,
        status: row.status,
        previousStatus: row.previous_status,
        correlationId: row.correlation_id,
        traceparent: row.traceparent,
        occurredAt: isoFromPg(row.occurred_at),
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

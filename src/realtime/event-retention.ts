import type { Db } from '../db.ts';

interface EventRetentionParts {
  db: Db;
  nowMs(): number;
  retentionDays: number;
}

const BATCH = 5_000;
const DAY_MS = 24 * 3_600_000;

/**
 * Deletes the events of transactions that are older than their days, of each node from the oldest on. A cursor from before
 * what is left has then expired.
 */
export async function deleteOldEvents({ db, nowMs, retentionDays }: EventRetentionParts): Promise<void> {
  const oldest = new Date(nowMs() - retentionDays * DAY_MS).toISOString();
  const door = db.unscoped('events age in every node');
  const nodes = await door.run((k) => k.selectFrom('node_event_seq').select('node_id'));
  for (const { node_id: nodeId } of nodes) {
    for (let deleted = BATCH; deleted === BATCH; ) {
      // The log of a node is in the order of time: what is old is at its beginning.
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

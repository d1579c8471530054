import type { Db } from '../../platform/database/database.ts';
import { textArray } from '../../platform/database/sql-state.ts';
import type { TransactionSnapshot } from './transaction-store.ts';
import type { TransactionStatus } from './type-codes.rules.ts';

/** A change that is to be logged: the transaction as of it. */
export interface NewEvent {
  nodeId: string;
  transactionId: string;
  status: TransactionStatus;
  previousStatus: TransactionStatus | null;
  correlationId: string;
  /** Where the trace of the change goes on. */
  traceparent?: string | undefined;
  transaction: TransactionSnapshot;
}

/**
 * Appends events as the last step of the applying transaction: it locks the counters of the nodes in the order of
 * their ids, so that sequence and commit order are one and no two appenders wait for each other.
 * Gives the last sequence number of each node.
 */
export async function appendEvents(db: Db, events: readonly NewEvent[]): Promise<Map<string, bigint>> {
  const last = new Map<string, bigint>();
  if (events.length === 0) return last;
  const door = db.unscoped('the events of a batch belong to several nodes');
  const counts = Map.groupBy(events, (event) => event.nodeId);
  const nodes = [...counts.keys()].sort();
  const counters = await door.run((k) =>
    k
      .insertInto('node_event_seq')
      .values(nodes.map((nodeId) => ({ node_id: nodeId, seq: String(counts.get(nodeId)?.length ?? 0) })))
      .onConflict((conflict) =>
        conflict
          .column('node_id')
          .doUpdateSet((eb) => ({ seq: eb('node_event_seq.seq', '+', eb.ref('excluded.seq')) })),
      )
      .returning(['node_id', 'seq']),
  );
  const next = new Map<string, bigint>();
  for (const { node_id: nodeId, seq } of counters) {
    last.set(nodeId, BigInt(seq));
    next.set(nodeId, BigInt(seq) - BigInt(counts.get(nodeId)?.length ?? 0));
  }
  const seqs = events.map(({ nodeId }) => {
    const seq = (next.get(nodeId) ?? 0n) + 1n;
    next.set(nodeId, seq);
    return seq.toString();
  });
  const column = (textOf: (event: NewEvent) => string | null) => textArray(events.map(textOf));
  await door.raw(
    (sql) => sql`
      insert into transaction_events (node_id, seq, transaction_id, status, previous_status, correlation_id, transaction,
        traceparent)
      select e.node_id::uuid, e.seq::bigint, e.transaction_id, e.status::smallint, e.previous_status::smallint,
        e.correlation_id, e.transaction::jsonb, e.traceparent
      from unnest(${column((event) => event.nodeId)}::text[], ${textArray(seqs)}::text[],
        ${column((event) => event.transactionId)}::text[], ${column((event) => String(event.status))}::text[],
        ${column(({ previousStatus }) => (previousStatus === null ? null : String(previousStatus)))}::text[],
        ${column((event) => event.correlationId)}::text[],
        ${column(({ transaction }) => JSON.stringify(transaction))}::text[],
        ${column(({ traceparent }) => traceparent ?? null)}::text[])
        as e (node_id, seq, transaction_id, status, previous_status, correlation_id, transaction, traceparent)`,
  );
  return last;
}

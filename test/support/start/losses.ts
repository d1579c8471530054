import { isDeepStrictEqual } from 'node:util';
import { emptyState, joinNotification, type TransactionState } from '../../../src/domain/transactions/join.rules.ts';
import { type Notification, parseNotification } from '../../../src/domain/transactions/notification.input.ts';
import { snapshotOf, stateOfRow } from '../../../src/domain/transactions/transaction-view.ts';
import type { Db } from '../../../src/platform/database/database.ts';
import type { Journal, SentNotification } from './load.ts';

/** What is not as the acknowledgements and answers say; every list is empty when nothing was lost or invented. */
export interface Losses {
  /** Acknowledged notifications that are not in both topics exactly once. */
  published: string[];
  /** Transactions whose row is not the join of what was acknowledged and, maybe, of what was left unanswered. */
  rows: string[];
  /** Transactions whose events do not lead to their row, each from the one before. */
  events: string[];
  /** Nodes whose sequence has a gap or repeats a number. */
  sequences: string[];
  /** Acknowledged notifications of unknown ids that are not parked. */
  parked: string[];
  /** Answered requests without exactly one audit record, and others with more than one. */
  audit: string[];
}

const TOPICS = ['transactions.admin', 'transactions.user'];
const door = (db: Db) => db.unscoped('a test compares everything');

/** Compares an instance's rows with what a client knows of them. */
export async function countLosses(db: Db, journal: Journal, registered: readonly string[]): Promise<Losses> {
  return {
    published: await unpublished(db, journal),
    rows: await wrongRows(db, journal, registered),
    events: await wrongEvents(db, registered),
    sequences: await wrongSequences(db),
    parked: await unparked(db, journal),
    audit: await wrongAudit(db, journal),
  };
}

async function unpublished(db: Db, { notifications }: Journal): Promise<string[]> {
  const messages = await door(db).raw(
    (sql) => sql<{ topic: string; correlation_id: string }>`
      select topic, headers ->> 'correlation-id' as correlation_id from bus_messages`,
  );
  const topicsOf = Map.groupBy(messages, (message) => message.correlation_id);
  return notifications.flatMap(({ correlationId, isAcknowledged }) => {
    const topics = (topicsOf.get(correlationId) ?? []).map(({ topic }) => topic).sort();
    const isRight = topics.join() === TOPICS.join() || (topics.length === 0 && !isAcknowledged);
    return isRight ? [] : [`${correlationId}: ${topics.join()}`];
  });
}

async function wrongRows(db: Db, { notifications }: Journal, registered: readonly string[]): Promise<string[]> {
  const rows = await door(db).run((k) => k.selectFrom('transactions').selectAll().where('id', 'in', registered));
  const sentOf = Map.groupBy(notifications.map(parsed), ({ notification }) => notification.id);
  const states = new Map(rows.map((row) => [row.id, stateOfRow(row)]));
  return registered.filter((id) => {
    const state = states.get(id);
    return state === undefined || !isJoinOf(state, sentOf.get(id) ?? []);
  });
}

function parsed({ body, isAcknowledged }: SentNotification): { notification: Notification; isAcknowledged: boolean } {
  const result = parseNotification(body);
  if (!result.ok) throw new Error('the load sends notifications only');
  return { notification: result.notification, isAcknowledged };
}

/** Of what was left unanswered, only what the row already covers can have been applied. */
function isJoinOf(state: TransactionState, sent: readonly ReturnType<typeof parsed>[]): boolean {
  const applied = sent.filter(
    ({ notification, isAcknowledged }) => isAcknowledged || !joinNotification(state, notification).changed,
  );
  const expected = applied.reduce<TransactionState>(
    (joined, { notification }) => joinNotification(joined, notification).state,
    emptyState(state),
  );
  return isDeepStrictEqual(expected, state);
}

async function wrongEvents(db: Db, registered: readonly string[]): Promise<string[]> {
  const rows = await door(db).run((k) => k.selectFrom('transactions').selectAll().where('id', 'in', registered));
  const events = await door(db).run((k) => k.selectFrom('transaction_events').selectAll().orderBy('seq'));
  const eventsOf = Map.groupBy(events, (event) => event.transaction_id);
  return rows.flatMap((row) => {
    const own = eventsOf.get(row.id) ?? [];
    const isChained = own.every((event, at) => event.previous_status === (own[at - 1]?.status ?? null));
    const last = own.at(-1);
    const shown = row.status === null ? undefined : snapshotOf(row.id, stateOfRow(row));
    const leadsToRow = isDeepStrictEqual(last?.transaction, shown);
    return isChained && leadsToRow ? [] : [row.id];
  });
}

async function wrongSequences(db: Db): Promise<string[]> {
  const events = await door(db).run((k) =>
    k.selectFrom('transaction_events').select(['node_id', 'seq']).orderBy('node_id').orderBy('seq'),
  );
  const ofNode = Map.groupBy(events, (event) => event.node_id);
  return [...ofNode].flatMap(([node, own]) =>
    own.every(({ seq }, at) => BigInt(seq) === BigInt(at + 1)) ? [] : [node],
  );
}

async function unparked(db: Db, { notifications }: Journal): Promise<string[]> {
  const rows = await door(db).run((k) => k.selectFrom('parked_notifications').select('body'));
  const parkedBodies = new Set(rows.map(({ body }) => Buffer.from(body).toString()));
  return notifications
    .filter(({ isAcknowledged }) => isAcknowledged)
    .map(({ body }) => body.toString())
    .filter((body) => body.includes('"stranger-') && !parkedBodies.has(body));
}

async function wrongAudit(db: Db, { sent, answered }: Journal): Promise<string[]> {
  const rows = await door(db).run((k) => k.selectFrom('audit_records').select('correlation_id'));
  const counts = new Map<string, number>();
  for (const { correlation_id: id } of rows) counts.set(id, (counts.get(id) ?? 0) + 1);
  return [...sent].flatMap((id) => {
    const count = counts.get(id) ?? 0;
    return count === 1 || (count === 0 && !answered.has(id)) ? [] : [`${id}: ${count}`];
  });
}

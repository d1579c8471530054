import { defineEntity, p } from '@mikro-orm/core';

/** The row that parking and registering lock, so that neither misses the other. Belongs to no node. */
export const TransactionId = defineEntity({
  name: 'TransactionId',
  tableName: 'transaction_ids',
  properties: { id: p.text().primary() },
});

/**
 * The mirror: a registered transaction and the join of its notifications (specification sections 2.7 and 3).
 * A `…Key` column is the order key of the notification that gave the value beside it.
 */
export const Transaction = defineEntity({
  name: 'Transaction',
  tableName: 'transactions',
  properties: {
    id: p.text().primary(),
    nodeId: p.uuid(),
    collection: p.text(),
    registeredType: p.integer(),
    registeredBy: p.text().$type<'mutation' | 'topic'>(),
    assetId: p.uuid().nullable(),
    type: p.integer(),
    status: p.smallint().nullable(),
    statusKey: p.text().nullable(),
    error: p.text().nullable(),
    transactionHash: p.text().default(''),
    transactionHashKey: p.text().nullable(),
    contractAddress: p.text().default(''),
    contractAddressKey: p.text().nullable(),
    gasUsed: p.decimal().$type<string>().default('0'),
    gasUsedKey: p.text().nullable(),
    createdText: p.text().nullable(),
    createdSeconds: p.bigint().$type<string>().nullable(),
    createdNanos: p.integer().nullable(),
    updatedText: p.text().nullable(),
    updatedSeconds: p.bigint().$type<string>().nullable(),
    updatedNanos: p.integer().nullable(),
    doneSeen: p.boolean().default(false),
    errorSeen: p.boolean().default(false),
    registeredAt: p.datetime(6).$type<string>().defaultRaw('now()'),
  },
});

/** A notification whose id is not registered yet, kept as received. Belongs to no node. */
export const ParkedNotification = defineEntity({
  name: 'ParkedNotification',
  tableName: 'parked_notifications',
  properties: {
    id: p.text().primary(),
    bodySha256: p.blob().$type<Uint8Array>().primary(),
    body: p.blob().$type<Uint8Array>(),
    correlationId: p.text(),
    traceparent: p.text().nullable(),
    parkedAt: p.datetime(6).$type<string>().defaultRaw('now()'),
  },
});

/** An id that notifications wait for and nobody has registered: its owner is to be asked. Belongs to no node. */
export const TransactionLookup = defineEntity({
  name: 'TransactionLookup',
  tableName: 'transaction_lookups',
  properties: {
    id: p.text().primary(),
    attempts: p.integer().default(0),
    dueAt: p.datetime(6).$type<string>().defaultRaw("'-infinity'"),
  },
});

/** The event log: one row for each applied change, `seq` one sequence per node, equal to commit order. */
export const TransactionEvent = defineEntity({
  name: 'TransactionEvent',
  tableName: 'transaction_events',
  properties: {
    nodeId: p.uuid().primary(),
    seq: p.bigint().$type<string>().primary(),
    transactionId: p.text(),
    status: p.smallint(),
    previousStatus: p.smallint().nullable(),
    correlationId: p.text(),
    transaction: p.json().$type<Record<string, unknown>>(),
    traceparent: p.text().nullable(),
    occurredAt: p.datetime(6).$type<string>().defaultRaw('clock_timestamp()'),
  },
});

/** The last sequence number given in a node; locked as the last step of an applying transaction. */
export const NodeEventSeq = defineEntity({
  name: 'NodeEventSeq',
  tableName: 'node_event_seq',
  properties: {
    nodeId: p.uuid().primary(),
    seq: p.bigint().$type<string>().default('0'),
  },
});

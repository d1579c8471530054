import { defineEntity, p } from '@mikro-orm/core';
import { ofNode, withinNode } from './references.ts';
import type { TransactionCollection, TransactionSnapshot, TransactionStatus } from './transaction-content.ts';

/**
 * A transaction id, whose row is locked both to park a notification and to register the transaction, so that each sees
 * the other. It belongs to no tenant.
 */
export const TransactionId = defineEntity({
  name: 'TransactionId',
  tableName: 'transaction_ids',
  properties: { id: p.text().primary() },
});

/**
 * A registered transaction with the join of its notifications, in the mirror (docs/contract.md, 2.7 and 3-01). A
 * column `…Key` has the order key of the notification from which the value of the column before it comes.
 */
export const Transaction = defineEntity({
  name: 'Transaction',
  tableName: 'transactions',
  properties: {
    id: p.manyToOne(TransactionId).fieldName('id').updateRule('no action').deleteRule('no action').primary(),
    nodeId: ofNode(),
    collection: p.text().$type<TransactionCollection>(),
    registeredType: p.integer(),
    registeredBy: p.enum(['mutation', 'topic']),
    assetId: p.uuid().nullable(),
    type: p.integer(),
    status: p.smallint().$type<TransactionStatus>().nullable(),
    statusKey: p.text().collation('C').nullable(),
    error: p.text().nullable(),
    transactionHash: p.text().default(''),
    transactionHashKey: p.text().collation('C').nullable(),
    contractAddress: p.text().default(''),
    contractAddressKey: p.text().collation('C').nullable(),
    gasUsed: p.decimal().precision(20).scale(0).$type<string>().default('0'),
    gasUsedKey: p.text().collation('C').nullable(),
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
  uniques: [{ properties: ['nodeId', 'id'] }],
  indexes: [
    // The columns after the order are those of filters, so that a page reads no rows that do not match.
    {
      name: 'transactions_registered',
      properties: ['nodeId', 'registeredAt', 'id', 'collection', 'type', 'status', 'updatedSeconds', 'updatedNanos'],
    },
    { name: 'transactions_updated', properties: ['nodeId', 'updatedSeconds', 'updatedNanos', 'status'] },
    {
      name: 'transactions_not_done',
      properties: ['nodeId', 'status', 'registeredAt', 'id'],
      where: 'status <> 3',
    },
    // Few writes change it. Those in progress, for which it has no entries, are in the one before.
    {
      name: 'transactions_by_type',
      properties: ['nodeId', 'type', 'collection'],
      where: 'status is null or status in (3, 4)',
    },
    {
      name: 'transactions_by_hash_start',
      expression:
        'create index transactions_by_hash_start on transactions using btree (node_id, "left"(transaction_hash, 512)) where (transaction_hash <> \'\'::text)',
    },
    {
      name: 'transactions_in_conflict',
      properties: ['nodeId', 'registeredAt', 'id'],
      where: 'done_seen and error_seen',
    },
    {
      name: 'transactions_flagged',
      properties: ['nodeId', 'registeredAt', 'id'],
      where: `type < 1 or (collection = 'token_transactions' and type > 22)
        or (collection = 'node_transactions' and type > 60) or (collection = 'user_transactions' and type > 10)`,
    },
    { name: 'transactions_of_asset', properties: ['assetId'], where: 'asset_id is not null' },
  ],
});

/**
 * A parked notification, stored as received, because its transaction is not registered yet. It belongs to no tenant.
 */
export const ParkedNotification = defineEntity({
  name: 'ParkedNotification',
  tableName: 'parked_notifications',
  properties: {
    id: p.manyToOne(TransactionId).fieldName('id').primary(),
    bodySha256: p.blob().$type<Uint8Array>().primary(),
    body: p.blob().$type<Uint8Array>(),
    correlationId: p.text(),
    traceparent: p.text().nullable(),
    parkedAt: p.datetime(6).$type<string>().defaultRaw('now()'),
  },
});

/**
 * The pending lookup of a transaction id that has parked notifications but no registration: the owner will be asked at
 * `dueAt`. It belongs to no tenant.
 */
export const TransactionLookup = defineEntity({
  name: 'TransactionLookup',
  tableName: 'transaction_lookups',
  properties: {
    id: p.text().primary(),
    attempts: p.integer().default(0),
    dueAt: p.datetime(6).$type<string>().defaultRaw("'-infinity'").index('transaction_lookups_turn'),
  },
});

/**
 * A row of the event log: one applied change of a transaction. `seq` is the sequence number within the tenant, in
 * commit order.
 */
export const TransactionEvent = defineEntity({
  name: 'TransactionEvent',
  tableName: 'transaction_events',
  properties: {
    nodeId: p.uuid().primary(),
    seq: p.bigint().$type<string>().primary(),
    transactionId: p.text(),
    registered: withinNode(Transaction, 'transaction_id'),
    status: p.smallint().$type<TransactionStatus>(),
    previousStatus: p.smallint().$type<TransactionStatus>().nullable(),
    correlationId: p.text(),
    transaction: p.json().$type<TransactionSnapshot>(),
    traceparent: p.text().nullable(),
    occurredAt: p.datetime(6).$type<string>().defaultRaw('clock_timestamp()'),
  },
  indexes: [{ name: 'transaction_events_of_transaction', properties: ['transactionId', 'seq'] }],
});

/**
 * The last sequence number that a tenant's events were given, and the server's timeline at that time. An applying
 * transaction locks this row as its last step.
 */
export const NodeEventSeq = defineEntity({
  name: 'NodeEventSeq',
  tableName: 'node_event_seq',
  properties: {
    nodeId: ofNode().updateRule('no action').deleteRule('no action').primary(),
    seq: p.bigint().$type<string>().defaultRaw('0'),
    timeline: p.integer().nullable(),
  },
});

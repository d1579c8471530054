import { defineEntity, p } from '@mikro-orm/core';

/**
 * The audit record of a request that was answered or aborted. The table is partitioned by month of `at`; `nodeId` is
 * null if neither a token nor a client identifies the tenant.
 * A record of release 0.1.0 has none of the columns from `chainId` on.
 */
export const AuditRecord = defineEntity({
  name: 'AuditRecord',
  tableName: 'audit_records',
  properties: {
    at: p.datetime(6).$type<string>().primary(),
    id: p.uuid().primary(),
    nodeId: p.uuid().nullable(),
    correlationId: p.text().index('audit_records_correlation'),
    method: p.text(),
    path: p.text(),
    query: p.text().nullable(),
    statusCode: p.integer(),
    elapsed: p.double(),
    headers: p.json().$type<Record<string, string | string[]>>(),
    remoteAddress: p.text(),
    realIp: p.text(),
    requestBody: p.text().nullable(),
    requestBytes: p.bigint().$type<string>(),
    responseBody: p.text().nullable(),
    responseBytes: p.bigint().$type<string>(),
    isApi: p.boolean(),
    aborted: p.boolean().default(false),
    chainId: p.uuid().nullable(),
    chainIndex: p.bigint().$type<string>().nullable(),
    previousHash: p.blob().$type<Uint8Array>().nullable(),
    hash: p.blob().$type<Uint8Array>().nullable(),
    salts: p.blob().$type<Uint8Array>().nullable(),
    subject: p.text().nullable(),
    clientId: p.text().nullable(),
    operation: p.text().nullable(),
    notedUsers: p.array().columnType('uuid[]').$type<readonly string[]>().nullable(),
    /** The digests of the query and the bodies, once an erasure has removed them. */
    digests: p.array().$type<readonly string[]>().nullable(),
    /**
     * The order of arrival in the database: a number of a sequence, given when the record is inserted; null for records of
     * 0.1.0. Concurrent inserts may commit in another order, and rolled back ones leave gaps, so that `AuditArrivals` reads
     * no record behind one that an open transaction may still add.
     */
    position: p.bigint().$type<string>().nullable().autoincrement(),
  },
  indexes: [
    {
      name: 'audit_records_page',
      expression: 'create index audit_records_page on only audit_records using btree (node_id, at desc, id desc)',
    },
    {
      name: 'audit_records_position',
      expression:
        'create index audit_records_position on only audit_records using brin (coalesce("position", (0)::bigint), at) with (autosummarize=\'on\')',
    },
    { name: 'audit_records_chain', properties: ['chainId', 'chainIndex'], where: 'chain_id is not null' },
    { name: 'audit_records_users', properties: ['notedUsers'], type: 'gin', where: 'noted_users is not null' },
  ],
});

/** A signed statement about chains of audit records. Positions are without gaps from 1 on. */
export const AuditSeal = defineEntity({
  name: 'AuditSeal',
  tableName: 'audit_seals',
  properties: {
    position: p.bigint().$type<string>().primary().autoincrement(false),
    chainId: p.uuid().nullable(),
    kind: p.text(),
    body: p.text(),
    signature: p.blob().$type<Uint8Array>().nullable(),
  },
  indexes: [{ name: 'audit_seals_of_chain', properties: ['chainId', 'position'], where: 'chain_id is not null' }],
});

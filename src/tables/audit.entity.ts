import { defineEntity, p } from '@mikro-orm/core';
import { ofNode, withinNode } from './references.ts';

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

/** An export of audit records that somebody of a tenant has asked for. */
export const AuditExport = defineEntity({
  name: 'AuditExport',
  tableName: 'audit_exports',
  properties: {
    id: p.uuid().primary(),
    nodeId: ofNode(),
    status: p.enum(['waiting', 'running', 'ready', 'failed', 'expired']),
    /** The filter as it was asked for, which the manifest has. */
    asked: p.json().$type<Record<string, string>>(),
    /** The conditions of the filter. */
    filter: p.json().$type<object>(),
    requestedBy: p.text(),
    createdAt: p.datetime(6).$type<string>(),
    finishedAt: p.datetime(6).$type<string>().nullable(),
    expiresAt: p.datetime(6).$type<string>().nullable(),
    /** The records that are written so far, of how many; null until that is known. */
    records: p.integer().defaultRaw('0'),
    total: p.integer().nullable(),
    /** The bytes of its files so far. */
    bytes: p.integer().defaultRaw('0'),
    /** The number of findings of the verification. */
    problems: p.integer().nullable(),
    /** Why it failed. */
    reason: p.text().nullable(),
    /** The last part of the next download's path; each download replaces it. */
    downloadKey: p.uuid().nullable(),
    /** What another process continues with. */
    state: p.json().$type<object>().nullable(),
    leaseOwner: p.uuid().nullable(),
    leaseUntil: p.datetime(6).$type<string>().nullable(),
  },
  uniques: [{ properties: ['nodeId', 'id'] }],
  indexes: [
    { name: 'audit_exports_page', properties: ['nodeId', 'createdAt', 'id'] },
    {
      name: 'audit_exports_open',
      expression:
        "create unique index audit_exports_open on audit_exports using btree (node_id) where (status = any (array['waiting'::text, 'running'::text]))",
    },
  ],
});

/** A chunk of a file of an export. They are deleted when the export expires or fails. */
export const AuditExportChunk = defineEntity({
  name: 'AuditExportChunk',
  tableName: 'audit_export_chunks',
  properties: {
    exportId: p.uuid().primary(),
    /** The number of the chunk in its export, from 0. */
    seq: p.integer().primary(),
    nodeId: p.uuid(),
    auditExport: withinNode(AuditExport, 'export_id').deleteRule('cascade'),
    file: p.text(),
    bytes: p.blob().$type<Uint8Array>(),
  },
  indexes: [{ name: 'audit_export_chunks_file', properties: ['exportId', 'file', 'seq'] }],
});

/**
 * A change of a client, a supervisor, a user or the networks of a wallet: triggers of their tables insert it. `changes` has the
 * value before and after by column; both are null for a secret and for personal data. The author is null where the writer did
 * not say who it is.
 */
export const Activity = defineEntity({
  name: 'Activity',
  tableName: 'activity',
  properties: {
    id: p.uuid().primary().defaultRaw('gen_random_uuid()'),
    nodeId: ofNode(),
    ofId: p.uuid(),
    at: p.datetime(6).$type<string>().defaultRaw('clock_timestamp()'),
    isNew: p.boolean(),
    changes: p.json().$type<Record<string, readonly [before: unknown, after: unknown]>>(),
    subject: p.text().nullable(),
    clientId: p.text().nullable(),
    /** The correlation id of the request in the form that its audit record has. */
    correlationId: p.text().nullable(),
  },
  indexes: [{ name: 'activity_of', properties: ['nodeId', 'ofId', 'at', 'id'] }],
});

/**
 * A group of what needs a decision that somebody has seen: its kind, and a hash of its reason. It counts while `members` has
 * all that is in the group.
 */
export const SeenAttention = defineEntity({
  name: 'SeenAttention',
  tableName: 'seen_attention',
  properties: {
    id: p.uuid().primary(),
    nodeId: ofNode(),
    kind: p.text(),
    key: p.text(),
    members: p.array().$type<string[]>(),
    note: p.text().nullable(),
    seenBy: p.text(),
    seenAt: p.datetime(6).$type<string>(),
  },
  uniques: [{ name: 'seen_attention_group', properties: ['nodeId', 'kind', 'key'] }],
});

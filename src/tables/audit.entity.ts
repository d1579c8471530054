import { defineEntity, p } from '@mikro-orm/core';

/**
 * The audit record of a request that was answered or aborted. The table is partitioned by month of `at`; `nodeId` is
 * null if neither a token nor a client identifies the tenant.
 */
export const AuditRecord = defineEntity({
  name: 'AuditRecord',
  tableName: 'audit_records',
  properties: {
    at: p.datetime(6).$type<string>().primary(),
    id: p.uuid().primary(),
    nodeId: p.uuid().nullable(),
    correlationId: p.text(),
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
  },
});

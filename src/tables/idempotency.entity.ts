import { defineEntity, p } from '@mikro-orm/core';
import { ofNode } from './references.ts';

/**
 * The stored response to a request with an idempotency key. `scope` is the SHA-256 of the caller, the method and path,
 * and the key.
 */
export const IdempotentAnswer = defineEntity({
  name: 'IdempotentAnswer',
  tableName: 'idempotent_answers',
  properties: {
    nodeId: ofNode().primary(),
    scope: p.blob().$type<Uint8Array>().primary(),
    bodySha256: p.blob().$type<Uint8Array>(),
    status: p.integer(),
    headers: p.json().$type<Record<string, string>>(),
    body: p.text().nullable(),
    notedUsers: p.array().columnType('uuid[]').$type<readonly string[]>().nullable(),
    createdAt: p.datetime(6).$type<string>().index('idempotent_answers_end'),
  },
});

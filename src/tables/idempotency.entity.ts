import { defineEntity, p } from '@mikro-orm/core';

/** The answer that a request under a key was given. `scope` is the SHA-256 of who called what under which key. */
export const IdempotentAnswer = defineEntity({
  name: 'IdempotentAnswer',
  tableName: 'idempotent_answers',
  properties: {
    nodeId: p.uuid().primary(),
    scope: p.blob().$type<Uint8Array>().primary(),
    bodySha256: p.blob().$type<Uint8Array>(),
    status: p.integer(),
    headers: p.json().$type<Record<string, string>>(),
    body: p.text().nullable(),
    createdAt: p.datetime(6).$type<string>(),
  },
});

import { defineEntity, p } from '@mikro-orm/core';

/** A login: lives until it expires or is revoked. The cache answers, this table decides. */
export const Session = defineEntity({
  name: 'Session',
  tableName: 'sessions',
  properties: {
    id: p.uuid().primary(),
    nodeId: p.uuid(),
    supervisorId: p.uuid(),
    clientId: p.uuid(),
    createdAt: p.datetime(6).$type<string>().defaultRaw('now()'),
    expiresAt: p.datetime(6).$type<string>(),
    revokedAt: p.datetime(6).$type<string>().nullable(),
  },
});

import { defineEntity, p } from '@mikro-orm/core';

/** A refresh token that may not be redeemed again: one of reuse detection, or one without `iat`. By its SHA-256. */
export const SpentRefreshToken = defineEntity({
  name: 'SpentRefreshToken',
  tableName: 'spent_refresh_tokens',
  properties: {
    clientId: p.uuid().primary(),
    digest: p.blob().$type<Uint8Array>().primary(),
    nodeId: p.uuid(),
    spentAt: p.datetime(6).$type<string>(),
    expiresAt: p.datetime(6).$type<string>().nullable(),
  },
});

/** An API token that was revoked, by its `jti`, or a whole family of them. Without an end: as long as the client. */
export const RevokedToken = defineEntity({
  name: 'RevokedToken',
  tableName: 'revoked_tokens',
  properties: {
    clientId: p.uuid().primary(),
    tokenId: p.text().primary(),
    nodeId: p.uuid(),
    expiresAt: p.datetime(6).$type<string>().nullable(),
  },
});

/** What has ended, for the other replicas: each reads on from where it was. In the order in which it was committed. */
export const AccessChange = defineEntity({
  name: 'AccessChange',
  tableName: 'access_changes',
  properties: {
    seq: p.bigint().$type<string>().primary().autoincrement(),
    kind: p.text().$type<'client' | 'session' | 'token'>(),
    nodeId: p.uuid(),
    subject: p.text(),
    item: p.text().nullable(),
    createdAt: p.datetime(6).$type<string>().defaultRaw('now()'),
  },
});

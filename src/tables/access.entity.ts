import { defineEntity, p } from '@mikro-orm/core';

/**
 * A machine client (specification section 2.2); `id` is the `client_id`. An absent limit is null: unlimited. What was
 * issued before `tokensFrom` (whole seconds) has ended, of its own tokens what was issued before `ownTokensFrom`.
 */
export const Client = defineEntity({
  name: 'Client',
  tableName: 'clients',
  properties: {
    id: p.uuid().primary(),
    nodeId: p.uuid(),
    name: p.text(),
    grantTypes: p.array().$type<string[]>(),
    scopes: p.array().$type<string[]>(),
    tokenExpiryEnabled: p.boolean().default(true),
    tokenExpiryDuration: p.integer().nullable(),
    allowedIps: p.array().$type<string[]>().defaultRaw("'{}'"),
    requireCertificate: p.boolean().default(false),
    certFingerprint: p.text().nullable(),
    requestsPerSecond: p.integer().nullable(),
    requestsPerMinute: p.integer().nullable(),
    requestsPerHour: p.integer().nullable(),
    monthlyLimit: p.integer().nullable(),
    refreshReuseDetection: p.boolean().default(false),
    status: p.text().$type<'active' | 'disabled'>().default('active'),
    tokensFrom: p.datetime(6).$type<string>().nullable(),
    ownTokensFrom: p.datetime(6).$type<string>().nullable(),
    lastUsedAt: p.datetime(6).$type<string>().nullable(),
    createdAt: p.datetime(6).$type<string>().defaultRaw('now()'),
    updatedAt: p.datetime(6).$type<string>().defaultRaw('now()'),
  },
});

/** One of at most two live secrets of a client: the HMAC-SHA256 of the secret, never the secret. */
export const ClientSecret = defineEntity({
  name: 'ClientSecret',
  tableName: 'client_secrets',
  properties: {
    hash: p.blob().$type<Uint8Array>().primary(),
    clientId: p.uuid(),
    nodeId: p.uuid(),
    createdAt: p.datetime(6).$type<string>().defaultRaw('now()'),
    expiresAt: p.datetime(6).$type<string>().nullable(),
  },
});

/** How much of its quota a client has used in a calendar month (`YYYY-MM`, UTC), as last saved. */
export const ClientQuota = defineEntity({
  name: 'ClientQuota',
  tableName: 'client_quotas',
  properties: {
    clientId: p.uuid().primary(),
    month: p.text().primary(),
    nodeId: p.uuid(),
    used: p.bigint().$type<string>(),
  },
});

/** A person who logs in by the password grant. `passwordHash` is an Argon2id PHC string. */
export const Supervisor = defineEntity({
  name: 'Supervisor',
  tableName: 'supervisors',
  properties: {
    id: p.uuid().primary(),
    nodeId: p.uuid(),
    username: p.text(),
    passwordHash: p.text(),
    role: p.text(),
    status: p.text().$type<'active' | 'disabled'>().default('active'),
    createdAt: p.datetime(6).$type<string>().defaultRaw('now()'),
    updatedAt: p.datetime(6).$type<string>().defaultRaw('now()'),
  },
});

/** A failed login, whether or not the (lower-cased) username exists. */
export const LoginFailure = defineEntity({
  name: 'LoginFailure',
  tableName: 'login_failures',
  properties: {
    id: p.uuid().primary(),
    nodeId: p.uuid(),
    username: p.text(),
    failedAt: p.datetime(6).$type<string>(),
  },
});

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

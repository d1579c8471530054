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

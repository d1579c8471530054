import { defineEntity, p } from '@mikro-orm/core';
import { ofNode, withinNode } from './references.ts';

/**
 * A registered client (docs/contract.md, 2.2-01); `id` is the `client_id`. A limit that is null means unlimited.
 * Tokens issued before `tokensFrom` (whole seconds) are revoked; of the client's own API tokens also those issued
 * before `ownTokensFrom`.
 */
export const Client = defineEntity({
  name: 'Client',
  tableName: 'clients',
  properties: {
    id: p.uuid().primary(),
    nodeId: ofNode(),
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
    isConsole: p.boolean().default(false),
    status: p.enum(['active', 'disabled']).default('active'),
    tokensFrom: p.datetime(6).$type<string>().nullable(),
    ownTokensFrom: p.datetime(6).$type<string>().nullable(),
    lastUsedAt: p.datetime(6).$type<string>().nullable(),
    createdAt: p.datetime(6).$type<string>().defaultRaw('now()'),
    updatedAt: p.datetime(6).$type<string>().defaultRaw('now()'),
  },
  uniques: [{ properties: ['nodeId', 'id'] }],
});

/**
 * A secret of a client, as HMAC-SHA256 only; at most two per client are valid at a time. It does not expire if
 * `expiresAt` is null.
 */
export const ClientSecret = defineEntity({
  name: 'ClientSecret',
  tableName: 'client_secrets',
  properties: {
    hash: p.blob().$type<Uint8Array>().primary(),
    clientId: p.uuid().index('client_secrets_of_client'),
    nodeId: p.uuid(),
    client: withinNode(Client, 'client_id'),
    createdAt: p.datetime(6).$type<string>().defaultRaw('now()'),
    expiresAt: p.datetime(6).$type<string>().nullable(),
  },
});

/** The requests that a client has used of its quota in a calendar month (`YYYY-MM`, UTC), as last saved. */
export const ClientQuota = defineEntity({
  name: 'ClientQuota',
  tableName: 'client_quotas',
  properties: {
    clientId: p.uuid().primary(),
    month: p.text().primary(),
    nodeId: p.uuid(),
    client: withinNode(Client, 'client_id'),
    used: p.bigint().$type<string>(),
  },
});

/**
 * A supervisor: a person who logs in with the password grant. `passwordHash` is an Argon2id hash in PHC string format.
 */
export const Supervisor = defineEntity({
  name: 'Supervisor',
  tableName: 'supervisors',
  properties: {
    id: p.uuid().primary(),
    nodeId: ofNode(),
    username: p.text(),
    /** Tells supervisors apart whose usernames have one key: numbers from 0. Only rows of 0.1.0 have others than 0. */
    usernameClash: p.integer().default(0),
    passwordHash: p.text(),
    role: p.text(),
    status: p.enum(['active', 'disabled']).default('active'),
    /** When somebody ended its lockout last. */
    unlockedAt: p.datetime(6).$type<string>().nullable(),
    createdAt: p.datetime(6).$type<string>().defaultRaw('now()'),
    updatedAt: p.datetime(6).$type<string>().defaultRaw('now()'),
  },
  uniques: [
    { properties: ['nodeId', 'id'] },
    {
      name: 'supervisors_username',
      expression: 'create unique index supervisors_username on supervisors using btree (node_id, lower(username))',
    },
    {
      name: 'supervisors_username_key',
      expression:
        'create unique index supervisors_username_key on supervisors using btree (node_id, identifier_key(username), username_clash)',
    },
  ],
});

/**
 * A failed login attempt for the key of a username, whether or not that username exists. `address` is where a sign-in
 * to the console came from; null for the token endpoint.
 */
export const LoginFailure = defineEntity({
  name: 'LoginFailure',
  tableName: 'login_failures',
  properties: {
    id: p.uuid().primary(),
    nodeId: ofNode(),
    username: p.text(),
    address: p.text().nullable(),
    failedAt: p.datetime(6).$type<string>().index('login_failures_end'),
  },
  indexes: [{ name: 'login_failures_of_username', properties: ['nodeId', 'username', 'failedAt'] }],
});

/**
 * A session, which begins with a login and ends by expiry or revocation. Processes cache rows; this table is
 * authoritative.
 */
export const Session = defineEntity({
  name: 'Session',
  tableName: 'sessions',
  properties: {
    id: p.uuid().primary(),
    nodeId: p.uuid(),
    supervisorId: p.uuid(),
    clientId: p.uuid(),
    supervisor: withinNode(Supervisor, 'supervisor_id'),
    client: withinNode(Client, 'client_id'),
    createdAt: p.datetime(6).$type<string>().defaultRaw('now()'),
    expiresAt: p.datetime(6).$type<string>(),
    revokedAt: p.datetime(6).$type<string>().nullable(),
  },
  indexes: [
    { name: 'sessions_live', properties: ['nodeId', 'supervisorId', 'createdAt'], where: 'revoked_at is null' },
    { name: 'sessions_of_client', properties: ['nodeId', 'clientId'], where: 'revoked_at is null' },
  ],
});

interface TokenClaims {
  iat: number;
  scope: string;
  [name: string]: unknown;
}

/** The claims of an access token and a refresh token that are issued together. */
export interface TokenPair {
  access: TokenClaims;
  refresh: TokenClaims;
  expires_in: number;
}

/**
 * A refresh token that may be redeemed only once and has been (because of reuse detection, or because it has no `iat`),
 * as its SHA-256 digest. The row is kept for ever if `expiresAt` is null.
 */
export const SpentRefreshToken = defineEntity({
  name: 'SpentRefreshToken',
  tableName: 'spent_refresh_tokens',
  properties: {
    clientId: p.uuid().primary(),
    digest: p.blob().$type<Uint8Array>().primary(),
    nodeId: p.uuid(),
    client: withinNode(Client, 'client_id'),
    spentAt: p.datetime(6).$type<string>(),
    successor: p.json().$type<TokenPair>().nullable(),
    expiresAt: p.datetime(6).$type<string>().nullable(),
  },
  indexes: [{ name: 'spent_refresh_tokens_end', properties: ['expiresAt'], where: 'expires_at is not null' }],
});

/**
 * A revoked API token, by its `jti`, or a revoked refresh token family. The row is kept as long as the client if
 * `expiresAt` is null.
 */
export const RevokedToken = defineEntity({
  name: 'RevokedToken',
  tableName: 'revoked_tokens',
  properties: {
    clientId: p.uuid().primary(),
    tokenId: p.text().primary(),
    nodeId: p.uuid(),
    client: withinNode(Client, 'client_id'),
    expiresAt: p.datetime(6).$type<string>().nullable(),
  },
  indexes: [{ name: 'revoked_tokens_end', properties: ['expiresAt'], where: 'expires_at is not null' }],
});

/**
 * A revocation of a session or token, or a change of a client, from which every process learns of it; `seq` rises in
 * commit order.
 */
export const AccessChange = defineEntity({
  name: 'AccessChange',
  tableName: 'access_changes',
  properties: {
    seq: p.bigint().$type<string>().primary().autoincrement().generated('identity'),
    kind: p.enum(['client', 'session', 'token']),
    nodeId: ofNode(),
    subject: p.text(),
    item: p.text().nullable(),
    createdAt: p.datetime(6).$type<string>().defaultRaw('now()').index('access_changes_end'),
  },
});

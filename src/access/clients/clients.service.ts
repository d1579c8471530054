import { createHmac, type KeyObject } from 'node:crypto';
import type { Selectable } from 'kysely';
import { isoFromPg } from '../../lib/instants.ts';
import type { Db } from '../../platform/database/database.ts';
import { keysetList } from '../../platform/database/keyset-list.ts';
import type { Tables } from '../../tables/tables.ts';
import type { ClientRecord } from '../identity/callers.ts';

/** The lifetime of access tokens, in seconds, for clients without a configured duration. */
export const DEFAULT_DURATION_SECONDS = 3600;

/** Returns the client with this id, active or disabled; undefined when there is none. */
export async function findClient(db: Db, clientId: string): Promise<ClientRecord | undefined> {
  const [row] = await db
    .unscoped('a client is looked up before its node is known')
    .run((k) => k.selectFrom('clients').selectAll().where('id', '=', clientId));
  return row && toRecord(row);
}

/** Returns the hash under which a client secret is stored: HMAC-SHA256 with the pepper as its key. */
export function hashClientSecret(pepper: string | KeyObject, secret: string): Buffer {
  return createHmac('sha256', pepper).update(secret, 'utf8').digest();
}

function toRecord(row: ClientRow): ClientRecord {
  const tokensFromSeconds = secondsOf(row.tokens_from);
  return {
    clientId: row.id,
    nodeId: row.node_id,
    name: row.name,
    grantTypes: row.grant_types,
    scopes: row.scopes,
    tokenExpiry: {
      enabled: row.token_expiry_enabled,
      durationSeconds: row.token_expiry_duration ?? DEFAULT_DURATION_SECONDS,
    },
    allowedIps: row.allowed_ips,
    requireCertificate: row.require_certificate,
    certFingerprint: row.cert_fingerprint ?? undefined,
    limits: {
      perSecond: row.requests_per_second ?? 0,
      perMinute: row.requests_per_minute ?? 0,
      perHour: row.requests_per_hour ?? 0,
      perMonth: row.monthly_limit ?? 0,
    },
    refreshReuseDetection: row.refresh_reuse_detection,
    isConsole: row.is_console,
    active: row.status === 'active',
    tokensFromSeconds,
    ownTokensFromSeconds: Math.max(tokensFromSeconds, secondsOf(row.own_tokens_from)),
  };
}

function secondsOf(time: string | null): number {
  return time === null ? 0 : Math.ceil(Date.parse(isoFromPg(time)) / 1000);
}

/** A row of `clients`, which has no secret; times are PostgreSQL's text in UTC, to the microsecond. */
export type ClientRow = Selectable<Tables['clients']>;

/** Returns the members of a client that can be changed, and `is_console`, in the REST names; null is a limit that is not set. */
export function clientMembers(row: ClientRow) {
  return {
    name: row.name,
    grant_types: row.grant_types,
    scopes: row.scopes,
    token_expiry: {
      enabled: row.token_expiry_enabled,
      duration: row.token_expiry_duration ?? DEFAULT_DURATION_SECONDS,
    },
    allowed_ips: row.allowed_ips,
    require_certificate: row.require_certificate,
    cert_fingerprint: row.cert_fingerprint,
    rate_limit: {
      requests_per_second: row.requests_per_second,
      requests_per_minute: row.requests_per_minute,
      requests_per_hour: row.requests_per_hour,
    },
    monthly_limit: row.monthly_limit,
    refresh_reuse_detection: row.refresh_reuse_detection,
    is_console: row.is_console,
  };
}

/** What `clientMembers` returns. */
export type ClientMembers = ReturnType<typeof clientMembers>;

/** Reads the clients of a tenant by keyset, active or not, oldest first. */
export const ClientPages = keysetList({
  rows: (k) => k.selectFrom('clients').selectAll(),
  order: ['created_at', 'id'],
});

import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import type { RotatingSecret } from '../config/secrets.ts';
import type { Db } from '../db.ts';
import { isoFromPg } from '../lib/pg-time.ts';
import type { ClientRecord } from './client-record.ts';

/** How long tokens of a client without a duration live. */
export const DEFAULT_DURATION_SECONDS = 3600;

/** A secret's client, and when the secret ends. */
export interface ClientSecretRecord {
  clientId: string;
  endsAtMs: number | undefined;
}

/** Reads clients and their secrets. */
export class Clients {
  readonly #db: Db;
  readonly #peppers: readonly KeyObject[];

  constructor(db: Db, pepper: RotatingSecret) {
    this.#db = db;
    const { current, previous } = pepper;
    const peppers = previous === undefined ? [current] : [current, previous];
    this.#peppers = peppers.map((text) => createSecretKey(text, 'utf8'));
  }

  /** The client with this id, whatever its status; undefined where there is none. */
  async find(clientId: string): Promise<ClientRecord | undefined> {
    const [row] = await this.#db
      .unscoped('a client is known before its node is')
      .run((k) => k.selectFrom('clients').selectAll().where('id', '=', clientId));
    return row && toRecord(row);
  }

  /** Whose secret this is; undefined where it is nobody's. Looked up by hash: no comparison tells how much was right. */
  async findBySecret(hash: Buffer): Promise<ClientSecretRecord | undefined> {
    const [row] = await this.#db
      .unscoped('a client is known before its node is')
      .run((k) => k.selectFrom('client_secrets').select(['client_id', 'expires_at']).where('hash', '=', hash));
    if (!row) return undefined;
    const endsAtMs = row.expires_at === null ? undefined : Date.parse(isoFromPg(row.expires_at));
    return { clientId: row.client_id, endsAtMs };
  }

  /** The hashes that a secret may be stored under: of the pepper, and of the one that it is replacing. */
  hashesOf(secret: string): Buffer[] {
    return this.#peppers.map((pepper) => hashClientSecret(pepper, secret));
  }
}

/** How a client secret is stored: HMAC-SHA256 under the pepper. */
export function hashClientSecret(pepper: string | KeyObject, secret: string): Buffer {
  return createHmac('sha256', pepper).update(secret, 'utf8').digest();
}

interface ClientRow {
  id: string;
  node_id: string;
  name: string;
  grant_types: string[];
  scopes: string[];
  token_expiry_enabled: boolean;
  token_expiry_duration: number | null;
  allowed_ips: string[];
  require_certificate: boolean;
  cert_fingerprint: string | null;
  requests_per_second: number | null;
  requests_per_minute: number | null;
  requests_per_hour: number | null;
  monthly_limit: number | null;
  refresh_reuse_detection: boolean;
  tokens_from: string | null;
  own_tokens_from: string | null;
  status: 'active' | 'disabled';
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
    rateLimit: {
      perSecond: row.requests_per_second ?? undefined,
      perMinute: row.requests_per_minute ?? undefined,
      perHour: row.requests_per_hour ?? undefined,
    },
    monthlyLimit: row.monthly_limit ?? undefined,
    refreshReuseDetection: row.refresh_reuse_detection,
    active: row.status === 'active',
    tokensFromSeconds,
    ownTokensFromSeconds: Math.max(tokensFromSeconds, secondsOf(row.own_tokens_from)),
  };
}

function secondsOf(time: string | null): number {
  return time === null ? 0 : Math.ceil(Date.parse(isoFromPg(time)) / 1000);
}

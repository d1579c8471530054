import { createHmac } from 'node:crypto';
import type { RotatingSecret } from '../config/secrets.ts';
import type { Db } from '../db.ts';
import type { ClientRecord } from './client-record.ts';

const DEFAULT_DURATION_SECONDS = 3600;

/** Reads clients and judges their secrets. */
export class Clients {
  readonly #db: Db;
  readonly #peppers: readonly string[];

  constructor(db: Db, pepper: RotatingSecret) {
    this.#db = db;
    this.#peppers = pepper.previous === undefined ? [pepper.current] : [pepper.current, pepper.previous];
  }

  /** The client with this id, whatever its status; undefined where there is none. */
  async find(clientId: string): Promise<ClientRecord | undefined> {
    const [row] = await this.#db
      .unscoped('a client is known before its node is')
      .run((k) => k.selectFrom('clients').selectAll().where('id', '=', clientId));
    return row && toRecord(row);
  }

  /**
   * The active client with this id and a live secret; undefined for anything else, after the same work. The secret is
   * looked up by its HMAC, so that no comparison tells how much of it was right.
   */
  async authenticate(clientId: string, secret: string): Promise<ClientRecord | undefined> {
    const hashes = this.#peppers.map((pepper) => hashClientSecret(pepper, secret));
    const [row] = await this.#db.unscoped('a client is known before its node is').run((k) =>
      k
        .selectFrom('client_secrets as s')
        .innerJoin('clients as c', 'c.id', 's.client_id')
        .selectAll('c')
        .where('s.hash', 'in', hashes)
        .where('c.id', '=', clientId)
        .where('c.status', '=', 'active')
        .where((eb) => eb.or([eb('s.expires_at', 'is', null), eb('s.expires_at', '>', eb.fn<string>('now'))])),
    );
    return row && toRecord(row);
  }
}

/** How a client secret is stored: HMAC-SHA256 under the pepper. */
export function hashClientSecret(pepper: string, secret: string): Buffer {
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
  status: 'active' | 'disabled';
}

function toRecord(row: ClientRow): ClientRecord {
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
    active: row.status === 'active',
  };
}

import { randomBytes } from 'node:crypto';
import type { Db } from '../db.ts';
import { notFoundRefusal } from '../errors/refusal.ts';
import { isUuid } from '../lib/input.ts';
import { isoFromPg } from '../lib/pg-time.ts';
import { sqlState } from '../lib/sql-state.ts';
import { uuidV7 } from '../lib/uuid-v7.ts';
import type { AccessChange, AccessChanges } from '../oauth/access-changes.ts';
import type { Administrator } from '../oauth/administration.rules.ts';
import { refuseAdministration } from '../oauth/administration.ts';
import type { DatabaseClock } from '../oauth/database-clock.ts';
import type { Sessions } from '../oauth/sessions.ts';
import type { ClientInput } from './client.input.ts';
import type { ClientRow } from './client-pages.service.ts';
import { hashClientSecret } from './clients.service.ts';

const SECOND_MS = 1_000;
/** Every replica knows of a change by then. */
const HEARD_WITHIN_MS = 1_000;
const SECRET_BYTES = 32;
const FOREIGN_KEY_VIOLATION = '23503';

interface ClientAdministrationParts {
  db: Db;
  changes: Pick<AccessChanges, 'commit'>;
  /** By which what ends is told from what is issued later. */
  clock: Pick<DatabaseClock, 'read'>;
  sessions: Pick<Sessions, 'end'>;
  /** The pepper that new secrets are hashed under. */
  pepper: string;
  nowMs(): number;
}

/** A client with a secret that is told this once: only its hash is kept. */
export interface ClientWithSecret {
  client: ClientRow;
  secret: string;
}

/**
 * Creates and changes the clients of a node. Each method throws a RefusalError: `not_found` for an id that is not a
 * client's of this node, `forbidden` as the rules of administration say.
 */
export class ClientAdministration {
  readonly #parts: ClientAdministrationParts;

  constructor(parts: ClientAdministrationParts) {
    this.#parts = parts;
  }

  /** Creates an active client with one secret. */
  async create(nodeId: string, by: Administrator, input: ClientInput): Promise<ClientWithSecret> {
    const { db, nowMs } = this.#parts;
    const columns = columnsOf(input);
    await refuseAdministration(db, nodeId, by, 'create', { scopes: input.scopes, bounds: columns });
    const now = new Date(nowMs()).toISOString();
    const values = { id: uuidV7(nowMs()), ...columns, created_at: now, updated_at: now };
    try {
      return await db.transaction(async () => {
        const [client] = await db.forNode(nodeId).run((k) => k.insertInto('clients').values(values).returningAll());
        if (!client) throw notFoundRefusal();
        return { client, secret: await this.#addSecret(client) };
      });
    } catch (error) {
      // The node does not exist.
      throw sqlState(error) === FOREIGN_KEY_VIOLATION ? notFoundRefusal() : error;
    }
  }

  /**
   * Replaces everything but the id, the secrets and the status. What it takes away ends with its own tokens so far;
   * logins through it, whose permissions are their role's, go on.
   */
  replace(nodeId: string, by: Administrator, id: string, input: ClientInput): Promise<ClientRow> {
    return this.#change(nodeId, id, async (before) => {
      const columns = columnsOf(input);
      const scopes = [...before.scopes, ...input.scopes];
      const target = { clientId: before.id, scopes, bounds: columns };
      const { db, clock } = this.#parts;
      await refuseAdministration(db, nodeId, by, 'replace', target);
      if (!endsOwnTokens(before, columns)) return this.#update(before, columns);
      const own_tokens_from = tokensFrom(before.own_tokens_from, await clock.read());
      return this.#update(before, { ...columns, own_tokens_from });
    });
  }

  /**
   * Adds a secret. The newest one so far lives on for the overlap, and not beyond its own end; every older one ends now,
   * so that at most two are live.
   */
  rotateSecret(nodeId: string, by: Administrator, id: string, overlapSeconds: number): Promise<ClientWithSecret> {
    return this.#change(nodeId, id, async (before) => {
      await this.#refuse(by, 'rotate', before);
      await this.#endSecrets(before, overlapSeconds);
      const secret = await this.#addSecret(before);
      return { client: await this.#update(before, {}), secret };
    });
  }

  /**
   * Enables or disables. Disabling ends its credentials, everything that was issued to it and the logins made through
   * it; enabling brings back the credentials alone.
   */
  setStatus(nodeId: string, by: Administrator, id: string, status: ClientRow['status']): Promise<ClientRow> {
    return this.#change(nodeId, id, async (before, ended) => {
      await this.#refuse(by, status === 'active' ? 'enable' : 'disable', before);
      if (status === 'active') return this.#update(before, { status });
      await this.#parts.sessions.end(nodeId, { clientId: before.id }, ended);
      return this.#update(before, {
        status,
        tokens_from: tokensFrom(before.tokens_from, await this.#parts.clock.read()),
      });
    });
  }

  /** Runs a change of a client, which nobody else changes meanwhile, and has every replica read it anew. */
  async #change<Result>(
    nodeId: string,
    id: string,
    work: (before: ClientRow, ended: (change: AccessChange) => void) => Promise<Result>,
  ): Promise<Result> {
    if (!isUuid(id)) throw notFoundRefusal();
    const { db, changes } = this.#parts;
    return changes.commit(async (ended) => {
      const [before] = await db
        .forNode(nodeId)
        .run((k) => k.selectFrom('clients').selectAll().where('id', '=', id.toLowerCase()).forUpdate());
      if (!before) throw notFoundRefusal();
      ended({ kind: 'client', nodeId, subject: before.id, item: null });
      return work(before, ended);
    });
  }

  /** @throws RefusalError where this may not be done to a client that stays as it is. */
  #refuse(by: Administrator, change: 'rotate' | 'enable' | 'disable', client: ClientRow): Promise<void> {
    const target = { clientId: client.id, scopes: client.scopes, bounds: client };
    return refuseAdministration(this.#parts.db, client.node_id, by, change, target);
  }

  async #update({ id, node_id: nodeId }: ClientRow, set: Partial<Omit<ClientRow, 'node_id'>>): Promise<ClientRow> {
    const { db, nowMs } = this.#parts;
    const updated_at = new Date(nowMs()).toISOString();
    const [client] = await db.forNode(nodeId).run((k) =>
      k
        .updateTable('clients')
        .set({ ...set, updated_at })
        .where('id', '=', id)
        .returningAll(),
    );
    if (!client) throw notFoundRefusal();
    return client;
  }

  async #addSecret({ id, node_id: nodeId }: ClientRow): Promise<string> {
    const { db, pepper, nowMs } = this.#parts;
    const secret = randomBytes(SECRET_BYTES).toString('base64url');
    const created_at = new Date(nowMs()).toISOString();
    const row = { hash: hashClientSecret(pepper, secret), client_id: id, created_at };
    await db.forNode(nodeId).run((k) => k.insertInto('client_secrets').values(row));
    return secret;
  }

  async #endSecrets({ id, node_id: nodeId }: ClientRow, overlapSeconds: number): Promise<void> {
    const door = this.#parts.db.forNode(nodeId);
    const nowMs = this.#parts.nowMs();
    const secrets = await door.run((k) =>
      k.deleteFrom('client_secrets').where('client_id', '=', id).returning(['hash', 'created_at', 'expires_at']),
    );
    const live = secrets
      .map((secret) => ({ ...secret, endsAtMs: msOf(secret.expires_at) ?? Number.POSITIVE_INFINITY }))
      .filter(({ endsAtMs }) => endsAtMs > nowMs);
    // Of two live ones the newest has no end; a clock that went back does not make it the older one.
    const [newest] = live.toSorted((a, b) => b.endsAtMs - a.endsAtMs);
    if (!newest || overlapSeconds === 0) return;
    const endsAtMs = Math.min(newest.endsAtMs, nowMs + overlapSeconds * 1_000);
    const { hash, created_at } = newest;
    const kept = { hash, client_id: id, created_at, expires_at: new Date(endsAtMs).toISOString() };
    await door.run((k) => k.insertInto('client_secrets').values(kept));
  }
}

function columnsOf(input: ClientInput) {
  const { token_expiry, rate_limit, cert_fingerprint, monthly_limit, ...same } = input;
  return {
    ...same,
    token_expiry_enabled: token_expiry.enabled,
    token_expiry_duration: token_expiry.duration,
    cert_fingerprint: cert_fingerprint || null,
    requests_per_second: rate_limit.requests_per_second ?? null,
    requests_per_minute: rate_limit.requests_per_minute ?? null,
    requests_per_hour: rate_limit.requests_per_hour ?? null,
    monthly_limit: monthly_limit ?? null,
  };
}

/** Whether tokens so far could do, or outlast, what those from now on cannot. */
function endsOwnTokens(before: ClientRow, after: ReturnType<typeof columnsOf>): boolean {
  const hasLost = before.scopes.some((scope) => !after.scopes.includes(scope));
  return hasLost || (after.token_expiry_enabled && !before.token_expiry_enabled);
}

/**
 * From when on tokens of a client whose tokens end now are good again; `before` is when they were so far. Tokens tell whole seconds, another replica may
 * issue some until it has heard, and those of the time before have told the second that was in force then.
 */
function tokensFrom(before: string | null, nowMs: number): string {
  const heardEverywhere = (Math.floor((nowMs + HEARD_WITHIN_MS) / SECOND_MS) + 1) * SECOND_MS;
  return new Date(Math.max(heardEverywhere, (msOf(before) ?? 0) + SECOND_MS)).toISOString();
}

function msOf(time: string | null): number | undefined {
  return time === null ? undefined : Date.parse(isoFromPg(time));
}

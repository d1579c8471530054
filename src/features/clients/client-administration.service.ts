import { randomBytes } from 'node:crypto';
import {
  type Administrator,
  freerThanMaker,
  refuseAdministration,
  UNBOUND,
} from '../../access/administration/administration.ts';
import {
  type ClientMembers,
  type ClientRow,
  clientMembers,
  hashClientSecret,
} from '../../access/clients/clients.service.ts';
import type { AccessChange, AccessChanges } from '../../access/revocation/access-changes.ts';
import type { DatabaseClock } from '../../access/revocation/database-clock.ts';
import type { Sessions } from '../../access/revocation/sessions.ts';
import { isoFromPg } from '../../lib/instants.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import type { Db } from '../../platform/database/database.ts';
import { isOneOf } from '../../platform/database/keyset-list.ts';
import { idOrNotFound, invalidInput, orNotFound, withParent } from '../../platform/errors.ts';
import type { ClientInput, ClientPatch } from './client.input.ts';

const SECOND_MS = 1_000;
/** The time, in ms, within which every process learns of a change of a client. */
const HEARD_WITHIN_MS = 1_000;
const SECRET_BYTES = 32;

/**
 * A client with its new secret, which is empty for a console client. The secret is returned only here, because only its
 * hash is stored.
 */
export interface ClientWithSecret {
  client: ClientRow;
  secret: string;
}

/**
 * Creates and changes the clients of a tenant. Each method throws a Refusal: `not_found` when the tenant has no
 * such client, `forbidden` by the rules of administration.
 */
export class ClientAdministration {
  readonly #deps;

  constructor(deps: {
    db: Db;
    changes: Pick<AccessChanges, 'commit'>;
    /** The clock of tokens; its time separates tokens that are revoked from those issued later. */
    clock: Pick<DatabaseClock, 'read'>;
    sessions: Pick<Sessions, 'end'>;
    /** The key with which new client secrets are hashed (HMAC). */
    pepper: string;
    nowMs(): number;
  }) {
    this.#deps = deps;
  }

  /** Creates an active client with one secret; without any if it is for the console. */
  async create(nodeId: string, administrator: Administrator, input: ClientInput): Promise<ClientWithSecret> {
    const { db, nowMs } = this.#deps;
    const columns = columnsOf(input);
    const now = new Date(nowMs()).toISOString();
    const values = { id: uuidV7(nowMs()), ...columns, created_at: now, updated_at: now };
    return withParent(() =>
      db.transaction(async () => {
        await refuseAdministration(db, nodeId, administrator, 'create', { scopes: input.scopes, bounds: columns });
        const [row] = await db.forNode(nodeId).run((k) => k.insertInto('clients').values(values).returningAll());
        const client = orNotFound(row);
        return { client, secret: client.is_console ? '' : await this.#addSecret(client) };
      }),
    );
  }

  /**
   * Replaces a client in full, except for its id, secrets and status. If the client loses scopes or its tokens get an
   * expiry, its own tokens are revoked; logins through it, whose permissions come from the supervisor's role, stay
   * valid.
   */
  replace(nodeId: string, administrator: Administrator, id: string, input: ClientInput): Promise<ClientRow> {
    return this.#rewrite(nodeId, administrator, id, () => input);
  }

  /** Replaces only the given members of a client, by the same rules. */
  patch(nodeId: string, administrator: Administrator, id: string, patch: ClientPatch): Promise<ClientRow> {
    return this.#rewrite(nodeId, administrator, id, (before) => {
      const members = clientMembers(before);
      const token_expiry = { ...members.token_expiry, ...patch.token_expiry };
      const rate_limit = { ...members.rate_limit, ...patch.rate_limit };
      // An absent member of a patch is no member of the object.
      return { ...members, ...patch, token_expiry, rate_limit } as ClientMembers;
    });
  }

  #rewrite(
    nodeId: string,
    administrator: Administrator,
    id: string,
    inputFor: (before: ClientRow) => ClientInput | ClientMembers,
  ): Promise<ClientRow> {
    return this.#change(nodeId, id, async (before) => {
      const columns = columnsOf(inputFor(before));
      if (columns.is_console !== before.is_console) throw invalidInput('is_console', 'cannot be changed');
      const scopes = [...before.scopes, ...columns.scopes];
      const target = { clientId: before.id, scopes, bounds: columns };
      const { db, clock } = this.#deps;
      await refuseAdministration(db, nodeId, administrator, 'replace', target);
      // The client's existing tokens may allow more, or live longer, than those issued from now on.
      const hasLost = before.scopes.some((scope) => !columns.scopes.includes(scope));
      const endsOwnTokens = hasLost || (columns.token_expiry_enabled && !before.token_expiry_enabled);
      if (!endsOwnTokens) return this.#update(before, columns);
      const own_tokens_from = tokensFrom(before.own_tokens_from, await clock.read());
      return this.#update(before, { ...columns, own_tokens_from });
    });
  }

  /**
   * Adds a secret. The newest existing one stays valid for `overlapSeconds`, but not beyond its own expiry; all older
   * ones become invalid at once, so that at most two are valid.
   */
  rotateSecret(
    nodeId: string,
    administrator: Administrator,
    id: string,
    overlapSeconds: number,
  ): Promise<ClientWithSecret> {
    return this.#change(nodeId, id, async (before) => {
      await this.#refuse(administrator, 'rotate', before);
      if (before.is_console) throw invalidInput('id', 'a console client has no secret');
      await this.#endSecrets(before, overlapSeconds);
      const secret = await this.#addSecret(before);
      return { client: await this.#update(before, {}), secret };
    });
  }

  /**
   * Returns for each client, in order, when its previous secret expires, as PostgreSQL's text in UTC; null if it has none
   * that is valid. It takes one statement, however many the clients.
   */
  async previousSecretExpiries(nodeId: string, ids: readonly string[]): Promise<(string | null)[]> {
    // Of two valid secrets only the previous one expires.
    const previous = await this.#deps.db.forNode(nodeId).run((k) =>
      k
        .selectFrom('client_secrets')
        .select(['client_id', 'expires_at'])
        .where((eb) => isOneOf(eb, 'client_id', ids))
        .where('expires_at', '>', new Date(this.#deps.nowMs()).toISOString()),
    );
    const expiries = new Map(previous.map((secret) => [secret.client_id, secret.expires_at]));
    return ids.map((id) => expiries.get(id) ?? null);
  }

  /**
   * Enables or disables a client. Disabling invalidates its credentials and revokes its tokens and the logins through
   * it; enabling restores only the credentials.
   */
  setStatus(nodeId: string, administrator: Administrator, id: string, status: ClientRow['status']): Promise<ClientRow> {
    return this.#change(nodeId, id, async (before, recordRevocation) => {
      await this.#refuse(administrator, status === 'active' ? 'enable' : 'disable', before);
      if (status === 'active') return this.#update(before, { status });
      await this.#deps.sessions.end(nodeId, { client_id: before.id }, recordRevocation);
      return this.#update(before, {
        status,
        tokens_from: tokensFrom(before.tokens_from, await this.#deps.clock.read()),
      });
    });
  }

  /**
   * Revokes the tokens of every client and the logins through it: a restored database does not know what was revoked
   * last. Returns the number of clients.
   */
  revokeAll(): Promise<number> {
    return this.#deps.changes.commit(async (recordRevocation) => {
      const tokens_from = tokensFrom(null, await this.#deps.clock.read());
      const clients = await this.#deps.db
        .unscoped('the whole database was restored')
        .run((k) => k.updateTable('clients').set({ tokens_from }).returning(['id', 'node_id']));
      for (const { id, node_id: nodeId } of clients)
        recordRevocation({ kind: 'client', nodeId, subject: id, item: null });
      return clients.length;
    });
  }

  /** Runs a change while the client's row is locked, and makes every process reload the client. */
  async #change<Result>(
    nodeId: string,
    id: string,
    work: (before: ClientRow, recordRevocation: (change: AccessChange) => void) => Promise<Result>,
  ): Promise<Result> {
    const clientId = idOrNotFound(id);
    const { db, changes } = this.#deps;
    return changes.commit(async (recordRevocation) => {
      const [row] = await db
        .forNode(nodeId)
        .run((k) => k.selectFrom('clients').selectAll().where('id', '=', clientId).forUpdate());
      const before = orNotFound(row);
      recordRevocation({ kind: 'client', nodeId, subject: before.id, item: null });
      return work(before, recordRevocation);
    });
  }

  /**
   * Applies the rules of administration to a change that leaves scopes and restrictions as they are.
   * @throws Refusal when they forbid it.
   */
  #refuse(administrator: Administrator, change: 'rotate' | 'enable' | 'disable', client: ClientRow): Promise<void> {
    const target = { clientId: client.id, scopes: client.scopes, bounds: client };
    return refuseAdministration(this.#deps.db, client.node_id, administrator, change, target);
  }

  async #update({ id, node_id: nodeId }: ClientRow, set: Partial<Omit<ClientRow, 'node_id'>>): Promise<ClientRow> {
    const updated_at = new Date(this.#deps.nowMs()).toISOString();
    const [client] = await this.#deps.db.forNode(nodeId).run((k) =>
      k
        .updateTable('clients')
        .set({ ...set, updated_at })
        .where('id', '=', id)
        .returningAll(),
    );
    return orNotFound(client);
  }

  async #addSecret({ id, node_id: nodeId }: ClientRow): Promise<string> {
    const secret = randomBytes(SECRET_BYTES).toString('base64url');
    const created_at = new Date(this.#deps.nowMs()).toISOString();
    const row = { hash: hashClientSecret(this.#deps.pepper, secret), client_id: id, created_at };
    await this.#deps.db.forNode(nodeId).run((k) => k.insertInto('client_secrets').values(row));
    return secret;
  }

  async #endSecrets({ id, node_id: nodeId }: ClientRow, overlapSeconds: number): Promise<void> {
    const scoped = this.#deps.db.forNode(nodeId);
    const nowMs = this.#deps.nowMs();
    const secrets = await scoped.run((k) =>
      k.deleteFrom('client_secrets').where('client_id', '=', id).returning(['hash', 'created_at', 'expires_at']),
    );
    const live = secrets
      .map((secret) => ({ ...secret, endsAtMs: msOf(secret.expires_at) ?? Number.POSITIVE_INFINITY }))
      .filter(({ endsAtMs }) => endsAtMs > nowMs);
    // Of two valid secrets the newest has no expiry. Creation times do not help, since a clock may have been set back.
    const [newest] = live.toSorted((a, b) => b.endsAtMs - a.endsAtMs);
    if (!newest || overlapSeconds === 0) return;
    const endsAtMs = Math.min(newest.endsAtMs, nowMs + overlapSeconds * 1_000);
    const { hash, created_at } = newest;
    const overlappingSecret = { hash, client_id: id, created_at, expires_at: new Date(endsAtMs).toISOString() };
    await scoped.run((k) => k.insertInto('client_secrets').values(overlappingSecret));
  }
}

/**
 * Returns the columns of a client.
 * @throws Refusal `invalid_input` for a console client with limits, which no sign-in would check.
 */
function columnsOf(input: ClientInput | ClientMembers) {
  const { token_expiry, rate_limit, cert_fingerprint, monthly_limit, ...otherColumns } = input;
  const columns = {
    ...otherColumns,
    grant_types: input.is_console ? ['password', 'refresh_token'] : input.grant_types,
    refresh_reuse_detection: input.refresh_reuse_detection || input.is_console,
    token_expiry_enabled: token_expiry.enabled,
    token_expiry_duration: token_expiry.duration,
    cert_fingerprint: cert_fingerprint || null,
    requests_per_second: rate_limit.requests_per_second || null,
    requests_per_minute: rate_limit.requests_per_minute || null,
    requests_per_hour: rate_limit.requests_per_hour || null,
    monthly_limit: monthly_limit || null,
  };
  const isBound = columns.cert_fingerprint !== null || freerThanMaker(columns, UNBOUND).length > 0;
  if (input.is_console && isBound) {
    throw invalidInput('is_console', 'a console client can have neither addresses, nor a certificate, nor limits');
  }
  return columns;
}

/**
 * Returns the time from which a client's tokens are valid when its existing tokens are revoked; `before` is the
 * previous such time, or null. It lies in the future, as tokens carry whole seconds and other processes may issue some
 * until they learn of the change; it is at least a second after `before`, which recent tokens carry.
 */
function tokensFrom(before: string | null, nowMs: number): string {
  const heardEverywhere = (Math.floor((nowMs + HEARD_WITHIN_MS) / SECOND_MS) + 1) * SECOND_MS;
  return new Date(Math.max(heardEverywhere, (msOf(before) ?? 0) + SECOND_MS)).toISOString();
}

function msOf(time: string | null): number | undefined {
  return time === null ? undefined : Date.parse(isoFromPg(time));
}

import { createHash, createSecretKey, type KeyObject } from 'node:crypto';
import type { Expression, ExpressionBuilder, SqlBool } from 'kysely';
import { BoundedMap } from '../../lib/bounded-map.ts';
import { isUuid } from '../../lib/input.ts';
import { isoFromPg } from '../../lib/instants.ts';
import { type RotatingSecret, secretsOf } from '../../platform/config/secrets.ts';
import type { Db } from '../../platform/database/database.ts';
import type { Tables } from '../../tables/tables.ts';
import { findClient, hashClientSecret } from '../clients/clients.service.ts';
import type { ClientRecord, Principal, SecretFault } from '../identity/callers.ts';
import type { AccessChange } from './access-changes.ts';

/** How long, in ms, a loaded value may be used after its load began. */
const FRESH_MS = 1_000;

/**
 * Caches loaded values for a short time. A value in steady use is reloaded before it is stale, so that no caller waits;
 * concurrent callers share a load.
 */
export class FreshCache<Value> {
  readonly #loaded: (key: string) => Promise<Value>;
  readonly #entries: BoundedMap<string, { value: Value; loadedAtMs: number }>;
  readonly #loads = new Map<string, Promise<Value>>();

  constructor(load: (key: string) => Promise<Value>, maxEntries = 10_000) {
    this.#loaded = load;
    this.#entries = new BoundedMap(maxEntries);
  }

  /** Returns the value of a key. Rejects when it cannot be loaded. */
  async get(key: string): Promise<Value> {
    const entry = this.#entries.get(key);
    if (!entry) return this.#load(key);
    const age = performance.now() - entry.loadedAtMs;
    if (age >= FRESH_MS) return this.#load(key);
    if (age >= FRESH_MS / 2 && !this.#loads.has(key)) this.#load(key).catch(() => undefined);
    return entry.value;
  }

  /** Drops the value of a key, and the result of a load in progress, which may have read the old value. */
  forget(key: string): void {
    this.#entries.delete(key);
    this.#loads.delete(key);
  }

  #load(key: string): Promise<Value> {
    const before = this.#loads.get(key);
    if (before) return before;
    const loadedAtMs = performance.now();
    const loading: Promise<Value> = this.#loaded(key).then(
      (value) => {
        if (this.#loads.get(key) === loading) {
          this.#loads.delete(key);
          this.#entries.set(key, { value, loadedAtMs });
        }
        return value;
      },
      (error: unknown) => {
        if (this.#loads.get(key) === loading) this.#loads.delete(key);
        throw error;
      },
    );
    this.#loads.set(key, loading);
    return loading;
  }
}

/** The claims of a token that decide whether it is revoked. */
type IssuedToken = Pick<Principal, 'nodeId' | 'subject' | 'sessionId' | 'tokenId' | 'familyId' | 'issuedAt'>;

/** A condition that selects rows of `revoked_tokens`. */
type RowSelection = (eb: ExpressionBuilder<Tables, 'revoked_tokens'>) => Expression<SqlBool>;

const MAX_ID_LENGTH = 255;
/** Matches the key of a revocation whose owner has a UUID. */
const KEY = /^(token|session):([\da-f-]{36}):(.*)$/is;
const PRUNE_EVERY_MS = 60_000;
const MAX_ENTRIES = 200_000;
/** How long, in ms, the access tokens of an ended session can be presented: longer than they live. */
export const ENDED_SESSION_MS = 20 * 60_000;

/**
 * Holds revocations in memory, because every request checks its token: API tokens and token families until they
 * expire, and ended sessions for 20 minutes. If there are more than `maxEntries`, the oldest are dropped, and until these
 * have expired other tokens are looked up in the database, each once a second.
 */
export class DenyList {
  readonly #deps;
  readonly #maxEntries: number;
  /** The expiry of each entry, in ms since 1970; Infinity for a token without expiry. */
  readonly #denied = new Map<string, number>();
  readonly #stored = new FreshCache((key) => this.#isStored(key));
  /** When the last dropped entry expires, in ms since 1970. */
  #droppedUntilMs = 0;
  #prunedAtMs = 0;

  constructor(
    deps: {
      db: Db;
      /** Resolves once all revocations up to a second ago are applied; undefined when they are. */
      waitUntilFresh(): Promise<unknown> | undefined;
      nowMs(): number;
    },
    maxEntries = MAX_ENTRIES,
  ) {
    this.#deps = deps;
    this.#maxEntries = maxEntries;
  }

  get size(): number {
    return this.#denied.size;
  }

  /**
   * Checks that a token of a client is not revoked, nor its family, and that its session has not ended. `clientId` is
   * undefined when the token's client is not known. Waits until the revocations up to a second ago are known, unless it
   * `isReading` them.
   */
  async allows(clientId: string | undefined, token: IssuedToken, isReading = false): Promise<boolean> {
    await (isReading ? undefined : this.#deps.waitUntilFresh());
    if (this.#denied.size === 0) return true;
    const keys = endKeysOf(clientId, token);
    if (keys.some((key) => this.#denied.has(key))) return false;
    if (this.#deps.nowMs() >= this.#droppedUntilMs) return true;
    return !(await Promise.all(keys.map((key) => this.#stored.get(key)))).includes(true);
  }

  /** Loads all revocations of tokens in force from the database. */
  async load(): Promise<void> {
    const now = new Date(this.#deps.nowMs()).toISOString();
    await this.#addTokens((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]));
  }

  /** Adds the sessions, tokens and token families of new revocations. */
  async apply(changes: readonly AccessChange[]): Promise<void> {
    const untilMs = this.#deps.nowMs() + ENDED_SESSION_MS;
    const ids: string[] = [];
    for (const { kind, subject, item } of changes) {
      if (kind === 'session' && item !== null) this.#denied.set(endKey(kind, subject, item), untilMs);
      if (kind === 'token' && item !== null) ids.push(item);
    }
    this.#prune();
    if (ids.length > 0) await this.#addTokens((eb) => eb('token_id', 'in', ids));
  }

  async #isStored(key: string): Promise<boolean> {
    const [, kind, owner = '', id = ''] = KEY.exec(key) ?? [];
    if (kind === 'token') return (await this.#tokens((eb) => eb.and({ client_id: owner, token_id: id }))).length > 0;
    if (!isUuid(id)) return false;
    const sessions = await this.#deps.db
      .unscoped('sessions of all nodes')
      .run((k) => k.selectFrom('sessions').select('id').where('id', '=', id).where('revoked_at', 'is not', null));
    return sessions.length > 0;
  }

  /** Reads revoked tokens: if there are too many, those that expire last. */
  #tokens(which: RowSelection) {
    return this.#deps.db.unscoped('revoked tokens of all nodes').run((k) =>
      k
        .selectFrom('revoked_tokens')
        .select(['client_id', 'token_id', 'expires_at'])
        .where(which)
        .orderBy('expires_at', (end) => end.desc().nullsFirst())
        .limit(this.#maxEntries + 1),
    );
  }

  async #addTokens(which: RowSelection): Promise<void> {
    for (const { client_id, token_id, expires_at } of (await this.#tokens(which)).reverse()) {
      const endsAtMs = expires_at === null ? Number.POSITIVE_INFINITY : Date.parse(expires_at);
      this.#denied.set(endKey('token', client_id, token_id), endsAtMs);
    }
    this.#prune();
  }

  #prune(): void {
    const now = this.#deps.nowMs();
    if (this.#denied.size <= this.#maxEntries && now - this.#prunedAtMs < PRUNE_EVERY_MS) return;
    this.#prunedAtMs = now;
    for (const [key, endsAtMs] of this.#denied) if (endsAtMs <= now) this.#denied.delete(key);
    for (const [key, endsAtMs] of this.#denied) {
      if (this.#denied.size <= this.#maxEntries) return;
      this.#denied.delete(key);
      this.#droppedUntilMs = Math.max(this.#droppedUntilMs, endsAtMs);
    }
  }
}

/**
 * Returns the id under which a token is stored. A long id is replaced by its SHA-256 hash, as it would not fit into an
 * index.
 */
export function storedTokenId(id: string): string {
  return id.length <= MAX_ID_LENGTH ? id : `sha256:${createHash('sha256').update(id).digest('hex')}`;
}

/** Returns the key of a revocation of a session of a supervisor, or of a token or family of a client. */
export function endKey(kind: 'session' | 'token', subject: string, item: string): string {
  return `${kind}:${subject}:${storedTokenId(item)}`;
}

/** Returns the keys of the revocations of a token of a client, its family and its session. */
export function endKeysOf(
  clientId: string | undefined,
  { subject, sessionId, tokenId, familyId }: IssuedToken,
): string[] {
  const keys: string[] = [];
  if (clientId !== undefined && tokenId !== undefined) keys.push(endKey('token', clientId, tokenId));
  if (clientId !== undefined && familyId !== undefined) keys.push(endKey('token', clientId, familyId));
  if (sessionId !== undefined) keys.push(endKey('session', subject, sessionId));
  return keys;
}

/** The client that a secret belongs to, and the secret's expiry in ms since 1970. */
interface ClientSecret {
  clientId: string;
  endsAtMs: number;
}

/** Looks up tenants, clients and client secrets. A result is at most one second old. */
export class AccessDirectory {
  readonly #deps;
  readonly #peppers: readonly KeyObject[];
  readonly #clients: FreshCache<ClientRecord | undefined>;
  /** The names of tenants; undefined for an unknown one. */
  readonly #nodes: FreshCache<string | undefined>;
  readonly #secrets: FreshCache<ClientSecret | undefined>;
  readonly #hashesOfClient = new Map<string, Set<string>>();

  constructor(deps: {
    db: Db;
    /** The key of the hashes of client secrets (HMAC), current and previous. */
    pepper: RotatingSecret;
    denied: DenyList;
    nowMs(): number;
  }) {
    const { db, pepper } = deps;
    this.#deps = deps;
    this.#peppers = secretsOf(pepper).map((text) => createSecretKey(text, 'utf8'));
    this.#clients = new FreshCache((id) => findClient(db, id));
    this.#secrets = new FreshCache((hash) => this.#loadSecret(hash));
    this.#nodes = new FreshCache(async (id) => {
      const unscoped = db.unscoped('nodes are global');
      return (await unscoped.run((k) => k.selectFrom('nodes').select('name').where('id', '=', id)))[0]?.name;
    });
  }

  /**
   * Checks whether the tenant of an access token exists, and whether its client is active, belongs to that tenant and
   * has not had the token revoked. `isReading` as in `DenyList.allows`.
   */
  async admits(principal: Principal, isReading = false): Promise<boolean> {
    const { tokenClass, clientId, nodeId } = principal;
    const loading = clientId === undefined ? undefined : this.client(clientId);
    const [nodeName, client] = await Promise.all([this.#nodes.get(nodeId), loading]);
    if (nodeName === undefined) return false;
    if (client) return this.isInForce(client, principal, principal.tokenUse === 'login', isReading);
    return (
      (tokenClass !== 'user' || clientId === undefined) && this.#deps.denied.allows(undefined, principal, isReading)
    );
  }

  /**
   * Checks that a token of this client, or of a login through it, has been revoked neither by the client's state nor by
   * the deny list.
   */
  async isInForce(client: ClientRecord, token: IssuedToken, isLogin: boolean, isReading?: boolean): Promise<boolean> {
    if (!client.active || client.nodeId !== token.nodeId) return false;
    const goodFrom = isLogin ? client.tokensFromSeconds : client.ownTokensFromSeconds;
    if (goodFrom > 0 && (token.issuedAt ?? 0) < goodFrom) return false;
    return this.#deps.denied.allows(client.clientId, token, isReading);
  }

  /** Returns the client with this id, active or not; undefined when there is none. */
  async client(clientId: string): Promise<ClientRecord | undefined> {
    return isUuid(clientId) ? this.#clients.get(clientId.toLowerCase()) : undefined;
  }

  /** Returns the name of a tenant; undefined when there is none. */
  nodeName(nodeId: string): Promise<string | undefined> {
    return this.#nodes.get(nodeId);
  }

  /**
   * Returns the client with this id or, without one, the client that has the secret; and, unless the client is active
   * and the secret one of its valid ones, the reason to refuse it.
   */
  async authenticate(
    secret: string,
    namedId?: string,
  ): Promise<{ client: ClientRecord; fault: undefined } | { client: ClientRecord | undefined; fault: SecretFault }> {
    const owned = await this.#ownerOf(secret);
    const client = await this.client(namedId ?? owned?.clientId ?? '');
    if (!client) return { client, fault: namedId === undefined ? 'wrong_secret' : 'unknown_client' };
    if (!client.active) return { client, fault: 'client_disabled' };
    if (owned?.clientId !== client.clientId) return { client, fault: 'wrong_secret' };
    return { client, fault: owned.endsAtMs <= this.#deps.nowMs() ? 'expired_secret' : undefined };
  }

  /** Returns whose secret it is, or was until it expired. */
  async #ownerOf(secret: string): Promise<ClientSecret | undefined> {
    for (const pepper of this.#peppers) {
      const owned = await this.#secrets.get(hashClientSecret(pepper, secret).toString('base64url'));
      if (owned) return owned;
    }
    return undefined;
  }

  /** Drops a client and its secrets from the caches. */
  forget(clientId: string): void {
    this.#clients.forget(clientId);
    for (const hash of this.#hashesOfClient.get(clientId) ?? []) this.#secrets.forget(hash);
    this.#hashesOfClient.delete(clientId);
  }

  /** Loads a secret by its hash, which reveals nothing of it by timing. */
  async #loadSecret(hash: string): Promise<ClientSecret | undefined> {
    const bytes = Buffer.from(hash, 'base64url');
    const [row] = await this.#deps.db
      .unscoped('a client is looked up before its node is known')
      .run((k) => k.selectFrom('client_secrets').select(['client_id', 'expires_at']).where('hash', '=', bytes));
    if (!row) return undefined;
    const { client_id: clientId, expires_at: end } = row;
    this.#hashesOfClient.getOrInsertComputed(clientId, () => new Set()).add(hash);
    return { clientId, endsAtMs: end === null ? Number.POSITIVE_INFINITY : Date.parse(isoFromPg(end)) };
  }
}

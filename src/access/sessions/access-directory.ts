import { createHash } from 'node:crypto';
import type { Expression, ExpressionBuilder, SqlBool } from 'kysely';
import { isUuid } from '../../lib/input.ts';
import type { Db } from '../../platform/database/database.ts';
import type { Tables } from '../../tables/tables.ts';
import type { ClientSecretRecord } from '../clients/clients.service.ts';
import type { ClientRecord } from '../identity/client-record.ts';
import type { Principal } from '../identity/principal.ts';
import type { AccessChange } from './access-changes.ts';

interface Entry<Value> {
  value: Value;
  loadedAtMs: number;
}

interface FreshCacheOptions<Value> {
  load(key: string): Promise<Value>;
  /** How long, in ms, a value may be used after its load began. */
  freshMs: number;
  maxEntries: number;
}

/**
 * Caches loaded values for a short time. A value in steady use is reloaded before it is stale, so that no caller waits;
 * concurrent callers share a load.
 */
export class FreshCache<Value> {
  readonly #options: FreshCacheOptions<Value>;
  readonly #entries = new Map<string, Entry<Value>>();
  readonly #loads = new Map<string, Promise<Value>>();

  constructor(options: FreshCacheOptions<Value>) {
    this.#options = options;
  }

  /** Returns the value of a key, synchronously when it is fresh. Rejects when it cannot be loaded. */
  get(key: string): Value | Promise<Value> {
    const entry = this.#entries.get(key);
    if (!entry) return this.#load(key);
    const age = performance.now() - entry.loadedAtMs;
    if (age >= this.#options.freshMs) return this.#load(key);
    if (age >= this.#options.freshMs / 2 && !this.#loads.has(key)) this.#load(key).catch(() => undefined);
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
    const loading: Promise<Value> = this.#options.load(key).then(
      (value) => {
        if (this.#loads.get(key) === loading) {
          this.#loads.delete(key);
          this.#remember(key, { value, loadedAtMs });
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

  #remember(key: string, entry: Entry<Value>): void {
    this.#entries.delete(key);
    if (this.#entries.size >= this.#options.maxEntries) {
      const oldest = this.#entries.keys().next();
      if (!oldest.done) this.#entries.delete(oldest.value);
    }
    this.#entries.set(key, entry);
  }
}

/** A condition that selects rows of `revoked_tokens`. */
type RowSelection = (eb: ExpressionBuilder<Tables, 'revoked_tokens'>) => Expression<SqlBool>;

interface DenyListParts {
  db: Db;
  nowMs(): number;
}

const MAX_ID_LENGTH = 255;
const PRUNE_EVERY_MS = 60_000;

/** Holds all revoked API tokens and token families in memory, because every request checks its token. */
export class DenyList {
  readonly #parts: DenyListParts;
  /** The expiry of each revoked token, in ms since 1970; Infinity for a token without expiry. */
  readonly #denied = new Map<string, number>();
  #prunedAtMs = 0;

  constructor(parts: DenyListParts) {
    this.#parts = parts;
  }

  /** Checks whether a token, or a token family, of a client is revoked. */
  has(clientId: string, id: string | undefined): boolean {
    return id !== undefined && this.#denied.size > 0 && this.#denied.has(keyOf(clientId, storedTokenId(id)));
  }

  /** Loads all revocations in force from the database. */
  async load(): Promise<void> {
    const now = new Date(this.#parts.nowMs()).toISOString();
    await this.#add((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]));
  }

  /** Adds the tokens and token families of new revocations to the deny list. */
  async apply(changes: readonly AccessChange[]): Promise<void> {
    const ids = changes.flatMap(({ kind, item }) => (kind === 'token' && item !== null ? [item] : []));
    if (ids.length === 0) return;
    await this.#add((eb) => eb('token_id', 'in', ids));
    this.#prune();
  }

  async #add(which: RowSelection): Promise<void> {
    const rows = await this.#parts.db
      .unscoped('tokens are revoked for every node')
      .run((k) => k.selectFrom('revoked_tokens').select(['client_id', 'token_id', 'expires_at']).where(which));
    for (const { client_id, token_id, expires_at } of rows) {
      const endsAtMs = expires_at === null ? Number.POSITIVE_INFINITY : Date.parse(expires_at);
      this.#denied.set(keyOf(client_id, token_id), endsAtMs);
    }
  }

  #prune(): void {
    const now = this.#parts.nowMs();
    if (now - this.#prunedAtMs < PRUNE_EVERY_MS) return;
    this.#prunedAtMs = now;
    for (const [key, endsAtMs] of this.#denied) if (endsAtMs <= now) this.#denied.delete(key);
  }
}

/**
 * Returns the id under which a token is stored. A long id is replaced by its SHA-256 hash, as it would not fit into an
 * index.
 */
export function storedTokenId(id: string): string {
  return id.length <= MAX_ID_LENGTH ? id : `sha256:${createHash('sha256').update(id).digest('hex')}`;
}

function keyOf(clientId: string, id: string): string {
  return `${clientId}:${id}`;
}

const LIMITS = { freshMs: 1_000, maxEntries: 10_000 };

interface Sources {
  db: Db;
  clients: {
    find(clientId: string): Promise<ClientRecord | undefined>;
    findBySecret(hash: Buffer): Promise<ClientSecretRecord | undefined>;
    hashesOf(secret: string): string[];
  };
  denied: DenyList;
  nowMs(): number;
}

/** The claims of a token that decide whether it is revoked. */
interface IssuedToken {
  nodeId: string;
  tokenId: string | undefined;
  familyId: string | undefined;
  /** The time of issue in seconds since 1970; undefined when the token does not carry it. */
  issuedAt: number | undefined;
}

/** Looks up tenants, clients and client secrets. A result is at most one second old. */
export class AccessDirectory {
  readonly #sources: Sources;
  readonly #clients: FreshCache<ClientRecord | undefined>;
  readonly #nodes: FreshCache<boolean>;
  readonly #secrets: FreshCache<ClientSecretRecord | undefined>;
  readonly #hashesOfClient = new Map<string, Set<string>>();

  constructor(sources: Sources) {
    const { db, clients } = sources;
    this.#sources = sources;
    this.#clients = new FreshCache({ ...LIMITS, load: (id) => clients.find(id) });
    this.#secrets = new FreshCache({ ...LIMITS, load: (hash) => this.#loadSecret(hash) });
    this.#nodes = new FreshCache({
      ...LIMITS,
      load: async (id) => {
        const unscoped = db.unscoped('whether a node exists');
        return (await unscoped.run((k) => k.selectFrom('nodes').select('id').where('id', '=', id))).length > 0;
      },
    });
  }

  /**
   * Checks whether the tenant of an access token exists, and whether its client is active, belongs to that tenant and
   * has not had the token revoked.
   */
  admits(principal: Principal): boolean | Promise<boolean> {
    const { tokenClass, clientId, nodeId } = principal;
    const node = this.#nodes.get(nodeId);
    const client = clientId === undefined ? undefined : this.client(clientId);
    const judge = (nodeKnown: boolean, record: ClientRecord | undefined) => {
      if (!nodeKnown) return false;
      if (record) return this.isInForce(record, principal, principal.tokenUse === 'login');
      return tokenClass !== 'user' || clientId === undefined;
    };
    if (!(node instanceof Promise) && !(client instanceof Promise)) return judge(node, client);
    return Promise.all([node, client]).then(([known, record]) => judge(known, record));
  }

  /**
   * Checks whether the client that a token names belongs to the token's tenant. If so, a token that is not admitted has
   * been revoked.
   */
  async isOfItsClient({ clientId, nodeId }: Principal): Promise<boolean> {
    return clientId !== undefined && (await this.client(clientId))?.nodeId === nodeId;
  }

  /**
   * Checks that a token of this client, or of a login through it, has been revoked neither by the client's state nor by
   * the deny list.
   */
  isInForce(client: ClientRecord, token: IssuedToken, isLogin: boolean): boolean {
    const { denied } = this.#sources;
    if (!client.active || client.nodeId !== token.nodeId) return false;
    const goodFrom = isLogin ? client.tokensFromSeconds : client.ownTokensFromSeconds;
    if (goodFrom > 0 && (token.issuedAt ?? 0) < goodFrom) return false;
    return !denied.has(client.clientId, token.tokenId) && !denied.has(client.clientId, token.familyId);
  }

  /** Returns the client with this id, active or not; undefined when there is none. */
  client(clientId: string): ClientRecord | undefined | Promise<ClientRecord | undefined> {
    return isUuid(clientId) ? this.#clients.get(clientId.toLowerCase()) : undefined;
  }

  /** Returns the active client with this id if the secret is one of its valid ones; undefined otherwise. */
  async authenticate(clientId: string, secret: string): Promise<ClientRecord | undefined> {
    const client = await this.clientOfSecret(secret);
    return client?.clientId === clientId ? client : undefined;
  }

  /** Returns the active client that has this valid secret; undefined when there is none. */
  async clientOfSecret(secret: string): Promise<ClientRecord | undefined> {
    for (const hash of this.#sources.clients.hashesOf(secret)) {
      const known = this.#secrets.get(hash);
      const found = known instanceof Promise ? await known : known;
      if (!found || (found.endsAtMs !== undefined && found.endsAtMs <= this.#sources.nowMs())) continue;
      const client = this.#clients.get(found.clientId);
      const record = client instanceof Promise ? await client : client;
      return record?.active ? record : undefined;
    }
    return undefined;
  }

  /** Drops a client and its secrets from the caches. */
  forget(clientId: string): void {
    this.#clients.forget(clientId);
    for (const hash of this.#hashesOfClient.get(clientId) ?? []) this.#secrets.forget(hash);
    this.#hashesOfClient.delete(clientId);
  }

  async #loadSecret(hash: string): Promise<ClientSecretRecord | undefined> {
    const found = await this.#sources.clients.findBySecret(Buffer.from(hash, 'base64url'));
    if (!found) return undefined;
    const hashes = this.#hashesOfClient.get(found.clientId) ?? new Set();
    this.#hashesOfClient.set(found.clientId, hashes.add(hash));
    return found;
  }
}

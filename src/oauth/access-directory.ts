import type { ClientRecord } from '../clients/client-record.ts';
import type { ClientSecretRecord } from '../clients/clients.service.ts';
import type { Db } from '../db.ts';
import { FreshCache } from '../lib/fresh-cache.ts';
import { isUuid } from '../lib/input.ts';
import type { DenyList } from './deny-list.ts';
import type { Principal } from './principal.ts';

const LIMITS = { freshMs: 1_000, maxEntries: 10_000 };

interface Sources {
  db: Db;
  clients: {
    find(clientId: string): Promise<ClientRecord | undefined>;
    findBySecret(hash: Buffer): Promise<ClientSecretRecord | undefined>;
    hashesOf(secret: string): Buffer[];
  };
  denied: DenyList;
  nowMs(): number;
}

/** What a token says of itself, as far as it can have ended before its time. */
export interface IssuedToken {
  clientId: string | undefined;
  nodeId: string;
  tokenId: string | undefined;
  familyId: string | undefined;
  /** Whole seconds since the epoch. */
  issuedAt: number | undefined;
}

/** Which nodes and clients exist and whose secrets are whose, as known at most a second ago. */
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
        const door = db.unscoped('whether a node exists');
        return (await door.run((k) => k.selectFrom('nodes').select('id').where('id', '=', id))).length > 0;
      },
    });
  }

  /** Whether the access token's node exists, its client is active and of that node, and neither of them has ended it. */
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

  /** Whether the client that the token names is one of its node: where it is not admitted, it has been ended. */
  async isOfItsClient({ clientId, nodeId }: Principal): Promise<boolean> {
    return clientId !== undefined && (await this.client(clientId))?.nodeId === nodeId;
  }

  /** Whether a token of this client, or of a login through it, is still good as far as the client and the deny list can have ended it. */
  isInForce(client: ClientRecord, token: IssuedToken, isLogin: boolean): boolean {
    const { denied } = this.#sources;
    if (!client.active || client.nodeId !== token.nodeId) return false;
    const goodFrom = isLogin ? client.tokensFromSeconds : client.ownTokensFromSeconds;
    if (goodFrom > 0 && (token.issuedAt ?? 0) < goodFrom) return false;
    return !denied.has(client.clientId, token.tokenId) && !denied.has(client.clientId, token.familyId);
  }

  /** The client with this id, active or not. */
  client(clientId: string): ClientRecord | undefined | Promise<ClientRecord | undefined> {
    return isUuid(clientId) ? this.#clients.get(clientId.toLowerCase()) : undefined;
  }

  /** The active client with this id and a live secret; undefined for anything else. */
  async authenticate(clientId: string, secret: string): Promise<ClientRecord | undefined> {
    const client = await this.clientOfSecret(secret);
    return client?.clientId === clientId ? client : undefined;
  }

  /** The active client that a live secret is of. */
  async clientOfSecret(secret: string): Promise<ClientRecord | undefined> {
    for (const hash of this.#sources.clients.hashesOf(secret)) {
      const known = this.#secrets.get(hash.toString('base64url'));
      const found = known instanceof Promise ? await known : known;
      if (!found || (found.endsAtMs !== undefined && found.endsAtMs <= this.#sources.nowMs())) continue;
      const client = this.#clients.get(found.clientId);
      const record = client instanceof Promise ? await client : client;
      return record?.active ? record : undefined;
    }
    return undefined;
  }

  /** Reads a client and its secrets anew. */
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

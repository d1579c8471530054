import type { ClientRecord } from '../clients/client-record.ts';
import type { Db } from '../db.ts';
import { isUuid } from '../lib/input.ts';
import type { Principal } from './principal.ts';

const FRESH_MS = 1_000;
const MAX_ENTRIES = 10_000;

interface Entry<Value> {
  value: Value;
  staleAtMs: number;
}

interface Sources {
  db: Db;
  findClient(clientId: string): Promise<ClientRecord | undefined>;
  nowMs(): number;
}

/** Which nodes and clients exist, as known at most a second ago: a disabled client's tokens end within it. */
export class AccessDirectory {
  readonly #sources: Sources;
  readonly #clients = new Map<string, Entry<ClientRecord | undefined>>();
  readonly #nodes = new Map<string, Entry<boolean>>();

  constructor(sources: Sources) {
    this.#sources = sources;
  }

  /** Whether the token's node exists and its client is active and of that node. Answers at once from what is fresh. */
  admits(principal: Principal): boolean | Promise<boolean> {
    const node = this.#node(principal.nodeId);
    const client = principal.clientId === undefined ? undefined : this.client(principal.clientId);
    if (!(node instanceof Promise) && !(client instanceof Promise)) return admits(principal, node, client);
    return Promise.all([node, client]).then(([known, record]) => admits(principal, known, record));
  }

  /** The client with this id. */
  client(clientId: string): ClientRecord | undefined | Promise<ClientRecord | undefined> {
    if (!isUuid(clientId)) return undefined;
    return this.#fresh(this.#clients, clientId, () => this.#sources.findClient(clientId));
  }

  #node(nodeId: string): boolean | Promise<boolean> {
    return this.#fresh(this.#nodes, nodeId, async () => {
      const rows = await this.#sources.db
        .unscoped('whether a node exists')
        .run((k) => k.selectFrom('nodes').select('id').where('id', '=', nodeId));
      return rows.length > 0;
    });
  }

  #fresh<Value>(entries: Map<string, Entry<Value>>, key: string, load: () => Promise<Value>): Value | Promise<Value> {
    const entry = entries.get(key);
    if (entry && entry.staleAtMs > this.#sources.nowMs()) return entry.value;
    return load().then((value) => {
      if (entries.size >= MAX_ENTRIES) entries.clear();
      entries.set(key, { value, staleAtMs: this.#sources.nowMs() + FRESH_MS });
      return value;
    });
  }
}

function admits(principal: Principal, nodeKnown: boolean, client: ClientRecord | undefined): boolean {
  if (!nodeKnown) return false;
  if (client) return client.active && client.nodeId === principal.nodeId;
  return principal.tokenClass !== 'user' || principal.clientId === undefined;
}

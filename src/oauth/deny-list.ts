import { createHash } from 'node:crypto';
import type { Db } from '../db.ts';
import type { AccessChange } from './access-changes.ts';

interface DenyListParts {
  db: Db;
  nowMs(): number;
}

const MAX_ID_LENGTH = 255;
const PRUNE_EVERY_MS = 60_000;

/** The API tokens and families of tokens that were revoked, in memory: asked with every request. */
export class DenyList {
  readonly #parts: DenyListParts;
  /** When each is over, in ms since the epoch; Infinity for those that do not end. */
  readonly #denied = new Map<string, number>();
  #prunedAtMs = 0;

  constructor(parts: DenyListParts) {
    this.#parts = parts;
  }

  /** Whether a client's token, or family, is revoked. */
  has(clientId: string, id: string | undefined): boolean {
    return id !== undefined && this.#denied.size > 0 && this.#denied.has(keyOf(clientId, storedTokenId(id)));
  }

  /** Reads those that are in force. */
  async load(): Promise<void> {
    const now = new Date(this.#parts.nowMs()).toISOString();
    const rows = await this.#parts.db.unscoped('tokens are revoked for every node').run((k) =>
      k
        .selectFrom('revoked_tokens')
        .select(['client_id', 'token_id', 'expires_at'])
        .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)])),
    );
    this.#add(rows);
  }

  /** Adds the tokens of changes. */
  async apply(changes: readonly AccessChange[]): Promise<void> {
    const ids = changes.flatMap(({ kind, item }) => (kind === 'token' && item !== null ? [item] : []));
    if (ids.length === 0) return;
    const rows = await this.#parts.db
      .unscoped('tokens are revoked for every node')
      .run((k) =>
        k.selectFrom('revoked_tokens').select(['client_id', 'token_id', 'expires_at']).where('token_id', 'in', ids),
      );
    this.#add(rows);
    this.#prune();
  }

  #add(rows: readonly { client_id: string; token_id: string; expires_at: string | null }[]): void {
    for (const { client_id, token_id, expires_at } of rows) {
      this.#denied.set(
        keyOf(client_id, token_id),
        expires_at === null ? Number.POSITIVE_INFINITY : Date.parse(expires_at),
      );
    }
  }

  #prune(): void {
    const now = this.#parts.nowMs();
    if (now - this.#prunedAtMs < PRUNE_EVERY_MS) return;
    this.#prunedAtMs = now;
    for (const [key, endsAtMs] of this.#denied) if (endsAtMs <= now) this.#denied.delete(key);
  }
}

/** A token's id as it is kept: a long one by its digest, since an index has no room for it. */
export function storedTokenId(id: string): string {
  return id.length <= MAX_ID_LENGTH ? id : `sha256:${createHash('sha256').update(id).digest('hex')}`;
}

function keyOf(clientId: string, id: string): string {
  return `${clientId}:${id}`;
}

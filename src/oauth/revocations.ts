import type { ClientRecord } from '../clients/client-record.ts';
import type { Db } from '../db.ts';
import type { AccessChange, AccessChanges } from './access-changes.ts';
import { storedTokenId } from './deny-list.ts';
import { MAX_REFRESH_AGE_MS, type RefreshClaims } from './refresh.rules.ts';
import type { Sessions } from './sessions.ts';
import { storedEnd } from './stored-end.ts';

interface RevocationsParts {
  db: Db;
  changes: AccessChanges;
  sessions: Sessions;
  nowMs(): number;
}

/** A token of a client, or a family of them. */
interface Revoked {
  nodeId: string;
  clientId: string;
  tokenId: string;
  /** Undefined: it does not end by itself. */
  expiresAtMs: number | undefined;
}

/** Ends tokens before their time, on every replica and over restarts. What has ended already is told to nobody again. */
export class Revocations {
  readonly #parts: RevocationsParts;

  constructor(parts: RevocationsParts) {
    this.#parts = parts;
  }

  /** Ends one access token. */
  async revokeToken(token: Revoked): Promise<void> {
    await this.#parts.changes.commit((ended) => this.#deny(token, ended));
  }

  /**
   * Ends what a refresh token belongs to, with every access token of it: the session of a login, the family of a
   * client's.
   */
  async revokeFamily(claims: RefreshClaims, client: ClientRecord): Promise<void> {
    const { nodeId, sessionId, familyId, tokenId } = claims;
    const family = familyId ?? tokenId;
    await this.#parts.changes.commit(async (ended) => {
      if (sessionId !== undefined) await this.#parts.sessions.end(nodeId, { sessionId }, ended);
      // The session of one without `iat` may not have begun: it never does then.
      const isSessionAlone = sessionId !== undefined && claims.issuedAt !== undefined;
      if (family !== undefined && !isSessionAlone) {
        const expiresAtMs = this.#endOfFamily(claims, client);
        await this.#deny({ nodeId, clientId: client.clientId, tokenId: family, expiresAtMs }, ended);
      }
    });
  }

  /**
   * When the last token of a family has ended: no refresh token is good for more than 365 days from its `iat`, no
   * access token for more than the client's duration, and none that has no `exp` ends at all.
   */
  #endOfFamily({ expiresAtMs }: RefreshClaims, { tokenExpiry }: ClientRecord): number | undefined {
    if (expiresAtMs === undefined || !tokenExpiry.enabled) return undefined;
    const longestMs = Math.max(MAX_REFRESH_AGE_MS, tokenExpiry.durationSeconds * 1000);
    return Math.max(expiresAtMs, this.#parts.nowMs() + longestMs);
  }

  async #deny(token: Revoked, ended: (change: AccessChange) => void): Promise<void> {
    const { nodeId, clientId, expiresAtMs } = token;
    const tokenId = storedTokenId(token.tokenId);
    const row = { client_id: clientId, token_id: tokenId, node_id: nodeId, expires_at: storedEnd(expiresAtMs) };
    const [added] = await this.#parts.db.forNode(nodeId).run((k) =>
      k
        .insertInto('revoked_tokens')
        .values(row)
        .onConflict((conflict) => conflict.columns(['client_id', 'token_id']).doNothing())
        .returning('token_id'),
    );
    if (added) ended({ kind: 'token', nodeId, subject: clientId, item: tokenId });
  }
}

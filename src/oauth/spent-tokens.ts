import type { ClientRecord } from '../clients/client-record.ts';
import type { Db } from '../db.ts';
import { isoFromPg } from '../lib/pg-time.ts';
import { digestOf, isInGrace, type RefreshClaims, redeemableUntilMs } from './refresh.rules.ts';
import { storedEnd } from './stored-end.ts';

interface SpentTokensParts {
  db: Db;
  nowMs(): number;
}

/** The refresh tokens that are good for one redemption: the database decides which one was the first. */
export class SpentTokens {
  readonly #parts: SpentTokensParts;

  constructor(parts: SpentTokensParts) {
    this.#parts = parts;
  }

  /** Whether the token is good for one redemption only. */
  isForOnce({ refreshReuseDetection }: ClientRecord, { issuedAt }: RefreshClaims): boolean {
    return refreshReuseDetection || issuedAt === undefined;
  }

  /** Spends a token; false where it was spent before, and not just now. */
  async spend(token: string, claims: RefreshClaims): Promise<boolean> {
    const { db, nowMs } = this.#parts;
    const { nodeId, clientId } = claims;
    const digest = digestOf(token);
    const row = {
      client_id: clientId,
      digest,
      node_id: nodeId,
      spent_at: new Date(nowMs()).toISOString(),
      expires_at: storedEnd(redeemableUntilMs(claims)),
    };
    const [first] = await db.forNode(nodeId).run((k) =>
      k
        .insertInto('spent_refresh_tokens')
        .values(row)
        .onConflict((conflict) => conflict.columns(['client_id', 'digest']).doNothing())
        .returning('client_id'),
    );
    return first !== undefined || !(await this.isSpent(token, { nodeId, clientId }));
  }

  /** Whether the token was spent, and not just now. */
  async isSpent(token: string, { nodeId, clientId }: Pick<RefreshClaims, 'nodeId' | 'clientId'>): Promise<boolean> {
    const { db, nowMs } = this.#parts;
    const digest = digestOf(token);
    const [row] = await db
      .forNode(nodeId)
      .run((k) =>
        k
          .selectFrom('spent_refresh_tokens')
          .select('spent_at')
          .where('client_id', '=', clientId)
          .where('digest', '=', digest),
      );
    return row !== undefined && !isInGrace(Date.parse(isoFromPg(row.spent_at)), nowMs());
  }
}

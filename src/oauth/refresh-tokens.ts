import type { ClientRecord } from '../clients/client-record.ts';
import { AppError } from '../errors/app-error.ts';
import { isUuid } from '../lib/input.ts';
import type { SupervisorRecord, Supervisors } from '../supervisors/supervisors.service.ts';
import type { AccessDirectory } from './access-directory.ts';
import { type RefreshClaims, refreshClaims } from './refresh.rules.ts';
import type { Sessions } from './sessions.ts';
import type { SignedToken } from './signed-token.ts';
import type { SpentTokens } from './spent-tokens.ts';
import type { TokenVerifier } from './token-verifier.ts';

interface RefreshTokensParts {
  verifier: TokenVerifier;
  directory: AccessDirectory;
  supervisors: Supervisors;
  sessions: Sessions;
  spent: SpentTokens;
  nowMs(): number;
}

/** Judges refresh tokens, without using them up. */
export class RefreshTokens {
  readonly #parts: RefreshTokensParts;

  constructor(parts: RefreshTokensParts) {
    this.#parts = parts;
  }

  /** The claims of a token that this client was given and nobody has ended; spent or not, its account as it may be. */
  async claimsOf(token: string, client: ClientRecord): Promise<RefreshClaims | undefined> {
    const signed = await this.#signed(token);
    if (!signed) return undefined;
    const claims = refreshClaims(signed.claims, token, { nodeId: client.nodeId, nowMs: this.#parts.nowMs() });
    if (claims?.clientId !== client.clientId) return undefined;
    return this.#parts.directory.isInForce(client, claims, !isOfClient(claims)) ? claims : undefined;
  }

  /** The active supervisor whose login a token is of. */
  async supervisorOf({ subject }: RefreshClaims, client: ClientRecord): Promise<SupervisorRecord | undefined> {
    if (!isUuid(subject)) return undefined;
    const supervisor = await this.#parts.supervisors.find(client.nodeId, subject);
    return supervisor?.active ? supervisor : undefined;
  }

  /** Whether the client would get another pair for the token now. */
  async isRedeemable(token: string, claims: RefreshClaims, client: ClientRecord): Promise<boolean> {
    const { spent, sessions } = this.#parts;
    if (spent.isForOnce(client, claims) && (await spent.isSpent(token, claims))) return false;
    if (isOfClient(claims)) return true;
    if (!(await this.supervisorOf(claims, client))) return false;
    return claims.issuedAt === undefined || sessions.isLive(claims);
  }

  async #signed(token: string): Promise<SignedToken | undefined> {
    try {
      return await this.#parts.verifier.verify(token, ['user']);
    } catch (error) {
      if (error instanceof AppError && error.status === 401) return undefined;
      throw error;
    }
  }
}

/** Whether a token is the client's own, not that of a login through it. */
export function isOfClient({ subject, clientId, sessionId }: RefreshClaims): boolean {
  return sessionId === undefined && subject.toLowerCase() === clientId;
}

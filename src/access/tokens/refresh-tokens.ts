import { isUuid } from '../../lib/input.ts';
import type { ClientRecord } from '../identity/client-record.ts';
import { unlessInvalid } from '../identity/invalid-token.ts';
import type { AccessDirectory } from '../revocation/access-directory.ts';
import type { Sessions } from '../revocation/sessions.ts';
import type { SupervisorRecord, Supervisors } from '../supervisors/supervisors.service.ts';
import { type RefreshClaims, refreshClaims } from './refresh.rules.ts';
import type { SpentTokens } from './revocations.ts';
import type { TokenVerifier } from './token-verifier.ts';

interface RefreshTokensDependencies {
  verifier: TokenVerifier;
  directory: AccessDirectory;
  supervisors: Supervisors;
  sessions: Sessions;
  spent: SpentTokens;
  nowMs(): number;
}

/** Validates refresh tokens, without redeeming them. */
export class RefreshTokens {
  readonly #deps: RefreshTokensDependencies;

  constructor(deps: RefreshTokensDependencies) {
    this.#deps = deps;
  }

  /**
   * Returns the claims of a refresh token that was issued to this client and has not been revoked, redeemed or not;
   * undefined for every other token. It does not check the supervisor.
   */
  async claimsOf(token: string, client: ClientRecord): Promise<RefreshClaims | undefined> {
    const signed = await unlessInvalid(() => this.#deps.verifier.verify(token, ['user']));
    if (!signed) return undefined;
    const claims = refreshClaims(signed.claims, token, { nodeId: client.nodeId, nowMs: this.#deps.nowMs() });
    if (claims?.clientId !== client.clientId) return undefined;
    return (await this.#deps.directory.isInForce(client, claims, !isOfClient(claims))) ? claims : undefined;
  }

  /** Returns the supervisor whose login issued the token; undefined when it does not exist or is disabled. */
  async supervisorOf({ subject }: RefreshClaims, client: ClientRecord): Promise<SupervisorRecord | undefined> {
    if (!isUuid(subject)) return undefined;
    const supervisor = await this.#deps.supervisors.find(client.nodeId, subject);
    return supervisor?.active ? supervisor : undefined;
  }

  /** Checks whether the client could redeem the token now. */
  async isRedeemable(token: string, claims: RefreshClaims, client: ClientRecord): Promise<boolean> {
    const { spent, sessions } = this.#deps;
    if (spent.isForOnce(client, claims) && (await spent.isSpent(token, claims))) return false;
    if (isOfClient(claims)) return true;
    if (!(await this.supervisorOf(claims, client))) return false;
    return claims.issuedAt === undefined || sessions.isLive(claims);
  }
}

/** Checks whether a token was issued to the client itself, and not to a login through it. */
export function isOfClient({ subject, clientId, sessionId }: RefreshClaims): boolean {
  return sessionId === undefined && subject.toLowerCase() === clientId;
}

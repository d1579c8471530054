import type { TokenClass } from '../config/secrets.ts';
import { AppError } from '../errors/app-error.ts';
import type { AccessDirectory } from './access-directory.ts';
import { principalFromClaims } from './claims.rules.ts';
import { certificateGuard, ipAllowlistGuard } from './guards.ts';
import type { Principal } from './principal.ts';
import type { Sessions } from './sessions.ts';
import type { TokenVerifier } from './token-verifier.ts';

interface JudgeParts {
  verifier: TokenVerifier;
  directory: AccessDirectory;
  sessions: Sessions;
  nowMs(): number;
}

/** Where a token came from, for the guards of its client. */
export interface TokenOrigin {
  address: string | undefined;
  fingerprint: string | undefined;
}

/** Judges a token that did not come in the Authorization header: a WebSocket's first message, and each operation after it. */
export class TokenJudge {
  readonly #parts: JudgeParts;

  constructor(parts: JudgeParts) {
    this.#parts = parts;
  }

  /**
   * Whoever the access token speaks for, judged as the gateway does; undefined where it is missing, of another class or
   * does not hold.
   */
  async judge(token: string | undefined, classes: readonly TokenClass[]): Promise<Principal | undefined> {
    if (token === undefined) return undefined;
    const { verifier, nowMs } = this.#parts;
    try {
      const { tokenClass, claims } = await verifier.verify(token, classes);
      const principal = principalFromClaims(tokenClass, claims, nowMs());
      return principal && (await this.isGood(principal)) ? principal : undefined;
    } catch (error) {
      if (error instanceof AppError && error.status === 401) return undefined;
      throw error;
    }
  }

  /** Whether a token that was good still is: not ended, its node and client still there, its session not revoked. */
  async isGood(principal: Principal): Promise<boolean> {
    const { directory, sessions, nowMs } = this.#parts;
    if (principal.expiresAtMs !== undefined && principal.expiresAtMs <= nowMs()) return false;
    if (!(await directory.admits(principal))) return false;
    return principal.tokenUse !== 'login' || sessions.isLive(principal);
  }

  /**
   * Passes the certificate and address of an API token's client, and uses up no limit.
   * @throws AppError 403 where one of them refuses.
   */
  async passGuards(principal: Principal, origin: TokenOrigin): Promise<void> {
    if (principal.tokenUse !== 'api' || principal.clientId === undefined) return;
    const client = await this.#parts.directory.client(principal.clientId);
    if (!client) return;
    certificateGuard({ client, ...origin });
    ipAllowlistGuard({ client, ...origin });
  }
}

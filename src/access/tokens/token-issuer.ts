import { jwtSigner } from '../../lib/fast/jwt-signer.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import type { TokenPair } from '../../tables/access.entity.ts';
import type { ClientRecord } from '../identity/callers.ts';
import type { SupervisorRecord } from '../supervisors/supervisors.service.ts';
import type { JwtKeys } from './token-authenticator.ts';

const LOGIN_ACCESS_SECONDS = 15 * 60;
const LOGIN_REFRESH_SECONDS = 30 * 24 * 3600;
/** After this time without use, in seconds, a session of the console cannot be renewed. */
export const CONSOLE_IDLE_SECONDS = 30 * 60;

/** The documented token response (docs/contract.md, 2.1-01), with exactly these members. */
export interface TokenResponse {
  access_token: string;
  refresh_token: string;
  expires_in: number;
  token_type: 'Bearer';
  scope: string;
  created_at: number;
}

/** The scope of a pair of tokens. */
export interface IssuedScope {
  names: readonly string[];
  /** Whether the request asked for it, so that a refresh issues no more. */
  isNarrowed: boolean;
}

/** Decides what pairs of access and refresh tokens hold, and signs them access and refresh tokens (docs/contract.md, D3-01). */
export class TokenIssuer {
  readonly #deps;
  readonly #sign: (claims: object) => string | Promise<string>;

  constructor(deps: {
    keys: JwtKeys;
    /** Returns `PUBLIC_URL`, which is known only once the process listens. */
    issuer(): string;
    /** The clock of tokens, in ms since 1970. */
    clock: { nowMs(): number };
  }) {
    this.#deps = deps;
    this.#sign = jwtSigner(deps.keys.signing);
  }

  /** Returns when the refresh token of a login that begins now will expire, in ms since 1970. */
  loginEndsAtMs(): number {
    return this.#nowSeconds() * 1000 + LOGIN_REFRESH_SECONDS * 1000;
  }

  /**
   * Returns the pair of tokens of a login that is issued now: an access token for 15 minutes and a refresh token for 30 days, or for half an
   * hour in the console.
   */
  forLogin({ supervisorId }: SupervisorRecord, scope: IssuedScope, sessionId: string, client: ClientRecord): TokenPair {
    return this.#pair({
      client,
      subject: supervisorId,
      scope,
      accessUse: 'login',
      kinship: { sid: sessionId },
      accessSeconds: LOGIN_ACCESS_SECONDS,
      refreshSeconds: client.isConsole ? CONSOLE_IDLE_SECONDS : LOGIN_REFRESH_SECONDS,
      expire: true,
    });
  }

  /**
   * Returns the pair of tokens of a client that is issued now. Both live for the client's configured duration, or without end when token
   * expiry is off. Without `family` they begin a new one, whose id is the `jti` of the refresh token.
   */
  forClient(client: ClientRecord, scope: IssuedScope, family?: string): TokenPair {
    const { enabled, durationSeconds } = client.tokenExpiry;
    return this.#pair({
      client,
      subject: client.clientId,
      scope,
      accessUse: 'api',
      kinship: { family },
      accessSeconds: durationSeconds,
      refreshSeconds: durationSeconds,
      expire: enabled,
    });
  }

  /** Signs a pair. The tokens of the same pair are the same on every process. */
  async sign({ access, refresh, expires_in }: TokenPair): Promise<TokenResponse> {
    return {
      access_token: await this.#sign(access),
      refresh_token: await this.#sign(refresh),
      expires_in,
      token_type: 'Bearer',
      scope: access.scope,
      created_at: access.iat,
    };
  }

  #pair(plan: {
    client: ClientRecord;
    subject: string;
    scope: IssuedScope;
    accessUse: 'login' | 'api';
    /**
     * The id that all tokens refreshed from the pair share: a session, or a family, whose id is the `jti` of its first
     * refresh token.
     */
    kinship: { sid: string } | { family: string | undefined };
    /** The lifetimes of the tokens, in seconds. */
    accessSeconds: number;
    refreshSeconds: number;
    /** Whether the tokens have an `exp`. */
    expire: boolean;
  }): TokenPair {
    const { nodeId, clientId, tokensFromSeconds, ownTokensFromSeconds } = plan.client;
    // The client may have been enabled, or have lost a scope, in this second. Earlier tokens are revoked up to
    // `goodFrom`; this token must be valid.
    const goodFrom = plan.accessUse === 'login' ? tokensFromSeconds : ownTokensFromSeconds;
    const iat = Math.max(this.#nowSeconds(), goodFrom);
    const scope = plan.scope.names.join(' ');
    const refreshId = uuidV7();
    const common = {
      iss: this.#deps.issuer(),
      sub: plan.subject,
      aud: nodeId,
      scope,
      client_id: clientId,
      ...('sid' in plan.kinship ? plan.kinship : { family: plan.kinship.family ?? refreshId }),
    };
    const until = (seconds: number) => (plan.expire ? { iat, exp: iat + seconds } : { iat });
    return {
      access: { ...common, ...until(plan.accessSeconds), jti: uuidV7(), token_use: plan.accessUse },
      refresh: {
        ...common,
        ...until(plan.refreshSeconds),
        jti: refreshId,
        narrowed: plan.scope.isNarrowed || undefined,
        token_use: 'refresh',
      },
      expires_in: plan.accessSeconds,
    };
  }

  #nowSeconds(): number {
    return Math.floor(this.#deps.clock.nowMs() / 1000);
  }
}

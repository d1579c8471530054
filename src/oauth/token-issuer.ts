import type { ClientRecord } from '../clients/client-record.ts';
import { uuidV7 } from '../lib/uuid-v7.ts';
import type { JwtKeys } from './jwt-keys.ts';
import { jwtSigner, type SignJwt } from './jwt-signer.ts';

const LOGIN_ACCESS_SECONDS = 15 * 60;
const LOGIN_REFRESH_SECONDS = 30 * 24 * 3600;

/** The documented token response (specification section 2.1): exactly these members. */
export interface TokenResponse {
  access_token: string;
  refresh_token: string;
  expires_in: number;
  token_type: 'Bearer';
  scope: string;
  created_at: number;
}

/** A supervisor who is logged in through a client. */
interface Login {
  supervisorId: string;
  permissions: readonly string[];
  sessionId: string;
}

interface IssuerParts {
  keys: JwtKeys;
  /** `PUBLIC_URL`, as it is once the instance listens. */
  issuer(): string;
  nowMs(): number;
}

interface PairPlan {
  client: ClientRecord;
  subject: string;
  scopes: readonly string[];
  accessUse: 'login' | 'api';
  /** What the pair has in common with those refreshed from it: a session, or a family, whose first token names it. */
  kinship: { sid: string } | { family: string | undefined };
  /** Seconds that `expires_in` names. */
  expiresIn: number;
  /** Seconds that each token lives; undefined: no `exp`. */
  accessSeconds: number | undefined;
  refreshSeconds: number | undefined;
}

/** Signs pairs of access and refresh tokens (decisions: tokens and clients). */
export class TokenIssuer {
  readonly #parts: IssuerParts;
  readonly #sign: SignJwt;

  constructor(parts: IssuerParts) {
    this.#parts = parts;
    this.#sign = jwtSigner(parts.keys.signing.user);
  }

  /** When the refresh token of a login that begins now ends. */
  loginEndsAtMs(): number {
    return this.#nowSeconds() * 1000 + LOGIN_REFRESH_SECONDS * 1000;
  }

  /** A supervisor's pair: 15 minutes and 30 days. */
  forLogin({ supervisorId, permissions, sessionId }: Login, client: ClientRecord): TokenResponse {
    return this.#pair({
      client,
      subject: supervisorId,
      scopes: permissions,
      accessUse: 'login',
      kinship: { sid: sessionId },
      expiresIn: LOGIN_ACCESS_SECONDS,
      accessSeconds: LOGIN_ACCESS_SECONDS,
      refreshSeconds: LOGIN_REFRESH_SECONDS,
    });
  }

  /**
   * A client's pair: both live for its duration, or without end where its token expiry is off. Without a family they
   * begin one, whose id is the `jti` of the refresh token.
   */
  forClient(client: ClientRecord, family?: string): TokenResponse {
    const { enabled, durationSeconds } = client.tokenExpiry;
    const lifetime = enabled ? durationSeconds : undefined;
    return this.#pair({
      client,
      subject: client.clientId,
      scopes: client.scopes,
      accessUse: 'api',
      kinship: { family },
      expiresIn: durationSeconds,
      accessSeconds: lifetime,
      refreshSeconds: lifetime,
    });
  }

  #pair(plan: PairPlan): TokenResponse {
    const { nodeId, clientId, tokensFromSeconds, ownTokensFromSeconds } = plan.client;
    // A client that was enabled or lost a scope a moment ago: what was issued before that second has ended, this has not.
    const goodFrom = plan.accessUse === 'login' ? tokensFromSeconds : ownTokensFromSeconds;
    const iat = Math.max(this.#nowSeconds(), goodFrom);
    const scope = plan.scopes.join(' ');
    const refreshId = uuidV7();
    const kinship = 'sid' in plan.kinship ? plan.kinship : { family: plan.kinship.family ?? refreshId };
    const common = {
      iss: this.#parts.issuer(),
      sub: plan.subject,
      aud: nodeId,
      scope,
      client_id: clientId,
      ...kinship,
    };
    const until = (seconds: number | undefined) => (seconds === undefined ? { iat } : { iat, exp: iat + seconds });
    const access = this.#sign({ ...common, ...until(plan.accessSeconds), jti: uuidV7(), token_use: plan.accessUse });
    const refresh = this.#sign({ ...common, ...until(plan.refreshSeconds), jti: refreshId, token_use: 'refresh' });
    return {
      access_token: access,
      refresh_token: refresh,
      expires_in: plan.expiresIn,
      token_type: 'Bearer',
      scope,
      created_at: iat,
    };
  }

  #nowSeconds(): number {
    return Math.floor(this.#parts.nowMs() / 1000);
  }
}

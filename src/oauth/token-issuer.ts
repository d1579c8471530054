import { SignJWT } from 'jose';
import { uuidV7 } from '../lib/uuid-v7.ts';
import type { JwtKeys } from './jwt-keys.ts';

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

interface Grantee {
  subject: string;
  nodeId: string;
  clientId: string;
  scopes: readonly string[];
}

interface IssuerParts {
  keys: JwtKeys;
  /** `PUBLIC_URL`, as it is once the instance listens. */
  issuer(): string;
  nowMs(): number;
}

interface PairPlan extends Grantee {
  accessUse: 'login' | 'api';
  sessionId: string | undefined;
  /** Seconds that `expires_in` names. */
  expiresIn: number;
  /** Seconds that each token lives; undefined: no `exp`. */
  accessSeconds: number | undefined;
  refreshSeconds: number | undefined;
}

/** Signs pairs of access and refresh tokens (decisions: tokens and clients). */
export class TokenIssuer {
  readonly #parts: IssuerParts;

  constructor(parts: IssuerParts) {
    this.#parts = parts;
  }

  /** When the refresh token of a login that begins now ends. */
  loginEndsAtMs(): number {
    return this.#nowSeconds() * 1000 + LOGIN_REFRESH_SECONDS * 1000;
  }

  /** A supervisor's pair: 15 minutes and 30 days. */
  forLogin(grantee: Grantee, sessionId: string): Promise<TokenResponse> {
    return this.#pair({
      ...grantee,
      accessUse: 'login',
      sessionId,
      expiresIn: LOGIN_ACCESS_SECONDS,
      accessSeconds: LOGIN_ACCESS_SECONDS,
      refreshSeconds: LOGIN_REFRESH_SECONDS,
    });
  }

  /** A client's pair: both live for its duration, or without end where its token expiry is off. */
  forClient(grantee: Grantee, expiry: { enabled: boolean; durationSeconds: number }): Promise<TokenResponse> {
    const lifetime = expiry.enabled ? expiry.durationSeconds : undefined;
    return this.#pair({
      ...grantee,
      accessUse: 'api',
      sessionId: undefined,
      expiresIn: expiry.durationSeconds,
      accessSeconds: lifetime,
      refreshSeconds: lifetime,
    });
  }

  async #pair(plan: PairPlan): Promise<TokenResponse> {
    const issuedAt = this.#nowSeconds();
    const scope = plan.scopes.join(' ');
    const [access, refresh] = await Promise.all([
      this.#sign({ ...plan, use: plan.accessUse, scope, issuedAt, seconds: plan.accessSeconds }),
      this.#sign({ ...plan, use: 'refresh', scope, issuedAt, seconds: plan.refreshSeconds }),
    ]);
    return {
      access_token: access,
      refresh_token: refresh,
      expires_in: plan.expiresIn,
      token_type: 'Bearer',
      scope,
      created_at: issuedAt,
    };
  }

  #sign(
    token: PairPlan & { use: string; scope: string; issuedAt: number; seconds: number | undefined },
  ): Promise<string> {
    const { key, keyId } = this.#parts.keys.signing.user;
    const session = token.sessionId === undefined ? {} : { sid: token.sessionId };
    const jwt = new SignJWT({ scope: token.scope, client_id: token.clientId, ...session, token_use: token.use })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT', kid: keyId })
      .setIssuer(this.#parts.issuer())
      .setSubject(token.subject)
      .setAudience(token.nodeId)
      .setIssuedAt(token.issuedAt)
      .setJti(uuidV7());
    if (token.seconds !== undefined) jwt.setExpirationTime(token.issuedAt + token.seconds);
    return jwt.sign(key);
  }

  #nowSeconds(): number {
    return Math.floor(this.#parts.nowMs() / 1000);
  }
}

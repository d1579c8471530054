import { isUuid } from '../../lib/input.ts';
import { isoFromPg } from '../../lib/instants.ts';
import type { Db } from '../../platform/database/database.ts';
import type { TokenPair } from '../../tables/access.entity.ts';
import { type ClientRecord, type Principal, type SignedToken, unlessInvalid } from '../identity/callers.ts';
import { type AccessDirectory, storedTokenId } from '../revocation/access-cache.ts';
import type { AccessChange, AccessChanges } from '../revocation/access-changes.ts';
import type { Sessions } from '../revocation/sessions.ts';
import type { SupervisorRecord, Supervisors } from '../supervisors/supervisors.service.ts';
import {
  digestOf,
  isInGrace,
  MAX_REFRESH_AGE_MS,
  type RefreshClaims,
  redeemableUntilMs,
  refreshClaims,
} from './claims.rules.ts';
import type { TokenAuthenticator, TokenVerifier } from './token-authenticator.ts';

const YEAR_10000_MS = Date.UTC(10_000, 0, 1);

/**
 * Returns the time, as stored, after which a row about a token may be deleted; null for never. PostgreSQL's text format
 * ends with the year 9999.
 */
function storedEnd(expiresAtMs: number | undefined): string | null {
  return expiresAtMs === undefined || expiresAtMs >= YEAR_10000_MS ? null : new Date(expiresAtMs).toISOString();
}

/** Stores which refresh tokens have been redeemed; the database decides which redemption was the first. */
export class SpentTokens {
  readonly #deps;

  constructor(deps: { db: Db; nowMs(): number }) {
    this.#deps = deps;
  }

  /** Checks whether a token may be redeemed only once. */
  isForOnce({ refreshReuseDetection }: ClientRecord, { issuedAt }: RefreshClaims): boolean {
    return refreshReuseDetection || issuedAt === undefined;
  }

  /**
   * Redeems a token for a pair. Within the grace period every redemption returns the pair of the first, on any process,
   * so that only one chain of tokens continues. Undefined after that period.
   */
  async spend(token: string, claims: RefreshClaims, pair: TokenPair): Promise<TokenPair | undefined> {
    const { db, nowMs } = this.#deps;
    const { nodeId, clientId } = claims;
    const row = {
      client_id: clientId,
      digest: digestOf(token),
      node_id: nodeId,
      successor: pair,
      spent_at: new Date(nowMs()).toISOString(),
      expires_at: storedEnd(redeemableUntilMs(claims)),
    };
    const [first] = await db.forNode(nodeId).run((k) =>
      k
        .insertInto('spent_refresh_tokens')
        .values(row)
        .onConflict((conflict) =>
          conflict.columns(['client_id', 'digest']).doUpdateSet(({ fn, ref }) => ({
            // A process of 0.1.0 stores none.
            successor: fn.coalesce(ref('spent_refresh_tokens.successor'), ref('excluded.successor')),
          })),
        )
        .returning(['spent_at', 'successor']),
    );
    const isGood = first && isInGrace(Date.parse(isoFromPg(first.spent_at)), nowMs());
    return isGood ? (first.successor ?? undefined) : undefined;
  }

  /** Checks whether a token was redeemed longer ago than the grace period. */
  async isSpent(token: string, { nodeId, clientId }: Pick<RefreshClaims, 'nodeId' | 'clientId'>): Promise<boolean> {
    const digest = digestOf(token);
    const [row] = await this.#deps.db
      .forNode(nodeId)
      .run((k) =>
        k
          .selectFrom('spent_refresh_tokens')
          .select('spent_at')
          .where('client_id', '=', clientId)
          .where('digest', '=', digest),
      );
    return row !== undefined && !isInGrace(Date.parse(isoFromPg(row.spent_at)), this.#deps.nowMs());
  }
}

/** A token or token family of a client that is to be revoked. */
interface Revoked {
  nodeId: string;
  clientId: string;
  tokenId: string;
  /** The expiry in ms since 1970; undefined when it does not expire. */
  expiresAtMs: number | undefined;
}

/** Revokes tokens for all processes, durably. Revoking a token again sends no notification. */
export class Revocations {
  readonly #deps;

  constructor(deps: {
    db: Db;
    changes: AccessChanges;
    sessions: Sessions;
    nowMs(): number;
  }) {
    this.#deps = deps;
  }

  /** Revokes one access token. */
  async revokeToken(token: Revoked): Promise<void> {
    await this.#deps.changes.commit((recordRevocation) => this.#deny(token, recordRevocation));
  }

  /**
   * Revokes all tokens that belong together with a refresh token, access tokens included: the session of a login, or
   * the family of a client's tokens.
   */
  async revokeFamily(claims: RefreshClaims, client: ClientRecord): Promise<void> {
    const { nodeId, sessionId, familyId, tokenId } = claims;
    const family = familyId ?? tokenId;
    await this.#deps.changes.commit(async (recordRevocation) => {
      if (sessionId !== undefined) await this.#deps.sessions.end(nodeId, { id: sessionId }, recordRevocation);
      // The session of a token without `iat` may not exist yet; denying its id prevents that it is ever created.
      const isSessionAlone = sessionId !== undefined && claims.issuedAt !== undefined;
      if (family !== undefined && !isSessionAlone) {
        const expiresAtMs = this.#endOfFamily(claims, client);
        await this.#deny({ nodeId, clientId: client.clientId, tokenId: family, expiresAtMs }, recordRevocation);
      }
    });
  }

  /**
   * Returns when the last token of a family will have expired; undefined for never. A refresh token expires at most 365
   * days after its `iat`, an access token after the client's duration, and a token without `exp` never.
   */
  #endOfFamily({ expiresAtMs }: RefreshClaims, { tokenExpiry }: ClientRecord): number | undefined {
    if (expiresAtMs === undefined || !tokenExpiry.enabled) return undefined;
    const longestMs = Math.max(MAX_REFRESH_AGE_MS, tokenExpiry.durationSeconds * 1000);
    return Math.max(expiresAtMs, this.#deps.nowMs() + longestMs);
  }

  async #deny(token: Revoked, recordRevocation: (change: AccessChange) => void): Promise<void> {
    const { nodeId, clientId, expiresAtMs } = token;
    const tokenId = storedTokenId(token.tokenId);
    const row = { client_id: clientId, token_id: tokenId, node_id: nodeId, expires_at: storedEnd(expiresAtMs) };
    const [added] = await this.#deps.db.forNode(nodeId).run((k) =>
      k
        .insertInto('revoked_tokens')
        .values(row)
        .onConflict((conflict) => conflict.columns(['client_id', 'token_id']).doNothing())
        .returning('token_id'),
    );
    if (added) recordRevocation({ kind: 'token', nodeId, subject: clientId, item: tokenId });
  }
}

const HOUR_MS = 3_600_000;

/**
 * Deletes the rows about refresh tokens and revocations of tokens that have expired, failed logins an hour after they have
 * happened, and revocations from the list that processes follow a day after they were added to it.
 */
export async function deleteExpiredRows({ db, nowMs }: { db: Db; nowMs(): number }): Promise<void> {
  const ago = (ms: number) => new Date(nowMs() - ms).toISOString();
  const unscoped = db.unscoped('revoked tokens of all nodes');
  await unscoped.run((k) => k.deleteFrom('spent_refresh_tokens').where('expires_at', '<=', ago(0)));
  await unscoped.run((k) => k.deleteFrom('revoked_tokens').where('expires_at', '<=', ago(0)));
  await unscoped.run((k) => k.deleteFrom('login_failures').where('failed_at', '<', ago(HOUR_MS)));
  await unscoped.run((k) => k.deleteFrom('access_changes').where('created_at', '<', ago(24 * HOUR_MS)));
}

/** Validates refresh tokens, without redeeming them. */
export class RefreshTokens {
  readonly #deps;

  constructor(deps: {
    verifier: TokenVerifier;
    directory: AccessDirectory;
    supervisors: Supervisors;
    sessions: Sessions;
    spent: SpentTokens;
    nowMs(): number;
  }) {
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

/** What introspection says of a token that would not be accepted (RFC 7662 section 2.2). */
const INACTIVE = { active: false };

const CLASSES = ['user', 'legacy'] as const;

/** Revokes and introspects tokens for an authenticated client. */
export class TokenManagement {
  readonly #deps;

  constructor(deps: {
    authenticator: TokenAuthenticator;
    directory: AccessDirectory;
    supervisors: Supervisors;
    refreshTokens: RefreshTokens;
    revocations: Revocations;
  }) {
    this.#deps = deps;
  }

  /**
   * Revokes a token of this client (RFC 7009 section 2.1): an access token only; a refresh token with its family or
   * session and all their access tokens. A token of another client, or one that is no longer valid, is ignored.
   */
  async revoke(token: string, client: ClientRecord): Promise<void> {
    const { authenticator, refreshTokens, revocations } = this.#deps;
    const principal = await unlessInvalid(async () =>
      authenticator.principalOf(await authenticator.checkSignature(token, CLASSES)),
    );
    if (principal?.nodeId === client.nodeId && principal.clientId?.toLowerCase() === client.clientId) {
      const { nodeId, tokenId, expiresAtMs } = principal;
      if (tokenId === undefined) return;
      await revocations.revokeToken({ nodeId, clientId: client.clientId, tokenId, expiresAtMs });
      return;
    }
    const claims = await refreshTokens.claimsOf(token, client);
    if (claims) await revocations.revokeFamily(claims, client);
  }

  /**
   * Returns the content of a token of this client's tenant if it would be accepted now; `active: false` for every other
   * token (RFC 7662 section 2.2).
   */
  async introspect(token: string, client: ClientRecord) {
    const { authenticator } = this.#deps;
    const signed = await unlessInvalid(() => authenticator.checkSignature(token, CLASSES));
    if (!signed) return INACTIVE;
    const principal = await unlessInvalid(async () => {
      const claimed = await authenticator.checkClaims(signed);
      // Another tenant's session is not looked up: an error while it cannot be read would reveal that the token is
      // valid.
      if (claimed.nodeId === client.nodeId) await authenticator.checkSession(claimed);
      return claimed;
    });
    if (!principal) return this.#introspectRefresh(token, signed, client);
    return principal.nodeId === client.nodeId ? this.#introspectAccess(signed, principal) : INACTIVE;
  }

  async #introspectAccess(signed: SignedToken, { nodeId, tokenUse, subject, permissions }: Principal) {
    return {
      active: true,
      scope: [...permissions].join(' '),
      username: tokenUse === 'login' ? await this.#usernameOf(nodeId, subject) : undefined,
      token_type: 'Bearer',
      ...membersOf(signed.claims),
      token_use: tokenUse,
    };
  }

  /** Introspects a refresh token. The response has no `token_type`, since a refresh token is not a Bearer token. */
  async #introspectRefresh(token: string, signed: SignedToken, { nodeId }: ClientRecord) {
    const { directory, refreshTokens } = this.#deps;
    const { client_id: clientId, scope } = signed.claims;
    const owner = typeof clientId === 'string' ? await directory.client(clientId) : undefined;
    if (owner?.nodeId !== nodeId) return INACTIVE;
    const claims = await refreshTokens.claimsOf(token, owner);
    if (!claims || !(await refreshTokens.isRedeemable(token, claims, owner))) return INACTIVE;
    return {
      active: true,
      scope: textOf(scope),
      username: isOfClient(claims) ? undefined : await this.#usernameOf(claims.nodeId, claims.subject),
      ...membersOf(signed.claims),
      token_use: 'refresh',
    };
  }

  async #usernameOf(nodeId: string, supervisorId: string): Promise<string | undefined> {
    return (await this.#deps.supervisors.find(nodeId, supervisorId))?.username;
  }
}

function membersOf({ client_id, exp, iat, sub, aud, iss, jti }: SignedToken['claims']) {
  return {
    client_id: textOf(client_id),
    exp: numberOf(exp),
    iat: numberOf(iat),
    sub: textOf(sub),
    aud: textOf(aud),
    iss: textOf(iss),
    jti: textOf(jti),
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

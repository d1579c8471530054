import type { LoginOrigin } from '../../access/credentials/login-locks.ts';
import type { ClientRecord } from '../../access/identity/callers.ts';
import type { Sessions } from '../../access/revocation/sessions.ts';
import type { PasswordCheck, SupervisorRecord } from '../../access/supervisors/supervisors.service.ts';
import type { RefreshClaims } from '../../access/tokens/refresh.rules.ts';
import { isOfClient, type RefreshTokens, type Revocations, type SpentTokens } from '../../access/tokens/revocations.ts';
import type { TokenIssuer, TokenResponse } from '../../access/tokens/token-issuer.ts';
import { isUuid } from '../../lib/input.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import { Refusal } from '../../platform/errors.ts';
import type { TokenPair } from '../../tables/access.entity.ts';
import { scopeToIssue } from './scope.rules.ts';
import type { GrantType, TokenRequest } from './token-request.input.ts';

/** A token response, and whom its tokens are for. `isApi` distinguishes a client's own tokens from a login. */
export interface Granted {
  response: TokenResponse;
  isApi: boolean;
  subject: string;
}

/** Why nothing is granted, and whom the request named, if anyone: for the log and the audit record alone. */
export interface Denied {
  reason: string;
  subject?: string;
}

/**
 * A grant of the token endpoint (RFC 6749 section 1.3). `origin` is where a login comes from, by default the token
 * endpoint.
 */
export interface Grant {
  grantType: GrantType;
  handle(request: TokenRequest, client: ClientRecord, origin?: LoginOrigin): Promise<Granted | Denied>;
}

/** The refusal of a refresh token that is not one of the client, has ended, or was redeemed before. */
const NO_REFRESH: Denied = { reason: 'refresh_token' };

/**
 * Creates the client credentials grant (RFC 6749 section 4.4): tokens for the client itself, with its scopes and its
 * configured duration.
 */
export function clientCredentialsGrant(issuer: TokenIssuer): Grant {
  return {
    grantType: 'client_credentials',
    async handle({ scope: requested }, client) {
      const scope = scopeToIssue({ requested, client, granted: client.scopes });
      const response = await issuer.sign(issuer.forClient(client, scope));
      return { response, isApi: true, subject: client.clientId };
    },
  };
}

interface PasswordGrantDependencies {
  passwordCheck: Pick<PasswordCheck, 'check'>;
  sessions: Sessions;
  issuer: TokenIssuer;
}

/**
 * Creates the password grant (RFC 6749 section 4.3) for supervisors of the client's tenant. An unknown username, one of
 * another tenant, a wrong password and a lockout give the same response.
 */
export function passwordGrant({ passwordCheck, sessions, issuer }: PasswordGrantDependencies): Grant {
  return {
    grantType: 'password',
    async handle(request, client, origin = null) {
      if (request.grant_type !== 'password') throw new Refusal('unsupported_grant_type');
      const { username, password, scope: requested } = request;
      const login = await passwordCheck.check(client.nodeId, username, password, origin);
      if (login.fault) return { reason: login.fault, subject: login.subject };
      const { supervisor } = login;
      const scope = scopeToIssue({ requested, client, granted: supervisor.permissions });
      const sessionId = uuidV7();
      const isOpen = await sessions.open(sessionOf(issuer, supervisor, sessionId, client), supervisor);
      if (!isOpen) return { reason: 'supervisor_disabled', subject: supervisor.supervisorId };
      const response = await issuer.sign(issuer.forLogin(supervisor, scope, sessionId, client));
      return { response, isApi: false, subject: supervisor.supervisorId };
    },
  };
}

/** Returns the session of a login that begins or continues now. */
function sessionOf(
  issuer: TokenIssuer,
  { supervisorId, nodeId }: SupervisorRecord,
  sessionId: string,
  { clientId }: ClientRecord,
) {
  return { sessionId, nodeId, supervisorId, clientId, expiresAtMs: issuer.loginEndsAtMs() };
}

interface RefreshGrantDependencies {
  refreshTokens: RefreshTokens;
  spent: SpentTokens;
  revocations: Revocations;
  sessions: Sessions;
  issuer: TokenIssuer;
}

/** A redemption of a refresh token by a client. */
interface Redemption {
  token: string;
  /** The requested scope. */
  requested: string | undefined;
  claims: RefreshClaims;
  client: ClientRecord;
}

/**
 * Creates the refresh grant (RFC 6749 section 6): it issues another pair of the same kind, with the current
 * permissions.
 */
export function refreshTokenGrant(deps: RefreshGrantDependencies): Grant {
  return {
    grantType: 'refresh_token',
    async handle(request, client) {
      if (request.grant_type !== 'refresh_token') throw new Refusal('unsupported_grant_type');
      const { refresh_token: token, scope: requested } = request;
      const claims = await deps.refreshTokens.claimsOf(token, client);
      if (!claims) return NO_REFRESH;
      const redemption = { token, requested, claims, client };
      if (!isOfClient(claims)) return refreshLogin(deps, redemption);
      const scope = scopeToIssue({ ...redemption, bound: claims.bound, granted: client.scopes });
      const issued = deps.issuer.forClient(client, scope, claims.familyId ?? claims.tokenId);
      const pair = await redeemed(deps, redemption, issued);
      return pair ? { response: await deps.issuer.sign(pair), isApi: true, subject: claims.subject } : NO_REFRESH;
    },
  };
}

async function refreshLogin(deps: RefreshGrantDependencies, redemption: Redemption): Promise<Granted | Denied> {
  const { refreshTokens, sessions, issuer } = deps;
  const { claims, client } = redemption;
  const supervisor = await refreshTokens.supervisorOf(claims, client);
  const { sessionId } = claims;
  const denied = { ...NO_REFRESH, subject: claims.subject };
  if (!supervisor || sessionId === undefined || !isUuid(sessionId)) return denied;
  const scope = scopeToIssue({ ...redemption, bound: claims.bound, granted: supervisor.permissions });
  const session = sessionOf(issuer, supervisor, sessionId, client);
  // A token without `iat` was issued before sessions existed: it creates one, unless a concurrent redemption has done
  // so.
  const isLive =
    (await sessions.prolong(session)) ||
    (claims.issuedAt === undefined &&
      ((await sessions.open(session, supervisor)) || (await sessions.prolong(session))));
  // The token is redeemed last, so that it still can be when the refresh has failed before.
  const pair = isLive && (await redeemed(deps, redemption, issuer.forLogin(supervisor, scope, sessionId, client)));
  return pair ? { response: await issuer.sign(pair), isApi: false, subject: claims.subject } : denied;
}

/**
 * Redeems a token and returns the pair to issue: `issued`, or the pair of its first redemption; undefined if it cannot be
 * redeemed. With reuse detection, a second redemption may come from a thief, so everything that the token belongs to is
 * revoked.
 */
async function redeemed(
  { spent, revocations }: RefreshGrantDependencies,
  { token, claims, client }: Redemption,
  issued: TokenPair,
): Promise<TokenPair | undefined> {
  if (!spent.isForOnce(client, claims)) return issued;
  const pair = await spent.spend(token, claims, issued);
  if (!pair && client.refreshReuseDetection) await revocations.revokeFamily(claims, client);
  return pair;
}

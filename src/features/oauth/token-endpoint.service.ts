import type { LoginOrigin } from '../../access/credentials/login-locks.ts';
import type { ClientRecord } from '../../access/identity/callers.ts';
import { PERMISSIONS } from '../../access/identity/permissions.rules.ts';
import type { Throttle, WrongSecrets } from '../../access/limits/client-limits.ts';
import type { AccessDirectory } from '../../access/revocation/access-cache.ts';
import type { Sessions } from '../../access/revocation/sessions.ts';
import type { PasswordCheck, SupervisorRecord } from '../../access/supervisors/supervisors.service.ts';
import type { RefreshClaims } from '../../access/tokens/claims.rules.ts';
import { isOfClient, type RefreshTokens, type Revocations, type SpentTokens } from '../../access/tokens/revocations.ts';
import type { IssuedScope, TokenIssuer, TokenResponse } from '../../access/tokens/token-issuer.ts';
import { isUuid } from '../../lib/input.ts';
import { isObject } from '../../lib/json.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import { BASIC_CHALLENGE, invalidRequest, parseOrReject, Refusal } from '../../platform/errors.ts';
import type { TokenPair } from '../../tables/access.entity.ts';
import {
  type ClientCredentials,
  type ClientRequest,
  clientBesideBasicInput,
  clientInput,
  type GrantRequest,
  parseTokenRequest,
  tokenInput,
} from './token-request.input.ts';

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
  lockedUntilMs?: number | undefined;
}

/** The refusal of a refresh token that is not one of the client, has ended, or was redeemed before. */
const NO_REFRESH: Denied = { reason: 'refresh_token' };

/** A redemption of a refresh token by a client. */
interface Redemption {
  token: string;
  /** The requested scope. */
  requested: string | undefined;
  claims: RefreshClaims;
  client: ClientRecord;
}

/** The grants of the token endpoint (RFC 6749 section 1.3). */
export class Grants {
  readonly #deps;

  constructor(deps: {
    passwordCheck: Pick<PasswordCheck, 'check'>;
    refreshTokens: RefreshTokens;
    spent: SpentTokens;
    revocations: Revocations;
    sessions: Sessions;
    issuer: TokenIssuer;
  }) {
    this.#deps = deps;
  }

  /** Grants what a client requests, by the type of the grant. */
  handle(request: GrantRequest, client: ClientRecord): Promise<Granted | Denied> {
    switch (request.grant_type) {
      case 'client_credentials':
        return this.#clientCredentials(request, client);
      case 'password':
        return this.password(request, client);
      case 'refresh_token':
        return this.refresh(request, client);
    }
  }

  /** Grants tokens for the client itself, with its scopes and its configured duration (RFC 6749 section 4.4). */
  async #clientCredentials({ scope: requested }: GrantRequest, client: ClientRecord): Promise<Granted> {
    const { issuer } = this.#deps;
    const scope = scopeToIssue({ requested, client, granted: client.scopes });
    return {
      response: await issuer.sign(issuer.forClient(client, scope)),
      isApi: true,
      subject: client.clientId,
    };
  }

  /**
   * Grants a login to supervisors of the client's tenant (RFC 6749 section 4.3). An unknown username, one of another
   * tenant, a wrong password and a lockout give the same response. `origin` is where the login comes from, by default the
   * token endpoint.
   */
  async password(
    { username, password, scope: requested }: { username: string; password: string; scope?: string | undefined },
    client: ClientRecord,
    origin: LoginOrigin = null,
  ): Promise<Granted | Denied> {
    const { passwordCheck, sessions, issuer } = this.#deps;
    const login = await passwordCheck.check(client.nodeId, username, password, origin);
    if ('reason' in login) return login;
    const { supervisor } = login;
    const { supervisorId: subject, permissions: granted } = supervisor;
    const scope = scopeToIssue({ requested, client, granted, subject });
    const sessionId = uuidV7();
    const isOpen = await sessions.open(this.#sessionOf(supervisor, sessionId, client), supervisor);
    if (!isOpen) return { reason: 'supervisor_disabled', subject };
    const response = await issuer.sign(issuer.forLogin(supervisor, scope, sessionId, client));
    return { response, isApi: false, subject };
  }

  /** Grants another pair of the same kind, with the current permissions (RFC 6749 section 6). */
  async refresh(
    { refresh_token: token, scope: requested }: { refresh_token: string; scope?: string | undefined },
    client: ClientRecord,
  ): Promise<Granted | Denied> {
    const { refreshTokens, issuer } = this.#deps;
    const claims = await refreshTokens.claimsOf(token, client);
    if (!claims) return NO_REFRESH;
    const redemption = { token, requested, claims, client };
    if (!isOfClient(claims)) return this.#refreshLogin(redemption);
    const scope = scopeToIssue({ ...redemption, bound: claims.bound, granted: client.scopes });
    const pair = await this.#redeemed(redemption, issuer.forClient(client, scope, claims.familyId ?? claims.tokenId));
    return pair ? { response: await issuer.sign(pair), isApi: true, subject: claims.subject } : NO_REFRESH;
  }

  async #refreshLogin(redemption: Redemption): Promise<Granted | Denied> {
    const { refreshTokens, sessions, issuer } = this.#deps;
    const { claims, client } = redemption;
    const supervisor = await refreshTokens.supervisorOf(claims, client);
    const { sessionId } = claims;
    const denied = { ...NO_REFRESH, subject: claims.subject };
    if (!supervisor || sessionId === undefined || !isUuid(sessionId)) return denied;
    const scope = scopeToIssue({ ...redemption, bound: claims.bound, granted: supervisor.permissions });
    const session = this.#sessionOf(supervisor, sessionId, client);
    // A token without `iat` was issued before sessions existed: it creates one, unless a concurrent redemption has done
    // so.
    const isLive =
      (await sessions.prolong(session)) ||
      (claims.issuedAt === undefined &&
        ((await sessions.open(session, supervisor)) || (await sessions.prolong(session))));
    // The token is redeemed last, so that it still can be when the refresh has failed before.
    const pair = isLive && (await this.#redeemed(redemption, issuer.forLogin(supervisor, scope, sessionId, client)));
    return pair ? { response: await issuer.sign(pair), isApi: false, subject: claims.subject } : denied;
  }

  /** Returns the session of a login that begins or continues now. */
  #sessionOf({ supervisorId, nodeId }: SupervisorRecord, sessionId: string, { clientId }: ClientRecord) {
    return { sessionId, nodeId, supervisorId, clientId, expiresAtMs: this.#deps.issuer.loginEndsAtMs() };
  }

  /**
   * Redeems a token and returns the pair to issue: `issued`, or the pair of its first redemption; undefined if it cannot
   * be redeemed. With reuse detection, a second redemption may come from a thief, so everything that the token belongs to
   * is revoked.
   */
  async #redeemed({ token, claims, client }: Redemption, issued: TokenPair): Promise<TokenPair | undefined> {
    const { spent, revocations } = this.#deps;
    if (!spent.isForOnce(client, claims)) return issued;
    const pair = await spent.spend(token, claims, issued);
    if (!pair && client.refreshReuseDetection) await revocations.revokeFamily(claims, client);
    return pair;
  }
}

/** A request that authenticates a client. */
export interface ClientCall extends Pick<ClientRequest, 'parameters' | 'basic'> {
  /** The caller's IP address, for which wrong secrets are counted. */
  readonly realIp: string;
  /** Its exchange, which lets the client in if its guards do (docs/contract.md, 5.3). */
  readonly exchange: { admit(client: ClientRecord): Promise<void> };
}

/** What the endpoints that authenticate a client call. */
export interface TokenEndpointDependencies {
  directory: Pick<AccessDirectory, 'authenticate'>;
  throttle: Pick<Throttle, 'failed'>;
  wrongSecrets: Pick<WrongSecrets, 'note'>;
  /** Returns a hash of the id of a client that does not exist. */
  strangerOf(clientId: string): string;
  grants: Pick<Grants, 'handle'>;
}

/**
 * Returns the response of the token endpoint (RFC 6749 section 3.2; docs/contract.md, 4.1, 5.2 and 7.2), and the client
 * that has authenticated.
 * @throws Refusal `invalid_request`, `invalid_client`, `unsupported_grant_type`, `unauthorized_client`,
 * `invalid_grant`, `rate_limit_exceeded` after too many wrong secrets; or the refusal of a client guard.
 */
export async function issueTokens(
  dependencies: TokenEndpointDependencies,
  call: ClientCall,
): Promise<Granted & { client: ClientRecord }> {
  const request = parseTokenRequest(call.parameters);
  const client = await authenticateClient(dependencies, call);
  if (!request) throw new Refusal('unsupported_grant_type');
  if (!client.grantTypes.includes(request.grant_type)) throw new Refusal('unauthorized_client');
  const granted = await dependencies.grants.handle(request, client);
  // The error does not disclose whether the username, the password or the token was wrong.
  if ('reason' in granted) throw new Refusal('invalid_grant', granted);
  return { ...granted, client };
}

/**
 * Returns the token to revoke or introspect, and the authenticated client (RFC 7009 section 2.1, RFC 7662 section 2.1).
 * A caller without any secret is refused before anything else about its request is disclosed.
 * @throws Refusal `invalid_request`, `invalid_client`, `rate_limit_exceeded` after too many wrong secrets; or the
 * refusal of a client guard.
 */
export async function tokenToManage(
  dependencies: TokenEndpointDependencies,
  call: ClientCall,
): Promise<{ token: string; client: ClientRecord }> {
  const { basic, parameters } = call;
  if (basic === undefined && isObject(parameters) && (parameters.client_secret ?? null) === null) {
    throw invalidClient({ reason: 'no_secret' }, true);
  }
  const { token } = parseOrReject(tokenInput, parameters);
  return { token, client: await authenticateClient(dependencies, call) };
}

/**
 * Authenticates the client and runs its guards. Wrong secrets are counted; a correct one is accepted however many were
 * wrong before.
 */
async function authenticateClient(
  { directory, throttle, wrongSecrets, strangerOf }: TokenEndpointDependencies,
  call: ClientCall,
): Promise<ClientRecord> {
  const credentials = credentialsOf(call);
  if (!credentials) throw invalidClient({ reason: 'malformed_basic' }, true);
  const { clientId, secret } = credentials;
  const { client, fault } = await directory.authenticate(secret, clientId);
  if (client) wrongSecrets.note(clientId, fault !== undefined);
  if (fault) {
    const named = { reason: fault, subject: client ? undefined : strangerOf(clientId) };
    await throttle.failed(call.realIp, clientId, named.subject);
    throw invalidClient(named, call.basic !== undefined);
  }
  await call.exchange.admit(client);
  return client;
}

/**
 * Returns the client's credentials from HTTP Basic, else from the body.
 * @throws Refusal `invalid_request` when they are missing or malformed, or when the body has a second secret or another
 * id.
 */
function credentialsOf({ basic, parameters }: ClientCall): ClientCredentials | null {
  if (basic === undefined) {
    const { client_id, client_secret } = parseOrReject(clientInput, parameters);
    return { clientId: client_id, secret: client_secret };
  }
  const { client_id: clientId } = parseOrReject(clientBesideBasicInput, parameters);
  if (basic && clientId !== undefined && clientId !== basic.clientId) {
    throw invalidRequest([{ path: 'client_id', message: 'must be the same as in HTTP Basic' }]);
  }
  return basic;
}

/** Makes the refusal of a client that is not authenticated, with a challenge when the caller may use HTTP Basic. */
function invalidClient(named: { reason: string; subject?: string | undefined }, isChallenged: boolean): Refusal {
  return new Refusal('invalid_client', isChallenged ? { ...named, challenge: BASIC_CHALLENGE } : named);
}

/**
 * Returns the scope to issue: what is granted within the bound, narrowed to the known names that are requested
 * (docs/contract.md, D3-33). A request without a known name narrows nothing.
 * @throws Refusal `invalid_scope` when known names are requested and none of them can be issued.
 */
function scopeToIssue({
  requested = '',
  client,
  granted,
  bound,
  subject,
}: {
  /** The `scope` of the token request (RFC 6749 section 3.3), which may have unknown names. */
  requested: string | undefined;
  client: Pick<ClientRecord, 'scopes'>;
  /** The scopes of the client, or the permissions of the supervisor. */
  granted: readonly string[];
  /** For a refresh: the scope of the refresh token when it was narrowed. */
  bound?: readonly string[] | undefined;
  /** The supervisor who logs in; undefined otherwise. */
  subject?: string;
}): IssuedScope {
  const known = new Set<string>([...PERMISSIONS, ...client.scopes]);
  const names = requested.split(' ').filter((name) => known.has(name));
  const allowed = bound ? granted.filter((name) => bound.includes(name)) : granted;
  if (names.length === 0) return { names: allowed, isNarrowed: bound !== undefined };
  const issued = allowed.filter((name) => names.includes(name));
  if (issued.length === 0) throw new Refusal('invalid_scope', { subject });
  return { names: issued, isNarrowed: true };
}

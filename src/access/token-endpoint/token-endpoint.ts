import type { Step } from '../../lib/steps.ts';
import { invalidRequest, parsed } from '../../platform/errors.ts';
import type { ClientRecord } from '../identity/client-record.ts';
import type { ClientGuards, Origin } from '../limits/guards.ts';
import type { LimitHeaders } from '../limits/limits.rules.ts';
import type { AccessDirectory } from '../sessions/access-directory.ts';
import type { TokenResponse } from '../tokens/token-issuer.ts';
import type { Grant, Granted } from './grants.ts';
import { invalidClient, OAuthError } from './oauth-error.ts';
import {
  basicClient,
  type ClientCredentials,
  clientBesideBasicInput,
  clientInput,
  isBasic,
  parseTokenRequest,
  type TokenRequest,
  tokenInput,
} from './token-request.input.ts';

/** A request that authenticates a client, as it passes through the steps. */
export interface ClientCall {
  /** The parameters of the body, from JSON or a form. */
  readonly parameters: unknown;
  readonly authorization: string | undefined;
  /** The caller's IP address, for which wrong secrets are counted. */
  readonly realIp: string;
  readonly origin: Origin;
  /** The client's limit headers, which the steps add for the response, refusals included. */
  readonly headers: LimitHeaders;
  /** The credentials; undefined until they are parsed, and when no client can have them, which gives a 401. */
  credentials: ClientCredentials | undefined;
  client: ClientRecord | undefined;
}

/** A token request as it passes through the steps. */
export interface TokenCall extends ClientCall {
  request: TokenRequest | undefined;
  granted: Granted | undefined;
}

/**
 * Returns the parsed request.
 * @throws Error before the step that parses it.
 */
function requestOf(call: TokenCall): TokenRequest {
  if (!call.request) throw new Error('the request is parsed first');
  return call.request;
}

/**
 * Returns the authenticated client.
 * @throws Error before the step that authenticates it.
 */
export function clientOf(call: ClientCall): ClientRecord {
  if (!call.client) throw new Error('the client is authenticated first');
  return call.client;
}

/** Counts wrong client secrets. */
interface SecretThrottle {
  /**
   * Counts a wrong secret.
   * @throws AppError 429 after too many from this address for this client.
   */
  failed(realIp: string, clientId: string): void | Promise<void>;
}

/**
 * Reads the client's credentials from HTTP Basic, else from the body. Other schemes than Basic are ignored.
 * @throws AppError 400 when they are missing or malformed, or when the body has a second secret or another id.
 */
function parseCredentials(call: ClientCall): void {
  const { authorization } = call;
  if (authorization !== undefined && isBasic(authorization)) {
    call.credentials = credentialsBesideBody(authorization, call.parameters);
    return;
  }
  const { client_id: clientId, client_secret: secret } = parsed(clientInput, call.parameters);
  call.credentials = { clientId, secret };
}

/**
 * Creates the step that authenticates the client. Wrong secrets are counted; a correct one is accepted however many
 * were wrong before.
 * @throws OAuthError 401, or AppError 429 after too many wrong secrets.
 */
function authenticateClient(directory: AccessDirectory, throttle: SecretThrottle): Step<ClientCall> {
  return async function authenticateClient(call: ClientCall): Promise<void> {
    const { credentials } = call;
    if (!credentials) throw invalidClient(true);
    const { clientId, secret } = credentials;
    call.client = await directory.authenticate(clientId, secret);
    if (call.client) return;
    await throttle.failed(call.realIp, clientId);
    throw invalidClient(isBasic(call.authorization));
  };
}

/** Creates the step that runs the client guards (specification section 5.3). */
function guardClient(guards: ClientGuards): Step<ClientCall> {
  return function guardClient(call: ClientCall): void | Promise<void> {
    return guards.run(clientOf(call), call.origin, call.headers);
  };
}

function credentialsBesideBody(authorization: string, parameters: unknown): ClientCredentials | undefined {
  const { client_id: clientId } = parsed(clientBesideBasicInput, parameters);
  const basic = basicClient(authorization);
  if (basic && clientId !== undefined && clientId !== basic.clientId) {
    throw invalidRequest([{ path: 'client_id', message: 'must be the one of HTTP Basic' }]);
  }
  return basic;
}

/** A step of the token endpoint. */
export type TokenStep = Step<TokenCall>;

interface TokenEndpointParts {
  directory: AccessDirectory;
  throttle: SecretThrottle;
  guards: ClientGuards;
  grants: readonly Grant[];
}

/**
 * Returns the steps of the token endpoint, in order (RFC 6749 section 3.2; specification sections 4.1, 5.2 and 7.2).
 */
export function tokenSteps({ directory, throttle, guards, grants }: TokenEndpointParts): readonly TokenStep[] {
  return [parseRequest, authenticateClient(directory, throttle), guardClient(guards), allowGrant, runGrant(grants)];
}

/**
 * Returns the token response.
 * @throws Error before the last step, which gives it.
 */
export function grantedResponse(call: TokenCall): TokenResponse {
  if (!call.granted) throw new Error('the last step gives the response');
  return call.granted.response;
}

function parseRequest(call: TokenCall): void {
  call.request = parseTokenRequest(call.parameters);
  parseCredentials(call);
}

function allowGrant(call: TokenCall): void {
  const grantType = requestOf(call).grant_type;
  if (grantType === undefined) throw new OAuthError(403, 'unsupported_grant_type');
  if (!clientOf(call).grantTypes.includes(grantType)) throw new OAuthError(403, 'unauthorized_client');
}

function runGrant(grants: readonly Grant[]): TokenStep {
  return async function runGrant(call: TokenCall): Promise<void> {
    const request = requestOf(call);
    const grant = grants.find((candidate) => candidate.grantType === request.grant_type);
    if (!grant) throw new OAuthError(403, 'unsupported_grant_type');
    call.granted = await grant.handle(request, clientOf(call));
    // The error does not disclose whether the username, the password or the token was wrong.
    if (!call.granted) throw new OAuthError(401, 'invalid_grant');
  };
}

/** A revocation or introspection request as it passes through the steps. */
export interface ManagementCall extends ClientCall {
  token: string | undefined;
}

/**
 * Returns the steps that precede a revocation or introspection, in order (RFC 7009 section 2.1, RFC 7662 section 2.1).
 */
export function managementSteps({
  directory,
  throttle,
  guards,
}: Omit<TokenEndpointParts, 'grants'>): readonly Step<ManagementCall>[] {
  return [requireCredentials, parseToken, authenticateClient(directory, throttle), guardClient(guards)];
}

/**
 * Returns the parsed token.
 * @throws Error before the step that parses it.
 */
export function tokenOf({ token }: ManagementCall): string {
  if (token === undefined) throw new Error('the token is parsed first');
  return token;
}

/**
 * Refuses a caller without any secret before anything else about its request is disclosed.
 * @throws OAuthError 401 when there is no secret.
 */
function requireCredentials({ authorization, parameters }: ManagementCall): void {
  if (isBasic(authorization) || typeof parameters !== 'object' || parameters === null || Array.isArray(parameters))
    return;
  const secret = 'client_secret' in parameters ? parameters.client_secret : undefined;
  if (secret === undefined || secret === null) throw invalidClient(true);
}

function parseToken(call: ManagementCall): void {
  call.token = parsed(tokenInput, call.parameters).token;
  parseCredentials(call);
}

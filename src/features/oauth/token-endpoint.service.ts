import type { ClientRecord } from '../../access/identity/callers.ts';
import type { ClientGuards, GuardedRequest } from '../../access/limits/client-guards.ts';
import type { Throttle, WrongSecrets } from '../../access/limits/throttle.ts';
import type { AccessDirectory } from '../../access/revocation/access-cache.ts';
import { isObject } from '../../lib/json.ts';
import { BASIC_CHALLENGE, invalidRequest, parseOrReject, Refusal } from '../../platform/errors.ts';
import type { Grant, Granted } from './grants.service.ts';
import {
  type ClientCredentials,
  type ClientRequest,
  clientBesideBasicInput,
  clientInput,
  parseTokenRequest,
  tokenInput,
} from './token-request.input.ts';

/** A request that authenticates a client. */
export interface ClientCall extends Pick<ClientRequest, 'parameters' | 'basic'> {
  /** The caller's IP address, for which wrong secrets are counted. */
  readonly realIp: string;
  /** What the client guards look at (docs/contract.md, 5.3). */
  readonly request: GuardedRequest;
}

/** What the endpoints that authenticate a client call. */
export interface TokenEndpointDependencies {
  directory: Pick<AccessDirectory, 'authenticate'>;
  throttle: Pick<Throttle, 'failed'>;
  wrongSecrets: Pick<WrongSecrets, 'note'>;
  /** Returns a hash of the id of a client that does not exist. */
  strangerOf(clientId: string): string;
  guards: Pick<ClientGuards, 'check'>;
  grants: readonly Grant[];
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
  const grant = dependencies.grants.find(({ grantType }) => grantType === request.grant_type);
  if (!grant) throw new Refusal('unsupported_grant_type');
  if (!client.grantTypes.includes(grant.grantType)) throw new Refusal('unauthorized_client');
  const granted = await grant.handle(request, client);
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
  { directory, throttle, wrongSecrets, guards, strangerOf }: TokenEndpointDependencies,
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
  await guards.check(call.request, client);
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

import { AppError, invalidRequest } from '../errors/app-error.ts';
import type { AccessDirectory } from './access-directory.ts';
import type { Grant } from './grants/grant.ts';
import { certificateGuard, type Guard, ipAllowlistGuard, monthlyQuotaGuard, rateLimitGuard } from './guards.ts';
import { clientOf, requestOf, type TokenCall } from './token-call.ts';
import type { TokenResponse } from './token-issuer.ts';
import { parseTokenRequest } from './token-request.input.ts';

/** One step of the token endpoint: adds to the call, or refuses by throwing an `AppError`. */
export type TokenStep = (call: TokenCall) => void | Promise<void>;

interface TokenEndpointParts {
  directory: AccessDirectory;
  grants: readonly Grant[];
}

/** The token endpoint (RFC 6749 section 3.2, specification sections 4.1, 5.2 and 7.2): its steps, in their order. */
export function tokenSteps(parts: TokenEndpointParts): readonly TokenStep[] {
  return [
    parseRequest,
    authenticateClient(parts.directory),
    guardStep(certificateGuard),
    guardStep(ipAllowlistGuard),
    guardStep(rateLimitGuard),
    guardStep(monthlyQuotaGuard),
    allowGrant,
    runGrant(parts.grants),
  ];
}

/** Runs the steps and gives the token response. */
export async function issueToken(steps: readonly TokenStep[], call: TokenCall): Promise<TokenResponse> {
  for (const step of steps) {
    const pending = step(call);
    if (pending) await pending;
  }
  if (!call.granted) throw new Error('the last step gives the response');
  return call.granted.response;
}

function parseRequest(call: TokenCall): void {
  call.request = parseTokenRequest(call.body);
  if (!call.request) throw invalidRequest();
}

function authenticateClient(directory: AccessDirectory): TokenStep {
  return async function authenticateClient(call: TokenCall): Promise<void> {
    const { client_id: clientId, client_secret: secret } = requestOf(call);
    call.client = await directory.authenticate(clientId, secret);
    if (!call.client) throw invalidGrant();
  };
}

function guardStep(guard: Guard): TokenStep {
  return (call) => guard({ client: clientOf(call), realIp: call.realIp, fingerprint: call.fingerprint });
}

function allowGrant(call: TokenCall): void {
  const grantType = requestOf(call).grant_type;
  if (grantType === undefined || !clientOf(call).grantTypes.includes(grantType)) {
    throw new AppError(403, 'invalid_request');
  }
}

function runGrant(grants: readonly Grant[]): TokenStep {
  return async function runGrant(call: TokenCall): Promise<void> {
    const request = requestOf(call);
    const grant = grants.find((candidate) => candidate.grantType === request.grant_type);
    if (!grant) throw new AppError(403, 'invalid_request');
    call.granted = await grant.handle(request, clientOf(call));
    if (!call.granted) throw invalidGrant();
  };
}

/** 401 of the token endpoint: wrong client, password or refresh token; which one it was is not told. */
function invalidGrant(): AppError {
  return new AppError(401, 'invalid_request');
}

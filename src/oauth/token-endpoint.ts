import { invalidRequest } from '../errors/app-error.ts';
import type { AccessDirectory } from './access-directory.ts';
import {
  authenticateClient,
  guardSteps,
  parseCredentials,
  runSteps,
  type SecretThrottle,
  type Step,
} from './client-steps.ts';
import type { Grant } from './grants/grant.ts';
import type { Guard } from './guards.ts';
import { OAuthError } from './oauth-error.ts';
import { clientOf, requestOf, type TokenCall } from './token-call.ts';
import type { TokenResponse } from './token-issuer.ts';
import { parseTokenRequest } from './token-request.input.ts';

/** One step of the token endpoint. */
export type TokenStep = Step<TokenCall>;

interface TokenEndpointParts {
  directory: AccessDirectory;
  throttle: SecretThrottle;
  guards: readonly Guard[];
  grants: readonly Grant[];
}

/** The token endpoint (RFC 6749 section 3.2, specification sections 4.1, 5.2 and 7.2): its steps, in their order. */
export function tokenSteps({ directory, throttle, guards, grants }: TokenEndpointParts): readonly TokenStep[] {
  return [parseRequest, authenticateClient(directory, throttle), ...guardSteps(guards), allowGrant, runGrant(grants)];
}

/** Runs the steps and gives the token response. */
export async function issueToken(steps: readonly TokenStep[], call: TokenCall): Promise<TokenResponse> {
  await runSteps(steps, call);
  if (!call.granted) throw new Error('the last step gives the response');
  return call.granted.response;
}

function parseRequest(call: TokenCall): void {
  call.request = parseTokenRequest(call.parameters);
  if (!call.request) throw invalidRequest();
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
    // Which of password, name and token it was is not told.
    if (!call.granted) throw new OAuthError(401, 'invalid_grant');
  };
}

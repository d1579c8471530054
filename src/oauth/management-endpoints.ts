import { invalidRequest } from '../errors/app-error.ts';
import { issuesOf } from '../errors/issues.ts';
import type { AccessDirectory } from './access-directory.ts';
import { isBasic } from './basic-client.rules.ts';
import { authenticateClient, guardSteps, parseCredentials, type SecretThrottle, type Step } from './client-steps.ts';
import type { Guard } from './guards.ts';
import { invalidClient } from './oauth-error.ts';
import type { ClientCall } from './token-call.ts';
import { tokenInput } from './token-request.input.ts';

/** One call of revocation or introspection. */
export interface ManagementCall extends ClientCall {
  token: string | undefined;
}

interface ManagementParts {
  directory: AccessDirectory;
  throttle: SecretThrottle;
  guards: readonly Guard[];
}

/** What comes before a token is revoked or introspected (RFC 7009 section 2.1, RFC 7662 section 2.1), in its order. */
export function managementSteps({ directory, throttle, guards }: ManagementParts): readonly Step<ManagementCall>[] {
  return [requireCredentials, parseToken, authenticateClient(directory, throttle), ...guardSteps(guards)];
}

/** The token that a call is about, once it is parsed. */
export function tokenOf({ token }: ManagementCall): string {
  if (token === undefined) throw new Error('the token is parsed first');
  return token;
}

/** A caller who shows no secret at all is not told what else is wrong. */
function requireCredentials({ authorization, parameters }: ManagementCall): void {
  if (isBasic(authorization) || typeof parameters !== 'object' || parameters === null || Array.isArray(parameters))
    return;
  const secret = 'client_secret' in parameters ? parameters.client_secret : undefined;
  if (secret === undefined || secret === null) throw invalidClient(true);
}

function parseToken(call: ManagementCall): void {
  const parsed = tokenInput.safeParse(call.parameters);
  if (!parsed.success) throw invalidRequest(issuesOf(parsed.error));
  call.token = parsed.data.token;
  parseCredentials(call);
}

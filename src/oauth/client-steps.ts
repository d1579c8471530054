import { invalidRequest } from '../errors/app-error.ts';
import { issuesOf } from '../errors/issues.ts';
import type { AccessDirectory } from './access-directory.ts';
import { basicClient, type ClientCredentials, isBasic } from './basic-client.rules.ts';
import type { Guard } from './guards.ts';
import { invalidClient } from './oauth-error.ts';
import { type ClientCall, clientOf } from './token-call.ts';
import { clientBesideBasicInput, clientInput } from './token-request.input.ts';

/** One step of a route that authenticates a client: adds to the call, or refuses by throwing an `AppError`. */
export type Step<Call> = (call: Call) => void | Promise<void>;

/** Counts wrong secrets. */
export interface SecretThrottle {
  /** @throws AppError 429 where there were too many from this address for this client. */
  failed(realIp: string, clientId: string): void | Promise<void>;
}

/** Runs the steps in their order. */
export async function runSteps<Call>(steps: readonly Step<Call>[], call: Call): Promise<void> {
  for (const step of steps) {
    const pending = step(call);
    if (pending) await pending;
  }
}

/**
 * Finds the client's credentials: HTTP Basic, else in the body. Another scheme than Basic is ignored.
 * @throws AppError 400 for missing or malformed ones, for two secrets or two ids.
 */
export function parseCredentials(call: ClientCall): void {
  const { authorization } = call;
  if (authorization !== undefined && isBasic(authorization)) {
    call.credentials = credentialsBesideBody(authorization, call.parameters);
    return;
  }
  const parsed = clientInput.safeParse(call.parameters);
  if (!parsed.success) throw invalidRequest(issuesOf(parsed.error));
  call.credentials = { clientId: parsed.data.client_id, secret: parsed.data.client_secret };
}

/** Authenticates the client; a wrong secret is counted, a right one is never refused for others that were wrong. */
export function authenticateClient(directory: AccessDirectory, throttle: SecretThrottle): Step<ClientCall> {
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

/** The guards of the client (specification section 5.3), a step each. */
export function guardSteps(guards: readonly Guard[]): Step<ClientCall>[] {
  return guards.map((guard) => (call) => {
    const { address, fingerprint, headers } = call;
    call.guarded ??= { client: clientOf(call), address, fingerprint, headers };
    return guard(call.guarded);
  });
}

function credentialsBesideBody(authorization: string, parameters: unknown): ClientCredentials | undefined {
  const parsed = clientBesideBasicInput.safeParse(parameters);
  if (!parsed.success) throw invalidRequest(issuesOf(parsed.error));
  const basic = basicClient(authorization);
  const { client_id: clientId } = parsed.data;
  if (basic && clientId !== undefined && clientId !== basic.clientId) {
    throw invalidRequest([{ path: 'client_id', message: 'must be the one of HTTP Basic' }]);
  }
  return basic;
}

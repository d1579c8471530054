import type { ClientRecord } from '../clients/client-record.ts';
import type { AccessDirectory } from '../oauth/access-directory.ts';
import { type Guard, type GuardedCall, runGuards } from '../oauth/guards.ts';
import type { Principal } from '../oauth/principal.ts';
import type { Exchange } from './exchange.ts';

type Directory = Pick<AccessDirectory, 'client'>;

/**
 * Runs the guards of the client whose API token a request carries, and sets the headers of its limits on the answer,
 * refusals included; login tokens are not guarded after issue.
 */
export function clientGuards(directory: Directory, guards: readonly Guard[]) {
  return function guardClient(exchange: Exchange): void | Promise<void> {
    const { principal } = exchange;
    if (principal?.tokenUse !== 'api' || principal.clientId === undefined) return;
    const client = directory.client(principal.clientId);
    if (client instanceof Promise) return client.then((known) => guard(guards, exchange, known));
    return guard(guards, exchange, client);
  };
}

/**
 * Runs the same guards for an operation that came with others in one request, or on a socket. It is counted, and has no
 * headers of its own.
 */
export function operationGuards(directory: Directory, guards: readonly Guard[]) {
  return async function guardOperation(principal: Principal, exchange: Exchange): Promise<void> {
    if (principal.tokenUse !== 'api' || principal.clientId === undefined) return;
    const client = await directory.client(principal.clientId);
    if (client) await runGuards(guards, { client, ...originOf(exchange), headers: {} });
  };
}

/** Where a request came from, as the guards see it. */
export function originOf({ req, realIp }: Exchange): { realIp: string; fingerprint: string | undefined } {
  const header = req.headers['ssl-client-fingerprint'];
  return { realIp, fingerprint: Array.isArray(header) ? header.join(',') : header };
}

function guard(guards: readonly Guard[], exchange: Exchange, client: ClientRecord | undefined): void | Promise<void> {
  if (!client) return;
  const call: GuardedCall = { client, ...originOf(exchange), headers: {} };
  let pending: void | Promise<void>;
  try {
    pending = runGuards(guards, call);
  } catch (error) {
    setHeaders(exchange, call);
    throw error;
  }
  if (pending) return pending.finally(() => setHeaders(exchange, call));
  setHeaders(exchange, call);
}

function setHeaders({ res }: Exchange, { headers }: GuardedCall): void {
  for (const name in headers) res.setHeader(name, headers[name] ?? '');
}

import type { ClientRecord } from '../clients/client-record.ts';
import { AppError } from '../errors/app-error.ts';
import type { AccessDirectory } from '../oauth/access-directory.ts';
import { type Guard, type GuardedCall, runGuards } from '../oauth/guards.ts';
import type { Principal } from '../oauth/principal.ts';
import type { TokenOrigin } from '../oauth/token-judge.ts';
import type { Exchange } from './exchange.ts';

type Directory = Pick<AccessDirectory, 'client'>;

/**
 * Runs the guards of the client whose API token a request carries, and sets the headers of its limits on the answer,
 * refusals included; login tokens are not guarded after issue. The refusal of a limit is left to the handler of what may
 * bring several operations.
 */
export function clientGuards(directory: Directory, guards: readonly Guard[]) {
  return function guardClient(exchange: Exchange): void | Promise<void> {
    const { principal } = exchange;
    if (principal?.tokenUse !== 'api' || principal.clientId === undefined) return;
    const client = directory.client(principal.clientId);
    if (client instanceof Promise) return client.then((known) => guardRequest(guards, exchange, known));
    return guardRequest(guards, exchange, client);
  };
}

/**
 * Runs the same guards for an operation that came with others in one request, or on a socket. It is counted; the answer
 * of a request tells what is left after the last one, a socket has no headers.
 */
export function operationGuards(directory: Directory, guards: readonly Guard[]) {
  return async function guardOperation(principal: Principal, exchange: Exchange): Promise<void> {
    if (principal.tokenUse !== 'api' || principal.clientId === undefined) return;
    const client = await directory.client(principal.clientId);
    if (client) await guard(guards, exchange, client);
  };
}

/** Where a request came from, as the guards see it. */
export function originOf({ req, clientAddress: address }: Exchange): TokenOrigin {
  const header = req.headers['ssl-client-fingerprint'];
  return { address, fingerprint: Array.isArray(header) ? header.join(',') : header };
}

function guardRequest(
  guards: readonly Guard[],
  exchange: Exchange,
  client: ClientRecord | undefined,
): void | Promise<void> {
  if (!client) return;
  try {
    return guard(guards, exchange, client)?.catch((error: unknown) => refuseRequest(exchange, error));
  } catch (error) {
    refuseRequest(exchange, error);
  }
}

/** Whether a limit refuses the whole request is told by its body where that may be a batch of operations. */
function refuseRequest(exchange: Exchange, error: unknown): void {
  const { req, match } = exchange;
  const mayBeBatch = req.method === 'POST' && match?.endpoint.path === '/graphql';
  if (!mayBeBatch || !(error instanceof AppError && error.status === 429)) throw error;
  exchange.limitRefusal = error;
}

function guard(guards: readonly Guard[], exchange: Exchange, client: ClientRecord): void | Promise<void> {
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

function setHeaders({ res, upgrade }: Exchange, { headers }: GuardedCall): void {
  if (upgrade) return;
  for (const name in headers) res.setHeader(name, headers[name] ?? '');
}

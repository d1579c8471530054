import type { ClientRecord } from '../access/identity/client-record.ts';
import type { Principal } from '../access/identity/principal.ts';
import { type ClientGuards, checkOrigin, type Origin } from '../access/limits/guards.ts';
import { type LimitHeaders, setLimitHeaders } from '../access/limits/limits.rules.ts';
import { Refusal } from '../platform/errors.ts';
import type { Exchange } from './exchange/exchange.ts';
import { statusOf } from './exchange/refusals.ts';

/**
 * Runs the client guards for the API token of a request; login tokens are checked only when they are issued. If the
 * body may be a batch of operations, a 429 is left to the handler as `limitRefusal`.
 */
export async function guardRequest(guards: ClientGuards, exchange: Exchange): Promise<void> {
  const { req, found } = exchange;
  try {
    if (found.principal) await guardOperation(guards, exchange, found.principal);
  } catch (error) {
    const mayBeBatch = req.method === 'POST' && found.endpoint?.flags?.batch === true;
    if (!mayBeBatch || !(error instanceof Refusal && statusOf(error) === 429)) throw error;
    found.limitRefusal = error;
  }
}

/**
 * Runs the client guards for one operation of a batch or WebSocket, each of which is counted. The limit headers of the
 * response say what is left after the last one.
 */
export async function guardOperation(guards: ClientGuards, exchange: Exchange, principal: Principal): Promise<void> {
  const client = await guards.clientOf(principal);
  if (client) await guardClient(guards, exchange, client);
}

/**
 * Checks the certificate and address of a WebSocket's client. Counts nothing, because its operations are counted.
 * @throws Refusal when the client may not connect from there.
 */
export async function guardSocket(guards: ClientGuards, exchange: Exchange, principal: Principal): Promise<void> {
  const client = await guards.clientOf(principal);
  if (client) checkOrigin(client, originOf(exchange));
}

/**
 * Runs the guards of a client, and sets the rate and quota headers on the response, refusals included; a WebSocket has
 * none.
 */
export async function guardClient(guards: ClientGuards, exchange: Exchange, client: ClientRecord): Promise<void> {
  const headers: LimitHeaders = [];
  try {
    await guards.run(client, originOf(exchange), headers);
  } finally {
    if (!exchange.upgrade) setLimitHeaders(exchange.res, headers);
  }
}

/** Returns the client address and certificate fingerprint of a request, for the client guards. */
function originOf({ req, clientAddress: address }: Exchange): Origin {
  const header = req.headers['ssl-client-fingerprint'];
  return { address, fingerprint: Array.isArray(header) ? header.join(',') : header };
}

import type { ClientRecord } from '../clients/client-record.ts';
import { forbidden, unauthorized } from '../errors/app-error.ts';
import { originOf } from '../gateway/client-guards.ts';
import type { Exchange } from '../gateway/exchange.ts';
import type { AccessDirectory } from '../oauth/access-directory.ts';
import { bearerOf } from '../oauth/bearer.rules.ts';
import { type Guard, type GuardedCall, runGuards } from '../oauth/guards.ts';
import type { Throttle } from '../oauth/throttle.ts';
import { isOwnHost, originCheck } from './own-host.rules.ts';

export interface AgentAccessParts {
  directory: Pick<AccessDirectory, 'clientOfSecret'>;
  throttle: Pick<Throttle, 'failed'>;
  guards: readonly Guard[];
  /** Who may call from a browser; `*`: anybody. */
  corsOrigins: readonly string[];
  publicUrl(): string;
}

/**
 * Makes what lets an agent in: it gives the client that the request's bearer is a secret of, and sets the headers of its
 * limits.
 * @throws AppError 401 for a secret of no active client, 429 after too many of them; 403 for a foreign Host or Origin;
 * what a guard of the client refuses with.
 */
export function agentAccess(parts: AgentAccessParts): (exchange: Exchange) => Promise<ClientRecord> {
  const isTakenFrom = originCheck(parts.corsOrigins);

  return async function admit(exchange: Exchange): Promise<ClientRecord> {
    const { host, origin } = exchange.req.headers;
    const client = await authenticate(parts, exchange);
    exchange.caller = { nodeId: client.nodeId, isApi: true };
    if (!isOwnHost(host, parts.publicUrl()) || !isTakenFrom(origin)) throw forbidden();
    const call: GuardedCall = { client, ...originOf(exchange), headers: {} };
    try {
      await runGuards(parts.guards, call);
    } finally {
      if (!exchange.upgrade)
        for (const [name, value] of Object.entries(call.headers)) exchange.res.setHeader(name, value);
    }
    return client;
  };
}

/** Of several `Authorization` headers Node gives the first: whoever sends them means none. */
async function authenticate(
  { directory, throttle }: AgentAccessParts,
  { req, realIp }: Exchange,
): Promise<ClientRecord> {
  const given = req.headersDistinct.authorization ?? [];
  const secret = bearerOf(given.length === 1 ? given[0] : undefined);
  const client = await directory.clientOfSecret(secret);
  if (client) return client;
  await throttle.failed(realIp, undefined);
  throw unauthorized();
}

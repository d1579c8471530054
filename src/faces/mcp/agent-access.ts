import type { ClientRecord } from '../../access/identity/client-record.ts';
import { InvalidTokenError } from '../../access/identity/invalid-token.ts';
import { bearerOf } from '../../access/identity/principal.ts';
import type { ClientGuards } from '../../access/limits/guards.ts';
import type { Throttle } from '../../access/limits/throttle.ts';
import type { AccessDirectory } from '../../access/sessions/access-directory.ts';
import { guardClient } from '../../gateway/client-guards.ts';
import type { Exchange } from '../../gateway/exchange/exchange.ts';
import { forbidden } from '../../platform/errors.ts';

/** A host and perhaps a port, and nothing that a URL would read as something else. */
const AUTHORITY = /^(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::\d+)?$/i;
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/**
 * Whether a `Host` is that of the public URL, or of the machine itself on any port: a page that has brought its own name
 * to our address (DNS rebinding) sends another one.
 */
export function isOwnHost(host: string | undefined, publicUrl: string): boolean {
  if (host === undefined || !AUTHORITY.test(host)) return false;
  const own = URL.parse(publicUrl);
  const given = URL.parse(`${own?.protocol ?? 'http:'}//${host}`);
  if (!given) return false;
  return given.host === own?.host || LOOPBACK.test(given.hostname);
}

/** Returns a check of the `Origin` header. Programs send none, which passes; `*` allows all. */
export function originCheck(allowed: readonly string[]): (origin: string | undefined) => boolean {
  const any = allowed.includes('*');
  const known = new Set(allowed);
  return (origin) => any || origin === undefined || known.has(origin);
}

export interface AgentAccessParts {
  directory: Pick<AccessDirectory, 'clientOfSecret'>;
  throttle: Pick<Throttle, 'failed'>;
  guards: ClientGuards;
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
    exchange.found.client = { nodeId: client.nodeId, isApi: true };
    if (!isOwnHost(host, parts.publicUrl()) || !isTakenFrom(origin)) throw forbidden();
    await guardClient(parts.guards, exchange, client);
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
  throw new InvalidTokenError('wrong_secret');
}

import type { ClientRecord } from '../../access/identity/client-record.ts';
import { InvalidTokenError } from '../../access/identity/invalid-token.ts';
import { bearerOf } from '../../access/identity/principal.ts';
import type { ClientGuards } from '../../access/limits/guards.ts';
import type { Throttle } from '../../access/limits/throttle.ts';
import type { AccessDirectory } from '../../access/sessions/access-directory.ts';
import { guardClient } from '../../gateway/client-guards.ts';
import type { Exchange } from '../../gateway/exchange/exchange.ts';
import { refuse } from '../../gateway/exchange/responses.ts';
import { forbidden } from '../../platform/errors.ts';
import type { McpRuntime, McpRuntimeParts } from './mcp-runtime.ts';
import { readMessage } from './message-body.ts';

interface McpServerParts extends McpRuntimeParts {
  directory: Pick<AccessDirectory, 'clientOfSecret'>;
  throttle: Pick<Throttle, 'failed'>;
  guards: ClientGuards;
  /** Who may call from a browser; `*`: anybody. */
  corsOrigins: readonly string[];
  publicUrl(): string;
  production: boolean;
}

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

/** Tells whether calls with this `Origin` header are taken. Programs send none, which passes; `*` allows all. */
export function isOriginTaken(allowed: readonly string[], origin: string | undefined): boolean {
  return origin === undefined || allowed.includes('*') || allowed.includes(origin);
}

/**
 * Lets an agent in: returns the client that the request's bearer is a secret of, and sets the headers of its limits. Of
 * several `Authorization` headers Node gives the first: whoever sends them means none.
 * @throws AppError 401 for a secret of no active client, 429 after too many of them; 403 for a foreign Host or Origin;
 * what a guard of the client refuses with.
 */
async function admit(parts: McpServerParts, exchange: Exchange): Promise<ClientRecord> {
  const { headers, headersDistinct } = exchange.req;
  const given = headersDistinct.authorization ?? [];
  const client = await parts.directory.clientOfSecret(bearerOf(given.length === 1 ? given[0] : undefined));
  if (!client) {
    await parts.throttle.failed(exchange.realIp, undefined);
    throw new InvalidTokenError('wrong_secret');
  }
  exchange.found.client = { nodeId: client.nodeId, isApi: true };
  const isOwn = isOwnHost(headers.host, parts.publicUrl());
  if (!isOwn || !isOriginTaken(parts.corsOrigins, headers.origin)) throw forbidden();
  await guardClient(parts.guards, exchange, client);
  return client;
}

/** MCP behind the gateway. */
export interface McpServer {
  /** Answers a request of an agent. */
  handle(exchange: Exchange): void;
}

/**
 * Serves the Model Context Protocol over Streamable HTTP, without sessions: each request brings the secret of a client, and
 * is answered with JSON. What runs it is loaded with the first request, or at once in production.
 */
export function createMcpServer(parts: McpServerParts): McpServer {
  let loading: Promise<McpRuntime> | undefined;
  const runtime = (): Promise<McpRuntime> => {
    loading ??= import('./mcp-runtime.ts').then(({ createMcpRuntime }) => createMcpRuntime(parts));
    return loading;
  };
  // Whoever asks first is told what went wrong.
  if (parts.production) runtime().catch(() => undefined);

  async function answer(exchange: Exchange): Promise<void> {
    const client = await admit(parts, exchange);
    const message = await readMessage(exchange);
    await (await runtime()).answer(exchange, client, message);
  }

  return { handle: (exchange) => void answer(exchange).catch((error: unknown) => refuse(exchange, error, parts.log)) };
}

import type { Access } from '../../access/access.ts';
import type { ClientRecord } from '../../access/identity/client-record.ts';
import { InvalidTokenError } from '../../access/identity/invalid-token.ts';
import { bearerOf } from '../../access/identity/principal.ts';
import type { Exchange } from '../../gateway/exchange/exchange.ts';
import { refuse } from '../../gateway/exchange/responses.ts';
import { forbidden } from '../../platform/errors.ts';
import type { McpRuntime, McpRuntimeDependencies } from './mcp-runtime.ts';
import { readMessage } from './message-body.ts';

interface McpServerDependencies extends McpRuntimeDependencies, Pick<Access, 'directory' | 'throttle' | 'guards'> {
  /** The origins from which browsers may call; `*` allows any. */
  corsOrigins: readonly string[];
  publicUrl(): string;
  production: boolean;
}

/** Matches a host with an optional port, and nothing that a URL parser would read as anything else. */
const AUTHORITY = /^(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::\d+)?$/i;
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/**
 * Checks whether a `Host` header names the public URL, or the loopback interface on any port. This prevents DNS
 * rebinding: a page whose own name was made to resolve to this address sends that name.
 */
export function isOwnHost(host: string | undefined, publicUrl: string): boolean {
  if (host === undefined || !AUTHORITY.test(host)) return false;
  const own = URL.parse(publicUrl);
  const given = URL.parse(`${own?.protocol ?? 'http:'}//${host}`);
  if (!given) return false;
  return given.host === own?.host || LOOPBACK.test(given.hostname);
}

/**
 * Checks whether requests with this `Origin` header are accepted. Programs send none, which is accepted; `*` accepts
 * all.
 */
export function isOriginTaken(allowed: readonly string[], origin: string | undefined): boolean {
  return origin === undefined || allowed.includes('*') || allowed.includes(origin);
}

/**
 * Authenticates an agent: returns the client whose secret the request carries, after its client guards have passed.
 * @throws Refusal 401 for a secret of no active client, 429 after too many wrong ones; 403 for a foreign Host or
 * Origin; otherwise the refusal of a client guard.
 */
async function admit(deps: McpServerDependencies, exchange: Exchange): Promise<ClientRecord> {
  const { headers } = exchange.req;
  const secret = bearerOf(headers.authorization);
  async function recheck(): Promise<void> {
    if (!(await deps.directory.clientOfSecret(secret))) throw new InvalidTokenError('wrong_secret');
  }
  const client = await deps.directory.clientOfSecret(secret);
  if (!client) {
    await deps.throttle.failed(exchange.realIp, undefined);
    throw new InvalidTokenError('wrong_secret');
  }
  exchange.found.client = { nodeId: client.nodeId, clientId: client.clientId, isApi: true };
  exchange.found.recheck = recheck;
  const isOwn = isOwnHost(headers.host, deps.publicUrl());
  if (!isOwn || !isOriginTaken(deps.corsOrigins, headers.origin)) throw forbidden();
  await deps.guards.check(exchange, client);
  return client;
}

/** Serves MCP behind the gateway. */
export interface McpServer {
  /** Answers a request of an agent. */
  handle(exchange: Exchange): void;
}

/**
 * Creates the server of the Model Context Protocol over Streamable HTTP, without sessions: each request carries the
 * secret of a client and is answered with JSON. The runtime is loaded with the first request, or at once in production.
 */
export function createMcpServer(deps: McpServerDependencies): McpServer {
  let loading: Promise<McpRuntime> | undefined;
  const runtime = (): Promise<McpRuntime> => {
    loading ??= import('./mcp-runtime.ts').then(({ createMcpRuntime }) => createMcpRuntime(deps));
    return loading;
  };
  // If loading fails, the first request gets the error.
  if (deps.production) runtime().catch(() => undefined);

  async function answer(exchange: Exchange): Promise<void> {
    const client = await admit(deps, exchange);
    const message = await readMessage(exchange);
    await (await runtime()).answer(exchange, client, message);
  }

  return { handle: (exchange) => void answer(exchange).catch((error: unknown) => refuse(exchange, error, deps.log)) };
}

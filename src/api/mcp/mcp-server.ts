import { bearerOf, InvalidTokenError } from '../../access/identity/callers.ts';
import type { Throttle } from '../../access/limits/client-limits.ts';
import type { AccessDirectory } from '../../access/revocation/access-cache.ts';
import type { TokenAuthenticator } from '../../access/tokens/token-authenticator.ts';
import type { Exchange } from '../../gateway/exchange/exchange.ts';
import { refuse } from '../../gateway/exchange/responses.ts';
import { runCooperatively } from '../../lib/yielding.ts';
import { Refusal } from '../../platform/errors.ts';
import type { AgentIdentity } from './kit/tool.ts';
import type { McpRuntimeDependencies, Toolset } from './mcp-runtime.ts';

interface McpServerDependencies extends McpRuntimeDependencies {
  authenticator: TokenAuthenticator;
  directory: AccessDirectory;
  throttle: Throttle;
  /** The origins from which browsers may call; `*` allows any. */
  corsOrigins: readonly string[];
  publicUrl(): string;
  /** Returns the URL of the metadata of this resource (RFC 9728). */
  metadataUrl(): string;
  production: boolean;
  /** Loads the tools. */
  toolset(): Promise<Toolset>;
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
  const ownUrl = URL.parse(publicUrl);
  const requestedUrl = URL.parse(`${ownUrl?.protocol ?? 'http:'}//${host}`);
  if (!requestedUrl) return false;
  return requestedUrl.host === ownUrl?.host || LOOPBACK.test(requestedUrl.hostname);
}

/**
 * Checks whether requests with this `Origin` header are accepted. Programs send none, which is accepted; `*` accepts
 * all.
 */
export function isOriginTaken(allowed: readonly string[], origin: string | undefined): boolean {
  return origin === undefined || allowed.includes('*') || allowed.includes(origin);
}

/**
 * Authenticates an agent by its bearer, a client secret or an access token, after its client guards have passed.
 * @throws Refusal 401 for a secret of no active client or a token that is not accepted, 429 after too many wrong
 * secrets; 403 for a foreign Host or Origin; otherwise the refusal of a client guard.
 */
async function admit(deps: McpServerDependencies, exchange: Exchange): Promise<AgentIdentity> {
  const { headers } = exchange.req;
  const bearer = bearerOf(headers.authorization);
  const { identity, caller } = await (bearer.includes('.') ? admitToken : admitSecret)(deps, exchange, bearer);
  const isOwn = isOwnHost(headers.host, deps.publicUrl());
  if (!isOwn || !isOriginTaken(deps.corsOrigins, headers.origin))
    throw new Refusal('forbidden', { reason: isOwn ? 'origin' : 'host' });
  await exchange.admit(caller);
  return identity;
}

async function admitSecret(deps: McpServerDependencies, exchange: Exchange, secret: string) {
  async function recheck(): Promise<void> {
    const { client, fault } = await deps.directory.authenticate(secret);
    if (fault) throw new InvalidTokenError(fault);
    await exchange.admit(client, false);
  }
  const { client, fault } = await deps.directory.authenticate(secret);
  if (client) exchange.state.client = { nodeId: client.nodeId, clientId: client.clientId, isApi: true };
  if (fault) {
    await deps.throttle.failed(exchange.realIp, undefined);
    throw new InvalidTokenError(fault);
  }
  const { nodeId, clientId, name: clientName, scopes } = client;
  exchange.held?.moveTo(nodeId);
  exchange.state.recheck = recheck;
  const identity = { nodeId, subject: clientId, clientId, clientName, permissions: new Set(scopes) };
  return { identity, caller: client };
}

/** Admits the principal of an access token of the user class, as the stages of the chain do for REST. */
async function admitToken(deps: McpServerDependencies, exchange: Exchange, token: string) {
  const { authenticator, directory } = deps;
  const principal = await authenticator.authenticate(token, ['user']);
  async function recheck(): Promise<void> {
    await authenticator.recheck(principal);
    await exchange.admit(principal, false);
  }
  exchange.held?.moveTo(principal.nodeId);
  exchange.state.principal = principal;
  exchange.state.recheck = recheck;
  const { nodeId, subject, clientId, permissions } = principal;
  const client = clientId === undefined ? undefined : await directory.client(clientId);
  const identity = { nodeId, subject, clientId, clientName: client?.name, permissions };
  return { identity, caller: principal };
}

/** Returns an error as MCP sends it: a 401 says where the metadata of this resource is (RFC 9728 section 5.1). */
function withMetadata(error: unknown, url: string): unknown {
  if (!(error instanceof Refusal) || error.code !== 'unauthorized') return error;
  const { challenge = 'Bearer' } = error.details;
  const extendedChallenge = `${challenge}${challenge === 'Bearer' ? '' : ','} resource_metadata="${url}"`;
  return new Refusal('unauthorized', { ...error.details, challenge: extendedChallenge });
}

/** Serves MCP behind the gateway. */
export type McpServer = ReturnType<typeof createMcpServer>;

/**
 * Creates the server of the Model Context Protocol over Streamable HTTP, without sessions: each request carries the
 * secret of a client, or an access token, and is answered with JSON. The runtime is loaded with the first request, or at
 * once in production.
 */
export function createMcpServer(deps: McpServerDependencies) {
  let loading: ReturnType<typeof load> | undefined;
  async function load() {
    const [{ createMcpRuntime }, toolset] = await Promise.all([import('./mcp-runtime.ts'), deps.toolset()]);
    return createMcpRuntime({ ...deps, ...toolset });
  }
  const runtime = () => {
    loading ??= load();
    return loading;
  };
  // If loading fails, the first request gets the error.
  if (deps.production) runtime().catch(() => undefined);

  async function answer(exchange: Exchange): Promise<void> {
    const identity = await admit(deps, exchange);
    const { answer: answerMessage, readMessage } = await runtime();
    const message = await readMessage(exchange);
    await runCooperatively(() => answerMessage(exchange, identity, message), exchange.held, { isBegun: true });
  }

  return {
    /** Answers a request of an agent. */
    handle: (exchange: Exchange): void =>
      void answer(exchange).catch((error) => refuse(exchange, withMetadata(error, deps.metadataUrl()), deps.log)),
  };
}

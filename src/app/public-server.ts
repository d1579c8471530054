import type { IncomingMessage } from 'node:http';
import { InvalidTokenError, missingPermissions, type Principal, unlessInvalid } from '../access/identity/callers.ts';
import { consoleFiles } from '../api/console/console-files.ts';
import type { PersistedFile } from '../api/graphql/execution/persisted-file.ts';
import { createGraphqlServer, type GraphqlServer } from '../api/graphql/graphql-server.ts';
import type { Toolset } from '../api/mcp/mcp-runtime.ts';
import { createMcpServer } from '../api/mcp/mcp-server.ts';
import { swaggerFiles } from '../api/openapi/swagger-files.ts';
import { restApplication } from '../api/rest/route.ts';
import { getGraphql, metadataPathOf } from '../api/rest/system.rest.ts';
import { notingUsers } from '../audit/noted-users.ts';
import { getServerMetadata } from '../features/oauth/oauth.rest.ts';
import { type ChainDependencies, gatewayChain } from '../gateway/chain.ts';
import { ArrivingHeads, limitConnections } from '../gateway/connections.ts';
import type { Endpoint, GatewayConfig } from '../gateway/endpoints/gateway-config.ts';
import type { Exchange } from '../gateway/exchange/exchange.ts';
import { compileTrust, cors } from '../gateway/exchange/request-head.ts';
import { endSpan, runTraced, withinSpan } from '../gateway/exchange/request-metrics.ts';
import { Gateway, ingress } from '../gateway/gateway.ts';
import type { Upstreams } from '../gateway/proxy/upstreams.ts';
import { PathTable, Services } from '../gateway/routing.ts';
import { secretsOf } from '../platform/config/secrets.ts';
import { forbidden } from '../platform/errors.ts';
import { inRequest } from '../platform/held-memory.ts';
import type { Context } from './context.ts';
import type { Demo } from './demo/demo.ts';
import { ROUTES, type RouteServices } from './routes.ts';

interface Backends {
  upstreams: Upstreams;
  persisted: Pick<PersistedFile, 'documents'>;
  demo: Demo | undefined;
}

/**
 * Makes the public listener: the gateway in front of all services of this process. The upstreams must belong to
 * `gatewayConfig`.
 */
export function publicServer(context: Context, gatewayConfig: GatewayConfig, backends: Backends) {
  const { config, log, audit, spool } = context;
  const { upstreams } = backends;
  const { requests, connections, tracer } = context.telemetry;
  const trusts = compileTrust(config.trustProxy);
  const onEnd = (exchange: Exchange, aborted: boolean, onPersisted: () => void) => {
    requests.end(exchange, aborted);
    endSpan(exchange, aborted);
    withinSpan(exchange, () => audit.record(exchange, aborted, onPersisted));
  };
  let current = gatewayConfig;
  const graphql = graphqlOf(context, backends.persisted, () =>
    current.endpoints.find(({ path, methods }) => path === getGraphql.path && methods.includes('GET')),
  );
  const chainOf = chains(context, backends, graphql, onEnd);
  const gateway = new Gateway({
    chain: chainOf(gatewayConfig),
    trusts,
    memory: context.memory,
    cors: cors(config.corsOrigins),
    isAuditFull: () => spool.isFull,
    onEnd,
    withContext: (exchange, run) => {
      requests.begin();
      const withNotes = () => notingUsers(exchange.audit, run);
      const traced = tracer ? () => runTraced(tracer, exchange, withNotes) : withNotes;
      if (exchange.held) inRequest(exchange.held, traced);
    },
    onClosed: (reason) => connections.countRefusal(reason),
    onUnparsed: (unparsed, onPersisted) => {
      requests.unparsed(unparsed.status);
      audit.recordUnparsed(unparsed, context.nowMs(), onPersisted);
    },
    log,
  });
  /**
   * Puts an endpoint table in force: requests that have begun use the former one to their end, and later ones only the
   * new one.
   */
  function use(next: GatewayConfig): void {
    upstreams.replace(next);
    gateway.use(chainOf(next));
    current = next;
  }

  const server = ingress(gateway);
  new ArrivingHeads(server, context.memory);
  limitConnections(server, { max: config.maxConnections, trusts, metrics: connections });
  return {
    server,
    use,
    /** Refuses a request whose body does not come while the process stops. */
    giveUp: (req: IncomingMessage) => gateway.giveUp(req),
    /** Ends event streams and WebSockets, so that clients reconnect. */
    async stopGraphql() {
      await graphql.stop();
      // Stopped after the sockets, so that their clients do not see their subscriptions fail.
      context.migrationProgress.stop();
    },
  };
}

async function toolset(): Promise<Toolset> {
  const { INSTRUCTIONS, TOOLS } = await import('./tools.ts');
  return { tools: TOOLS, instructions: INSTRUCTIONS };
}

/** Returns a function that makes the chain for an endpoint table; the services behind the chain are made only once. */
function chains(context: Context, backends: Backends, graphql: GraphqlServer, onEnd: ChainDependencies['onEnd']) {
  const { log, nowMs, authenticator: tokens, guards, publicUrl } = context;
  // RFC 8414 section 3.1 and RFC 9728 section 3.1 put the path of an issuer or resource behind the well-known one.
  const { path: metadata } = getServerMetadata;
  const aliases = new Map([
    [`${metadata}${publicUrl.path}`, metadata],
    [metadataPathOf(publicUrl.path), metadataPathOf('')],
  ]);
  const shared = { tokens, aliases, guards, onEnd, nowMs };
  const services = { ...routeServices(context, backends.demo), graphql };
  return (config: GatewayConfig) =>
    gatewayChain({
      ...shared,
      table: new PathTable(config.endpoints),
      services: new Services(config, backends.upstreams),
      local: restApplication(ROUTES, { ...services, webhookAlias: config.webhook_alias }, log),
      remote: backends.upstreams,
    });
}

/**
 * Returns the services that the routes use, except GraphQL and the dates of the webhook's alias, which are in the
 * endpoint table.
 */
function routeServices(context: Context, demo: Demo | undefined): Omit<RouteServices, 'webhookAlias' | 'graphql'> {
  const { config, secrets } = context;
  const { username, password, signingKeys: keys } = secrets.webhook;
  const consoleServed = config.console ? consoleFiles() : undefined;
  if (config.console && !consoleServed) {
    context.log.warn({}, 'the console is not served: install its packages (npm ci --prefix console --omit=peer)');
  }
  return {
    ...context,
    webhookCredentials: { username, passwords: secretsOf(password) },
    webhookSignature: { keys, isRequired: config.webhookSignature === 'required' },
    console: consoleServed,
    swagger: swaggerFiles(config.publicUrl, demo),
    mcp: createMcpServer({
      ...context,
      services: context,
      maxCost: config.graphqlMaxCost,
      corsOrigins: config.corsOrigins,
      publicUrl: () => context.publicUrl.value,
      metadataUrl: () => new URL(metadataPathOf(context.publicUrl.path), context.publicUrl.value).href,
      production: config.production,
      outcomes: context.telemetry.toolOutcomes,
      toolset,
    }),
    toolset,
  };
}

/**
 * Makes the GraphQL server from the dependencies of this process. `socketEndpoint` returns the endpoint whose token
 * classes and permissions apply to operations on a WebSocket, which pass no stage of the chain; undefined if the
 * endpoint table has none.
 */
function graphqlOf(
  context: Context,
  persisted: Backends['persisted'],
  socketEndpoint: () => Endpoint | undefined,
): GraphqlServer {
  const { config, authenticator, audit, log, publicUrl } = context;
  const acceptedTokens = () => socketEndpoint()?.tokens ?? [];
  const requirePermissions = (principal: Principal) => {
    const missing = missingPermissions(principal, socketEndpoint()?.permissions ?? []);
    if (missing.length > 0) throw forbidden(missing);
  };
  return createGraphqlServer({
    schema: async () => (await import('./graphql-schema.ts')).graphqlSchema(),
    services: context,
    authenticateSocket: async (token, exchange) => {
      if (token === undefined) return undefined;
      const principal = await unlessInvalid(() => authenticator.authenticate(token, acceptedTokens()));
      if (!principal) return undefined;
      requirePermissions(principal);
      await exchange.admit(principal, false);
      return principal;
    },
    recheck: async (principal, { upgrade }) => {
      if (upgrade && !acceptedTokens().includes(principal.tokenClass)) throw new InvalidTokenError('another_class');
      await authenticator.check(principal);
      if (upgrade) requirePermissions(principal);
    },
    watch: context.watch,
    isAuditFull: () => context.spool.isFull,
    recordOperation: (operation) => withinSpan(operation.exchange, () => audit.recordOperation(operation)),
    durations: context.telemetry.operations,
    tracer: context.telemetry.tracer,
    log,
    maxCost: config.graphqlMaxCost,
    introspection: config.graphqlIntrospection,
    jit: config.graphqlJit,
    persistedMode: config.graphqlPersisted,
    persistedDocuments: persisted.documents,
    production: config.production,
    graphiql: !config.production && { endpoint: `${publicUrl.path}${getGraphql.path}` },
  });
}

import { InvalidTokenError, unlessInvalid } from '../access/identity/invalid-token.ts';
import { missingPermissions, type Principal } from '../access/identity/principal.ts';
import type { PersistedFile } from '../api/graphql/execution/persisted-file.ts';
import { createGraphqlServer, type GraphqlServer } from '../api/graphql/graphql-server.ts';
import { createMcpServer, type McpServer } from '../api/mcp/mcp-server.ts';
import { getGraphql } from '../api/rest/graphql.rest.ts';
import type { Endpoint } from '../gateway/endpoints/gateway-config.ts';
import { withinSpan } from '../gateway/exchange/request-metrics.ts';
import { forbidden } from '../platform/errors.ts';
import type { Context } from './context.ts';

interface Surroundings {
  persisted: PersistedFile;
  /**
   * Returns the endpoint whose token classes and permissions apply to operations on a WebSocket, which pass no stage of
   * the chain; undefined if the endpoint table has none.
   */
  socketEndpoint(): Endpoint | undefined;
}

/** Makes the GraphQL server from the dependencies of this process. */
export function graphqlOf(context: Context, { persisted, socketEndpoint }: Surroundings): GraphqlServer {
  const { config, authenticator, guards, audit, log, publicUrl } = context;
  const acceptedTokens = () => socketEndpoint()?.tokens ?? [];
  const requirePermissions = (principal: Principal) => {
    const missing = missingPermissions(principal, socketEndpoint()?.permissions ?? []);
    if (missing.length > 0) throw forbidden(missing);
  };
  return createGraphqlServer({
    services: context,
    judge: async (token, exchange) => {
      if (token === undefined) return undefined;
      const principal = await unlessInvalid(() => authenticator.authenticate(token, acceptedTokens()));
      if (!principal) return undefined;
      requirePermissions(principal);
      await guards.check(exchange, principal, false);
      return principal;
    },
    recheck: async (principal, { upgrade }) => {
      if (upgrade && !acceptedTokens().includes(principal.tokenClass)) throw new InvalidTokenError('another_class');
      await authenticator.check(principal);
    },
    watch: context.watch,
    passGuards: async (principal, exchange) => {
      if (exchange.upgrade) requirePermissions(principal);
      await guards.check(exchange, principal);
    },
    recordOperation: (operation) => withinSpan(operation.exchange, () => audit.recordOperation(operation)),
    results: context.database.results,
    durations: context.telemetry.operations,
    tracer: context.telemetry.tracer,
    log,
    maxCost: config.graphqlMaxCost,
    introspection: config.graphqlIntrospection,
    jit: config.graphqlJit,
    persistedMode: config.graphqlPersisted,
    persistedDocuments: () => persisted.documents,
    production: config.production,
    graphiql: !config.production && { endpoint: `${publicUrl.path}${getGraphql.path}` },
  });
}

/** Makes the MCP server from the dependencies of this process. */
export function mcpOf(context: Context): McpServer {
  const { config, directory, throttle, guards, publicUrl, telemetry, log } = context;
  return createMcpServer({
    services: context,
    directory,
    throttle,
    guards,
    corsOrigins: config.corsOrigins,
    publicUrl: () => publicUrl.value,
    production: config.production,
    outcomes: telemetry.toolOutcomes,
    log,
  });
}

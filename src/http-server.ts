import type { Server } from 'node:http';
import type { Router } from 'express';
import { accountsRouter } from './accounts/accounts.rest.ts';
import { Accounts } from './accounts/accounts.service.ts';
import { type GraphqlListener, localServices } from './app.ts';
import { assetsRouter } from './assets/assets.rest.ts';
import { Assets } from './assets/assets.service.ts';
import type { Context } from './context.ts';
import { gasFeeRouter } from './gas-fee/gas-fee.rest.ts';
import { type ChainParts, gatewayChain } from './gateway/chain.ts';
import { clientGuards } from './gateway/client-guards.ts';
import { limitConnections } from './gateway/connection-limit.ts';
import { cors } from './gateway/cors.ts';
import { compileTrust } from './gateway/door.ts';
import { EndpointTable } from './gateway/endpoint-table.ts';
import type { Exchange } from './gateway/exchange.ts';
import { Gateway } from './gateway/gateway.ts';
import type { GatewayConfig } from './gateway/gateway-config.ts';
import { ingress } from './gateway/ingress.ts';
import { endSpan, runTraced, withinSpan } from './gateway/request-spans.ts';
import { Services } from './gateway/services.ts';
import type { Upstreams } from './gateway/upstream/upstreams.ts';
import { healthRouter } from './health/health.rest.ts';
import { forRequest } from './lib/tenant-db.ts';
import { mcpOf } from './mcp-of.ts';
import { NetworkAssignments } from './networks/network-assignments.service.ts';
import { networksRouter } from './networks/networks.rest.ts';
import { oauthRouters } from './oauth-of.ts';
import { swaggerRouter } from './openapi/swagger.rest.ts';
import { userMigrationsRouter } from './user-migrations/user-migrations.rest.ts';
import { walletRulesRouter } from './wallet-rules/wallet-rules.rest.ts';
import { WalletRules } from './wallet-rules/wallet-rules.service.ts';
import { webhookRouter } from './webhook/webhook.rest.ts';
import { Webhook } from './webhook/webhook.service.ts';

/** The public listener, and how its table is replaced. */
export interface PublicServer {
  server: Server;
  /**
   * Puts a table in force: requests that have begun keep theirs to the end, those that begin after it see nothing but the
   * new one.
   */
  use(gatewayConfig: GatewayConfig): void;
}

interface Behind {
  graphql: GraphqlListener;
  upstreams: Upstreams;
}

/** The public listener: the gateway in front of every service of this process. `upstreams` are those of the table. */
export function publicServer(context: Context, gatewayConfig: GatewayConfig, behind: Behind): PublicServer {
  const { config, log, audit, spool } = context;
  const { upstreams } = behind;
  const { requests, connections, tracer } = context.telemetry;
  const trusts = compileTrust(config.trustProxy);
  const onEnd = (exchange: Exchange, aborted: boolean, kept: () => void) => {
    requests.ended(exchange, aborted);
    endSpan(exchange, aborted);
    withinSpan(exchange, () => audit.record(exchange, aborted, kept));
  };
  const chainOf = chains(context, behind, onEnd);
  const gateway = new Gateway({
    chain: chainOf(gatewayConfig, new EndpointTable(gatewayConfig.endpoints)),
    trusts,
    cors: cors(config.corsOrigins),
    isAuditFull: () => spool.isFull,
    onEnd,
    around: (exchange, run) => {
      requests.begun();
      forRequest(() => exchange.nodeId, tracer ? () => runTraced(tracer, exchange, run) : run);
    },
    onClosed: (reason) => connections.refused(reason),
    onUnparsed: (unparsed, kept) => {
      requests.unparsed(unparsed.status);
      audit.recordUnparsed(unparsed, context.nowMs(), kept);
    },
    log,
  });
  function use(next: GatewayConfig): void {
    // What may throw comes before what changes.
    const table = new EndpointTable(next.endpoints);
    upstreams.replace(next);
    gateway.use(chainOf(next, table));
  }

  const server = ingress(gateway);
  limitConnections(server, { max: config.maxConnections, trusts, metrics: connections });
  return { server, use };
}

/** Makes the chain of a table; what is behind the chain is made once. */
function chains(context: Context, { graphql, upstreams }: Behind, onEnd: ChainParts['onEnd']) {
  const { log, nowMs, directory, sessions, verifier: tokens, guards } = context;
  const same = { tokens, directory, sessions, clientGuards: clientGuards(directory, guards), onEnd, nowMs };
  const routers = routersOf(context);
  const mcp = mcpOf(context);
  return (config: GatewayConfig, table: EndpointTable) =>
    gatewayChain({
      ...same,
      table,
      services: new Services(config, upstreams),
      local: localServices({ routers: [...routers, webhookOf(context, config)], graphql, mcp, log }),
      remote: upstreams,
    });
}

function webhookOf({ bus, secrets, config, wrongPasswords }: Context, { webhook_alias: alias }: GatewayConfig): Router {
  const { username, password, signingKeys: keys } = secrets.webhook;
  const passwordsInForce = [password.current, ...(password.previous === undefined ? [] : [password.previous])];
  return webhookRouter({
    webhook: new Webhook(bus),
    credentials: { username, passwords: passwordsInForce },
    wrongPasswords,
    signature: { keys, isRequired: config.webhookSignature === 'required' },
    alias,
  });
}

function routersOf(context: Context): Router[] {
  return [
    accountsRouter(new Accounts(context.database.db)),
    assetsRouter(new Assets(context.database.db)),
    walletRulesRouter(new WalletRules({ db: context.database.db, nowMs: context.nowMs }), context.idempotentAnswers),
    networksRouter(new NetworkAssignments({ db: context.database.db, nowMs: context.nowMs })),
    userMigrationsRouter(context),
    ...oauthRouters(context),
    gasFeeRouter(context.gasFees),
    healthRouter(context.health),
    swaggerRouter(context.config.publicUrl),
  ];
}

import type { Server } from 'node:http';
import { accountsRouter } from './accounts/accounts.rest.ts';
import { Accounts } from './accounts/accounts.service.ts';
import { type GraphqlListener, localServices } from './app.ts';
import { assetsRouter } from './assets/assets.rest.ts';
import { Assets } from './assets/assets.service.ts';
import type { Context } from './context.ts';
import { gatewayChain } from './gateway/chain.ts';
import { clientGuards } from './gateway/client-guards.ts';
import { cors } from './gateway/cors.ts';
import { compileTrust } from './gateway/door.ts';
import { EndpointTable } from './gateway/endpoint-table.ts';
import type { Exchange } from './gateway/exchange.ts';
import { Gateway } from './gateway/gateway.ts';
import type { GatewayConfig } from './gateway/gateway-config.ts';
import { ingress } from './gateway/ingress.ts';
import { Services } from './gateway/services.ts';
import type { Upstreams } from './gateway/upstream/upstreams.ts';
import { healthRouter } from './health/health.rest.ts';
import { NetworkAssignments } from './networks/network-assignments.service.ts';
import { networksRouter } from './networks/networks.rest.ts';
import { oauthRouters } from './oauth-of.ts';
import { swaggerRouter } from './openapi/swagger.rest.ts';
import { userMigrationsRouter } from './user-migrations/user-migrations.rest.ts';
import { walletRulesRouter } from './wallet-rules/wallet-rules.rest.ts';
import { WalletRules } from './wallet-rules/wallet-rules.service.ts';
import { webhookRouter } from './webhook/webhook.rest.ts';
import { Webhook } from './webhook/webhook.service.ts';

/** The public listener: the gateway in front of every service of this process. */
export function publicServer(
  context: Context,
  gatewayConfig: GatewayConfig,
  { graphql, upstreams }: { graphql: GraphqlListener; upstreams: Upstreams },
): Server {
  const { config, log, audit, spool, nowMs, directory, guards } = context;
  const onEnd = (exchange: Exchange, aborted: boolean, kept: () => void) => audit.record(exchange, aborted, kept);
  const chain = gatewayChain({
    table: new EndpointTable(gatewayConfig.endpoints),
    services: new Services(gatewayConfig, upstreams),
    tokens: context.verifier,
    directory,
    sessions: context.sessions,
    clientGuards: clientGuards(directory, guards),
    local: localServices({ routers: routers(context, gatewayConfig), graphql, log }),
    remote: upstreams,
    onEnd,
    nowMs,
  });
  const gateway = new Gateway({
    chain,
    trusts: compileTrust(config.trustProxy),
    cors: cors(config.corsOrigins),
    isAuditFull: () => spool.isFull,
    onEnd,
    log,
  });
  return ingress(gateway);
}

function routers(context: Context, { webhook_alias: alias }: GatewayConfig) {
  const { bus, secrets, health } = context;
  const { username, password } = secrets.webhook;
  const passwordsInForce = [password.current, ...(password.previous === undefined ? [] : [password.previous])];
  return [
    accountsRouter(new Accounts(context.database.db)),
    assetsRouter(new Assets(context.database.db)),
    walletRulesRouter(new WalletRules({ db: context.database.db, nowMs: context.nowMs }), context.idempotentAnswers),
    networksRouter(new NetworkAssignments({ db: context.database.db, nowMs: context.nowMs })),
    userMigrationsRouter(context),
    ...oauthRouters(context),
    webhookRouter({ webhook: new Webhook(bus), credentials: { username, passwords: passwordsInForce }, alias }),
    healthRouter(health),
    swaggerRouter(context.config.publicUrl),
  ];
}

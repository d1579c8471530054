import { createServer, type IncomingMessage, type Server } from 'node:http';
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

/** An overlong token is refused as every other that is none: by the chain, not by the parser. */
const MAX_REQUEST_MS = 3_600_000;
const MAX_HEADER_BYTES = 160 * 1024;

/** The public listener: the gateway in front of every service of this process. */
export function publicServer(context: Context, gatewayConfig: GatewayConfig, graphql: GraphqlListener): Server {
  const { config, log, audit, spool, nowMs, directory, guards } = context;
  const onEnd = (exchange: Exchange, aborted: boolean) => audit.record(exchange, aborted);
  const chain = gatewayChain({
    table: new EndpointTable(gatewayConfig.endpoints),
    services: new Set(Object.keys(gatewayConfig.services)),
    tokens: context.verifier,
    directory,
    sessions: context.sessions,
    clientGuards: clientGuards(directory, guards),
    local: localServices({ routers: routers(context, gatewayConfig), graphql, log }),
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
  // Every other upgrade is offered, not asked for: the request is answered as it is (RFC 9110 section 7.8).
  const options = {
    requireHostHeader: false,
    shouldUpgradeCallback: isWebSocketUpgrade,
    maxHeaderSize: MAX_HEADER_BYTES,
    // Long uploads: whoever reads a body bounds how long it may take.
    requestTimeout: MAX_REQUEST_MS,
  };
  const server = createServer(options, (req, res) => gateway.request(req, res));
  server.on('upgrade', (req, socket, head) => gateway.upgrade(req, socket, head));
  // No tunnel is registered: it is refused, and recorded, as any other request.
  server.on('connect', (req, socket, head) => gateway.upgrade(req, socket, head));
  // Leave to send is given where a body is read; any other expectation is met by the answer.
  server.on('checkContinue', (req, res) => server.emit('request', req, res));
  server.on('checkExpectation', (req, res) => server.emit('request', req, res));
  server.on('clientError', (error, socket) => gateway.malformed(error, socket));
  return server;
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

/** Whether a request asks for a WebSocket that can be opened (RFC 6455 section 4.2.1). */
function isWebSocketUpgrade({ method, headers, httpVersion }: IncomingMessage): boolean {
  const { upgrade, 'sec-websocket-key': key, 'sec-websocket-version': version } = headers;
  if (httpVersion !== '1.1') return false;
  return method === 'GET' && upgrade?.toLowerCase() === 'websocket' && version === '13' && isWebSocketKey(key);
}

function isWebSocketKey(key: string | undefined): boolean {
  return key !== undefined && /^[+/0-9A-Za-z]{22}==$/.test(key);
}

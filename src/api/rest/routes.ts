import { listAccounts } from './accounts.rest.ts';
import { getAsset } from './assets.rest.ts';
import { consoleSessionRoutes } from './console-session.rest.ts';
import { getGasFees } from './gas-fee.rest.ts';
import { graphqlRoutes } from './graphql.rest.ts';
import { healthRoutes } from './health.rest.ts';
import { mcpRoutes } from './mcp.rest.ts';
import { assignNetwork } from './networks.rest.ts';
import { oauthRoutes } from './oauth.rest.ts';
import type { Route } from './route.ts';
import { pageRoutes } from './static-files.rest.ts';
import { userMigrationRoutes } from './user-migrations.rest.ts';
import { walletRuleRoutes } from './wallet-rules.rest.ts';
import { webhookRoutes } from './webhooks.rest.ts';

const routes = [
  ...oauthRoutes,
  ...walletRuleRoutes,
  assignNetwork,
  ...webhookRoutes,
  ...userMigrationRoutes,
  listAccounts,
  getAsset,
  ...healthRoutes,
  ...consoleSessionRoutes,
  ...pageRoutes,
  getGasFees,
  ...mcpRoutes,
  ...graphqlRoutes,
];

/** The services that all routes together call. */
export type RouteServices = typeof routes extends Route<infer Services>[] ? Services : never;

/** Every route of this process; `gateway.yaml` lists which of them can be reached from outside. */
export const ROUTES: readonly Route<RouteServices>[] = routes;

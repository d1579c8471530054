import type { Route } from '../api/rest/route.ts';
import { graphqlRoutes, healthRoutes, mcpRoutes, pageRoutes } from '../api/rest/system.rest.ts';
import { listAccounts } from '../features/accounts/accounts.rest.ts';
import { getAsset } from '../features/assets/assets.rest.ts';
import { downloadAuditExport } from '../features/audit-records/audit-exports.rest.ts';
import { getGasFees } from '../features/gas-fee/gas-fee.rest.ts';
import { assignNetwork } from '../features/networks/networks.rest.ts';
import { consoleSessionRoutes } from '../features/oauth/console-session.rest.ts';
import { oauthRoutes } from '../features/oauth/oauth.rest.ts';
import { userMigrationRoutes } from '../features/user-migrations/user-migrations.rest.ts';
import { walletRuleRoutes } from '../features/wallet-rules/wallet-rules.rest.ts';
import { webhookRoutes } from '../features/webhook/webhook.rest.ts';

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
  downloadAuditExport,
];

/** The services that all routes together call. */
export type RouteServices = typeof routes extends Route<infer Services>[] ? Services : never;

/** Every route of this process; `gateway.yaml` lists which of them can be reached from outside. */
export const ROUTES: readonly Route<RouteServices>[] = routes;

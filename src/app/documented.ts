import type { DocumentedInterface } from '../api/openapi/openapi.ts';
import { healthSchemas } from '../api/rest/health.openapi.ts';
import { mcpSchemas } from '../api/rest/mcp.openapi.ts';
import { accountSchemas } from '../features/accounts/accounts.rest.ts';
import { assetSchemas } from '../features/assets/assets.rest.ts';
import { gasFeeSchemas } from '../features/gas-fee/gas-fee.openapi.ts';
import { oauthSchemas } from '../features/oauth/oauth.openapi.ts';
import { migrationSchemas } from '../features/user-migrations/user-migrations.openapi.ts';
import { walletRuleSchemas } from '../features/wallet-rules/wallet-rules.openapi.ts';
import { webhookSchemas } from '../features/webhook/webhook.openapi.ts';
import { ROUTES } from './routes.ts';

/** What the OpenAPI document describes. */
export const DOCUMENTED: DocumentedInterface = {
  routes: ROUTES,
  nouns: [
    oauthSchemas,
    walletRuleSchemas,
    webhookSchemas,
    migrationSchemas,
    accountSchemas,
    assetSchemas,
    healthSchemas,
    gasFeeSchemas,
    mcpSchemas,
  ],
  tags: [
    { name: 'Tokens', description: 'Issue, refresh, revoke and introspect tokens.' },
    { name: 'Wallets', description: 'Rules and networks of wallets.' },
    { name: 'Webhook', description: 'Called by the chain processor only.' },
    { name: 'Users', description: 'Migration of users who already have a wallet.' },
    { name: 'Accounts', description: 'The accounts of a tenant.' },
    { name: 'Assets', description: 'Tokenized assets.' },
    { name: 'Health', description: 'Probes.' },
    { name: 'Blockchain', description: 'Gas prices of networks.' },
    { name: 'MCP', description: 'The Model Context Protocol, for agents of tenants.' },
  ],
};

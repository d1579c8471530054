import { ROUTES } from '../rest/routes.ts';
import { accountSchemas } from './nouns/accounts.openapi.ts';
import { assetSchemas } from './nouns/assets.openapi.ts';
import { gasFeeSchemas } from './nouns/gas-fee.openapi.ts';
import { healthSchemas } from './nouns/health.openapi.ts';
import { mcpSchemas } from './nouns/mcp.openapi.ts';
import { oauthSchemas } from './nouns/oauth.openapi.ts';
import { migrationSchemas } from './nouns/user-migrations.openapi.ts';
import { walletRuleSchemas } from './nouns/wallet-rules.openapi.ts';
import { webhookSchemas } from './nouns/webhook.openapi.ts';
import type { DocumentedInterface } from './openapi.ts';

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

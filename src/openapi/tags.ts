import type { oas31 } from 'zod-openapi';

/** The groups of operations, in the order in which they are shown. */
export const TAGS: oas31.TagObject[] = [
  { name: 'Tokens', description: 'Get, refresh, end and inspect tokens.' },
  { name: 'Wallets', description: 'Rules and networks of wallets.' },
  { name: 'Webhook', description: 'What the chain processor sends. No other client calls it.' },
  { name: 'Users', description: 'Migration of users that already have a wallet.' },
  { name: 'Accounts', description: 'The accounts of a node.' },
  { name: 'Assets', description: 'Tokenized assets.' },
  { name: 'Health', description: 'Probes.' },
  { name: 'Blockchain', description: 'What networks charge.' },
  { name: 'MCP', description: 'The Model Context Protocol, for agents of tenants.' },
];

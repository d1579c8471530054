import type { Tool } from './tool.ts';
import { accessTools } from './tools/access.ts';
import { accountTools } from './tools/accounts.ts';
import { assetTools } from './tools/assets.ts';
import { gasFeeTools } from './tools/gas-fees.ts';
import { migrationWriteTools } from './tools/migration-writes.ts';
import { migrationTools } from './tools/migrations.ts';
import { networkTools } from './tools/networks.ts';
import { transactionEventTools } from './tools/transaction-events.ts';
import { transactionTools } from './tools/transactions.ts';
import { userTools } from './tools/users.ts';
import { walletRuleWriteTools } from './tools/wallet-rule-writes.ts';
import { walletRuleTools } from './tools/wallet-rules.ts';
import { walletTools } from './tools/wallets.ts';

/** Every tool, in the order in which they are listed. */
export const TOOLS: ReadonlyMap<string, Tool> = new Map(
  [
    ...accessTools,
    ...accountTools,
    ...walletTools,
    ...networkTools,
    ...walletRuleTools,
    ...walletRuleWriteTools,
    ...transactionTools,
    ...transactionEventTools,
    ...userTools,
    ...migrationTools,
    ...migrationWriteTools,
    ...assetTools,
    ...gasFeeTools,
  ].map((tool) => [tool.name, tool]),
);

import type { Tool } from './kit/tool.ts';
import { accessTools } from './tools/access.tools.ts';
import { accountTools } from './tools/accounts.tools.ts';
import { assetTools } from './tools/assets.tools.ts';
import { gasFeeTools } from './tools/gas-fees.tools.ts';
import { migrationTools } from './tools/migrations.tools.ts';
import { networkTools } from './tools/networks.tools.ts';
import { transactionTools } from './tools/transactions.tools.ts';
import { userTools } from './tools/users.tools.ts';
import { walletRuleTools } from './tools/wallet-rules.tools.ts';
import { walletTools } from './tools/wallets.tools.ts';

/** The tools by name, in the order in which they are listed. */
export const TOOLS: ReadonlyMap<string, Tool> = new Map(
  [
    ...accessTools,
    ...accountTools,
    ...walletTools,
    ...networkTools,
    ...walletRuleTools,
    ...transactionTools,
    ...userTools,
    ...migrationTools,
    ...assetTools,
    ...gasFeeTools,
  ].map((tool) => [tool.name, tool]),
);

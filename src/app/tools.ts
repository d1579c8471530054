import type { Tool } from '../api/mcp/kit/tool.ts';
import { accountTools } from '../features/accounts/accounts.tools.ts';
import { gasFeeTools } from '../features/gas-fee/gas-fee.tools.ts';
import { networkTools } from '../features/networks/networks.tools.ts';
import { getAccess } from '../features/oauth/get-access.tools.ts';
import { transactionTools } from '../features/transactions/transactions.tools.ts';
import { migrationTools } from '../features/user-migrations/user-migrations.tools.ts';
import { userTools } from '../features/users/users.tools.ts';
import { walletRuleTools } from '../features/wallet-rules/wallet-rules.tools.ts';
import { walletTools } from '../features/wallets/wallets.tools.ts';

/** The tools by name, in the order in which they are listed: few enough that a model can read them with every task. */
export const TOOLS: ReadonlyMap<string, Tool> = new Map(
  [
    getAccess,
    ...accountTools,
    ...walletTools,
    ...networkTools,
    ...gasFeeTools,
    ...walletRuleTools,
    ...transactionTools,
    ...userTools,
    ...migrationTools,
  ].map((tool) => [tool.name, tool]),
);

/** The instructions that a model reads before it chooses a tool. */
export const INSTRUCTIONS = `Portcullis is the gateway of a custody and tokenization platform. Everything you see belongs to one tenant (node), that of the client or person whose credentials you use. get_access returns the tenant and what you may do.

An account has wallets. A wallet is on one chain, operates on networks of that chain, and has rules. A rule transfers funds automatically (auto_transfer) or limits transfers (permissionless_transfer_limit). Transactions are reported by the chain processor. Users are created by migrations. get_wallet_rule, get_transaction and get_migration include versions, events and rows on request.

- Ids are UUIDs, except those of transactions, which are any text. Get them from the lists; never invent one.
- Amounts are exact decimals in units of the currency, as text ("12.50"). Send them as text too, so that no digit is lost. Gas fees are in wei.
- Times are ISO 8601 in UTC.
- Lists have pages: if next_cursor is not null, call again with it as cursor and the other arguments unchanged.
- The text of a failed call says what to change. not_found: this tenant has no such id. forbidden: your credentials lack a scope, and repeating the call does not help.
- Before you create or replace a rule, show the user the result of preview_wallet_rule. Tools that write take effect immediately: ask first, unless the user has requested exactly this change.`;

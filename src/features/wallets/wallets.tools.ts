import { z } from 'zod';
import { defineTool, listPage, pageArguments, pageOutput, type ToolCaller } from '../../api/mcp/kit/tool.ts';
import { instant, uuid } from '../../lib/fields.ts';
import { objectInput, uuidInput } from '../../lib/input.ts';
import { isoFromPg } from '../../lib/instants.ts';
import type { WalletRow } from './wallets.service.ts';

/** A wallet, as tools return it. */
export const wallet = z.strictObject({
  id: uuid(),
  account_id: uuid().nullable().meta({ description: 'null without the scope accounts:read.' }),
  chain: z.string().meta({ description: "The chain's name." }),
  created_at: instant(),
});

/** Returns the view of a wallet; `account_id` is null for a caller that may not read accounts. */
export function walletView({ id, account_id, chain, created_at }: WalletRow, { permissions }: ToolCaller) {
  return {
    ...{ id, account_id: permissions.has('accounts:read') ? account_id : null },
    ...{ chain, created_at: isoFromPg(created_at) },
  };
}

export const walletTools = [
  defineTool({
    name: 'list_wallets',
    title: 'List wallets',
    description: "Lists the tenant's wallets, oldest first, without their balances.",
    scope: 'wallets:read',
    input: objectInput({
      wallet_id: uuidInput().optional().meta({ description: 'Returns only this wallet.' }),
      account_id: uuidInput().optional().meta({ description: 'Wallets of this account, from list_accounts.' }),
      network_id: uuidInput().optional().meta({ description: 'Wallets on this network, from list_networks.' }),
      ...pageArguments,
    }),
    output: pageOutput(wallet),
    run: ({ wallet_id: id, account_id: accountId, network_id: networkId, ...page }, call) =>
      listPage(page, call, {
        tool: 'list_wallets',
        list: ({ walletPages }) => walletPages,
        filter: { id, accountId, networkId },
        viewOf: (row) => walletView(row, call.caller),
      }),
  }),
];

import { z } from 'zod';
import type { WalletRow } from '../../../domain/wallets/wallets.service.ts';
import { objectInput, uuidInput } from '../../../lib/input.ts';
import { isoFromPg } from '../../../lib/instants.ts';
import { instant, listPage, pageArguments, pageOutput, uuid } from '../kit/list-tools.ts';
import { defineTool, found, type ToolCaller } from '../kit/tool.ts';

export const wallet = z.strictObject({
  id: uuid(),
  account_id: uuid().nullable().meta({ description: 'Its account; null without the scope accounts:read.' }),
  chain: z.string().meta({ description: "The chain's name." }),
  created_at: instant(),
});

/** Returns the view of a wallet; `account_id` is null for a caller that may not read accounts. */
export function walletView({ id, account_id, chain, created_at }: WalletRow, { permissions }: ToolCaller) {
  return {
    id,
    account_id: permissions.has('accounts:read') ? account_id : null,
    chain,
    created_at: isoFromPg(created_at),
  };
}

export const walletTools = [
  defineTool({
    name: 'list_wallets',
    title: 'List wallets',
    description: "The node's wallets, oldest first: all, or of one account or network. Balances are not included.",
    scope: 'wallets:read',
    input: objectInput({
      account_id: uuidInput().optional().meta({ description: "The account's id, from list_accounts." }),
      network_id: uuidInput().optional().meta({ description: "The network's id, from list_networks." }),
      ...pageArguments,
    }),
    output: pageOutput(wallet),
    run: ({ account_id: accountId, network_id: networkId, ...page }, call) =>
      listPage(page, call, {
        tool: 'list_wallets',
        list: ({ walletPages }) => walletPages,
        filter: { accountId, networkId },
        viewOf: (row) => walletView(row, call.caller),
      }),
  }),
  defineTool({
    name: 'get_wallet',
    title: 'Get a wallet',
    description: 'One wallet by its id. list_wallet_rules has its rules, list_wallet_networks its networks.',
    scope: 'wallets:read',
    input: objectInput({ wallet_id: uuidInput().meta({ description: 'The id, from list_wallets.' }) }),
    output: wallet,
    missing: 'this node has no wallet with that wallet_id: take it from list_wallets',
    run: async ({ wallet_id: id }, { caller, services }) =>
      walletView(found(await services.walletPages.find(caller.nodeId, id)), caller),
  }),
];

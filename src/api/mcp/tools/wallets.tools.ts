import { z } from 'zod';
import { type GasFees, gasFeeView } from '../../../domain/gas-fee/gas-fees.service.ts';
import type { NetworkRow, Networks } from '../../../domain/networks/networks.service.ts';
import type { WalletPages, WalletRow } from '../../../domain/wallets/wallets.service.ts';
import { objectInput, uuidInput } from '../../../lib/input.ts';
import { isoFromPg } from '../../../lib/instants.ts';
import { ofOneOwner } from '../../../platform/database/keyset-list.ts';
import { instant, listPage, pageArguments, pageOutput, uuid } from '../kit/list-tools.ts';
import { defineTool, found, requireScope, type ToolCall, type ToolCaller } from '../kit/tool.ts';

declare module '../kit/tool.ts' {
  interface McpServices {
    walletPages: WalletPages;
    networks: Networks;
    gasFees: GasFees;
  }
}

const wallet = z.strictObject({
  id: uuid(),
  account_id: uuid().nullable().meta({ description: 'null without the scope accounts:read.' }),
  chain: z.string().meta({ description: "The chain's name." }),
  created_at: instant(),
});

/** Returns the view of a wallet; `account_id` is null for a caller that may not read accounts. */
function walletView({ id, account_id, chain, created_at }: WalletRow, { permissions }: ToolCaller) {
  const account = permissions.has('accounts:read') ? account_id : null;
  return { id, account_id: account, chain, created_at: isoFromPg(created_at) };
}

const network = z.strictObject({
  id: uuid(),
  name: z.string(),
  chain: z.string(),
  currencies: z
    .array(z.strictObject({ id: uuid(), symbol: z.string() }))
    .meta({ description: 'The id is the network_currency_id of rules; at most 1,000 for a page of networks.' }),
});
const networkView = ({ id, name, chain }: NetworkRow) => ({ id, name, chain });

/** Adds the currencies of each network to a page of networks. */
async function withCurrencies<Page extends { data: ReturnType<typeof networkView>[] }>(page: Page, call: ToolCall) {
  const ids = page.data.map(({ id }) => id);
  const currencies = ids.length === 0 ? [] : await call.services.networks.currenciesOf(call.caller.nodeId, ids);
  const of = Map.groupBy(currencies, ({ network_id }) => network_id);
  const currenciesOf = (id: string) => (of.get(id) ?? []).map(({ id: currency, symbol }) => ({ id: currency, symbol }));
  return { ...page, data: page.data.map((row) => ({ ...row, currencies: currenciesOf(row.id) })) };
}

const wei = () => z.string();

const gasFee = z.strictObject({
  network_id: uuid(),
  chain_id: z.number().nullable().meta({ description: "The chain's number (EIP-155)." }),
  base_fee: wei().nullable().meta({ description: 'The base fee of the next block; null if the chain has none.' }),
  priority_fee: z.strictObject({ slow: wei(), standard: wei(), fast: wei() }).nullable().meta({
    description:
      'In addition to the base fee: the 10th, 50th and 90th percentile of recent transactions; null if unknown.',
  }),
  gas_price: wei()
    .nullable()
    .meta({ description: 'base_fee plus priority_fee.standard; the price of the network if it has no base fee.' }),
  block_number: z.number().nullable(),
  updated_at: instant().nullable(),
  error: z.string().nullable().meta({ description: 'Why the price is unavailable; all other members are null.' }),
});

const NO_FEE = {
  ...{ chain_id: null, base_fee: null, priority_fee: null, gas_price: null },
  ...{ block_number: null, updated_at: null, error: null },
};

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
  defineTool({
    name: 'list_networks',
    title: 'List networks',
    description:
      'Lists the networks of every chain with their currencies, the same for every tenant; or, with wallet_id, the networks that a wallet operates on, which needs the scope wallets:read.',
    input: objectInput({
      wallet_id: uuidInput().optional().meta({ description: 'Networks of this wallet, from list_wallets.' }),
      ...pageArguments,
    }),
    output: pageOutput(network),
    missing: 'this tenant has no wallet with that wallet_id: get it from list_wallets',
    async run({ wallet_id: id, ...page }, call) {
      const shared = { tool: 'list_networks', viewOf: networkView };
      if (id === undefined) {
        const all = await listPage(page, call, { ...shared, list: ({ networks }) => networks, filter: {} });
        return withCurrencies(all, call);
      }
      requireScope(call.caller, 'wallets:read');
      found(await call.services.walletPages.find(call.caller.nodeId, id));
      const list = ({ networks }: ToolCall['services']) => ofOneOwner(networks.ofWallets);
      const own = await listPage(page, call, { ...shared, tool: 'list_networks of a wallet', list, filter: id });
      return withCurrencies(own, call);
    },
  }),
  defineTool({
    name: 'assign_network',
    title: 'Assign a network to a wallet',
    description:
      "Assigns a network of the wallet's chain to the wallet; repeating it has no effect. It cannot be undone here.",
    scope: 'wallets:write',
    writes: { destructiveHint: false, idempotentHint: true },
    input: objectInput({
      wallet_id: uuidInput().meta({ description: 'From list_wallets.' }),
      network_id: uuidInput().meta({ description: 'A network of the same chain, from list_networks.' }),
    }),
    output: wallet,
    missing:
      'this tenant has no wallet with that wallet_id, or there is no network with that network_id: get them from list_wallets and list_networks',
    run: async ({ wallet_id: id, network_id: networkId }, { caller, services }) =>
      walletView(await services.networks.assign(caller.nodeId, id, networkId), caller),
  }),
  defineTool({
    name: 'list_gas_fees',
    title: 'List gas fees',
    description:
      'Returns the price of gas on each configured network, in wei (1 gwei is 10^9 wei), at most a minute old. The fee of a transaction is its gas multiplied by gas_price.',
    input: z.object({}),
    output: z.strictObject({ data: z.array(gasFee) }),
    run: async (_input, { services }) => ({
      data: (await services.gasFees.list()).map((fee) => ({ ...NO_FEE, ...gasFeeView(fee) })),
    }),
  }),
];

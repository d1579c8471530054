import { z } from 'zod';
import {
  defineTool,
  listPage,
  pageArguments,
  pageOutput,
  requireScope,
  type ToolCall,
} from '../../api/mcp/kit/tool.ts';
import { uuid } from '../../lib/fields.ts';
import { objectInput, uuidInput } from '../../lib/input.ts';
import { ofOneOwner } from '../../platform/database/keyset-list.ts';
import { orNotFound } from '../../platform/errors.ts';
import { wallet, walletView } from '../wallets/wallets.tools.ts';
import type { NetworkRow } from './networks.service.ts';

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
  const currenciesByNetwork = Map.groupBy(currencies, ({ network_id }) => network_id);
  const currenciesOf = (id: string) =>
    (currenciesByNetwork.get(id) ?? []).map(({ id: currency, symbol }) => ({ id: currency, symbol }));
  return { ...page, data: page.data.map((row) => ({ ...row, currencies: currenciesOf(row.id) })) };
}

export const networkTools = [
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
        const networkPage = await listPage(page, call, { ...shared, list: ({ networks }) => networks, filter: {} });
        return withCurrencies(networkPage, call);
      }
      requireScope(call.caller, 'wallets:read');
      orNotFound(await call.services.walletPages.find(call.caller.nodeId, id));
      const list = ({ networks }: ToolCall['services']) => ofOneOwner(networks.ofWallets);
      const walletNetworkPage = await listPage(page, call, {
        ...shared,
        tool: 'list_networks of a wallet',
        list,
        filter: id,
      });
      return withCurrencies(walletNetworkPage, call);
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
      walletView(await services.networks.assign(caller, id, networkId), caller),
  }),
];

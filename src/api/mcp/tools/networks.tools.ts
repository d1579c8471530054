import { z } from 'zod';
import type { NetworkRow } from '../../../domain/networks/networks.service.ts';
import { objectInput, uuidInput } from '../../../lib/input.ts';
import { ofOneOwner } from '../../../platform/database/keyset-list.ts';
import { listPage, pageArguments, pageOutput, uuid } from '../kit/list-tools.ts';
import { defineTool, found } from '../kit/tool.ts';
import { wallet, walletView } from './wallets.tools.ts';

const network = z.strictObject({
  id: uuid(),
  name: z.string(),
  chain: z.string().meta({ description: "The chain's name: a wallet of the same chain can operate on it." }),
});

const walletId = uuidInput().meta({ description: 'The id, from list_wallets.' });

function networkView({ id, name, chain }: NetworkRow) {
  return { id, name, chain };
}

export const networkTools = [
  defineTool({
    name: 'list_networks',
    title: 'List networks',
    description:
      'Every network of every chain, in the order in which they were added; the same for every node. For the networks of one wallet, use list_wallet_networks.',
    input: objectInput(pageArguments),
    output: pageOutput(network),
    run: (page, call) =>
      listPage(page, call, {
        tool: 'list_networks',
        list: ({ networks }) => networks,
        filter: {},
        viewOf: networkView,
      }),
  }),
  defineTool({
    name: 'list_wallet_networks',
    title: 'List the networks of a wallet',
    description:
      'The networks that a wallet operates on, in the order of their assignment. To add one, use assign_network.',
    scope: 'wallets:read',
    input: objectInput({ wallet_id: walletId, ...pageArguments }),
    output: pageOutput(network),
    missing: 'this node has no wallet with that wallet_id: take it from list_wallets',
    async run({ wallet_id: id, ...page }, call) {
      found(await call.services.walletPages.find(call.caller.nodeId, id));
      return listPage(page, call, {
        tool: 'list_wallet_networks',
        list: ({ networks }) => ofOneOwner(networks.ofWallets),
        filter: id,
        viewOf: networkView,
      });
    },
  }),
  defineTool({
    name: 'assign_network',
    title: 'Assign a network to a wallet',
    description:
      'Assigns a network of its own chain to a wallet; repeating it has no effect. It cannot be undone here. Compare chain in get_wallet and list_networks first.',
    scope: 'wallets:write',
    effect: { isDestructive: false, isIdempotent: true },
    input: objectInput({
      wallet_id: walletId,
      network_id: uuidInput().meta({ description: "The id of a network of the wallet's chain, from list_networks." }),
    }),
    output: wallet,
    missing:
      'this node has no wallet with that wallet_id, or there is no network with that network_id: take them from list_wallets and list_networks',
    run: async ({ wallet_id: id, network_id: networkId }, { caller, services }) =>
      walletView(await services.networks.assign(caller.nodeId, id, networkId), caller),
  }),
];

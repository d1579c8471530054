import { z } from 'zod';
import { notFoundRefusal } from '../../errors/refusal.ts';
import { objectInput, uuidInput } from '../../lib/input.ts';
import type { NetworkRow } from '../../networks/network-pages.service.ts';
import { uuid } from '../members.ts';
import { listPage, pageArguments, pageOutput } from '../pages.ts';
import { defineTool } from '../tool.ts';
import { invalidArguments } from '../tool-error.ts';
import { wallet, walletView } from './wallets.ts';

const network = z.strictObject({
  id: uuid(),
  name: z.string(),
  chain: z.string().meta({ description: "The chain's name: a wallet of the same chain can operate on it." }),
});

const walletId = uuidInput().meta({ description: 'From list_wallets.' });

const listNetworks = defineTool({
  name: 'list_networks',
  title: 'List networks',
  description:
    'Every network of every chain, in the order in which they became known; the same for every node. For the networks that one wallet operates on, take list_wallet_networks.',
  input: objectInput(pageArguments),
  output: pageOutput(network),
  run(page, call) {
    const { networkPages } = call.services;
    const { nodeId } = call.caller;
    return listPage(page, call, {
      list: 'list_networks',
      read: (request) => networkPages.page(nodeId, request),
      keyOf: placeOfNetwork,
      viewOf: networkView,
      count: () => networkPages.count(nodeId),
    });
  },
});

const listWalletNetworks = defineTool({
  name: 'list_wallet_networks',
  title: 'List the networks of a wallet',
  description:
    'The networks that a wallet operates on, in the order of their assignment. To add one, take assign_network.',
  scope: 'wallets:read',
  input: objectInput({ wallet_id: walletId, ...pageArguments }),
  output: pageOutput(network),
  missing: 'this node has no wallet with that wallet_id: take it from list_wallets',
  async run({ wallet_id: id, ...page }, call) {
    const { networkPages, walletPages } = call.services;
    const { nodeId } = call.caller;
    if (!(await walletPages.find(nodeId, id))) throw notFoundRefusal();
    return listPage(page, call, {
      list: 'list_wallet_networks',
      read: async (request) => (await networkPages.ofWallets(nodeId, [id], request)).get(id),
      keyOf: placeOfNetwork,
      viewOf: networkView,
      count: async () => (await networkPages.countOfWallets(nodeId, [id])).get(id) ?? 0,
    });
  },
});

const assignNetwork = defineTool({
  name: 'assign_network',
  title: 'Assign a network to a wallet',
  description:
    'Lets a wallet operate on a network of its own chain; one that it has already stays. It cannot be taken back here. Compare chain in get_wallet and list_networks first.',
  scope: 'wallets:write',
  effect: { isDestructive: false, isIdempotent: true },
  input: objectInput({
    wallet_id: walletId,
    network_id: uuidInput().meta({ description: "From list_networks: one of the wallet's chain." }),
  }),
  output: wallet,
  missing:
    'this node has no wallet with that wallet_id, or there is no network with that network_id: take them from list_wallets and list_networks',
  async run({ wallet_id: id, network_id: networkId }, { caller, services }) {
    const outcome = await services.networkAssignments.assign(caller.nodeId, id, networkId);
    if (outcome === 'other_chain') {
      throw invalidArguments([{ path: 'network_id', message: "must be a network of the wallet's chain" }]);
    }
    const row = await services.walletPages.find(caller.nodeId, id);
    if (!row) throw notFoundRefusal();
    return walletView(row, caller);
  },
});

function placeOfNetwork({ at, id }: NetworkRow) {
  return { at, id };
}

function networkView({ id, name, chain }: NetworkRow) {
  return { id, name, chain };
}

export const networkTools = [listNetworks, listWalletNetworks, assignNetwork];

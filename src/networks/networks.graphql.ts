import type { Builder } from '../graphql/builder.ts';
import { ForbiddenError, NotFoundError, ValidationError } from '../graphql/errors.ts';
import { nestedPages } from '../graphql/nested-pages.ts';
import { connectionOf, pageRequest } from '../graphql/pages.ts';
import type { Refs } from '../graphql/refs.ts';
import { orMember } from '../graphql/refusals.ts';
import type { PageKey } from '../lib/keyset.ts';
import type { NetworkRow } from './network-pages.service.ts';

const CONNECTION = 'networks';
const OF_WALLET = 'walletNetworks';

/** Adds the type of networks, the list of them, those of a wallet, and the mutation that assigns one. */
export function addNetworks(builder: Builder, refs: Refs): void {
  refs.network.implement({
    description: 'A network of a chain; the same for every node.',
    fields: (t) => ({
      id: t.exposeID('id', { description: 'A UUID, the same as in REST.' }),
      name: t.exposeString('name', { description: 'As people call it.' }),
      chain: t.exposeString('chain', { description: "The chain's name." }),
    }),
  });
  const connection = builder.connectionObject(
    { type: refs.network, name: 'NetworkConnection', description: 'A page of networks.' },
    { name: 'NetworkEdge', description: 'A network and its place in the list.' },
  );
  builder.queryField('networks', (t) =>
    t.field({
      type: connection,
      description: 'Every network, in the order in which they became known. Any token.',
      authScopes: { token: true },
      args: t.arg.connectionArgs(),
      resolve: async (_root, args, context) => {
        const { networkPages } = context.services;
        const { nodeId } = context.principal;
        const request = pageRequest(args, context, CONNECTION);
        return connectionOf({
          page: await networkPages.page(nodeId, request),
          request,
          connection: CONNECTION,
          context,
          keyOf,
          nodeOf: (row) => row,
          totalCount: () => networkPages.count(nodeId),
        });
      },
    }),
  );
  const ofWallets = nestedPages({
    connection: OF_WALLET,
    read: ({ services, principal }, walletIds, request) =>
      services.networkPages.ofWallets(principal.nodeId, walletIds, request),
    count: ({ services, principal }, walletIds) => services.networkPages.countOfWallets(principal.nodeId, walletIds),
    keyOf,
  });
  builder.objectField(refs.wallet, 'networks', (t) =>
    t.field({
      type: connection,
      description:
        'The networks that the wallet operates on, in the order of their assignment. Any token that reaches the wallet.',
      args: t.arg.connectionArgs(),
      resolve: ({ id }, args, context, info) => ofWallets.resolve(id, args, context, info),
    }),
  );
  addAssignNetwork(builder, refs);
}

function addAssignNetwork(builder: Builder, refs: Refs): void {
  builder.mutationField('assignNetwork', (t) =>
    t.field({
      type: refs.wallet,
      description:
        'Lets a wallet operate on a network of its chain; again is as good as the first time. Needs wallets:write.',
      authScopes: { permission: 'wallets:write' },
      errors: {
        types: [ValidationError, NotFoundError, ForbiddenError],
        union: {
          name: 'AssignNetworkResult',
          description:
            'The wallet; or ValidationError: the network is of another chain; NotFoundError: the wallet or the network; ForbiddenError: without wallets:write.',
        },
      },
      args: {
        walletId: t.arg.id({ required: true, description: "The wallet's UUID." }),
        networkId: t.arg.id({ required: true, description: "The network's UUID." }),
      },
      resolve: async (_root, { walletId, networkId }, { services, principal }) => {
        const { nodeId } = principal;
        const outcome = await orMember(services.networkAssignments.assign(nodeId, walletId, networkId));
        if (outcome === 'other_chain') {
          throw new ValidationError([{ path: ['networkId'], message: "must be a network of the wallet's chain" }]);
        }
        const wallet = await services.walletPages.find(nodeId, walletId.toLowerCase());
        if (!wallet) throw new NotFoundError();
        return wallet;
      },
    }),
  );
}

function keyOf({ at, id }: NetworkRow): PageKey {
  return { at, id };
}

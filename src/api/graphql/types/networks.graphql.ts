import { type Builder, needs } from '../kit/builder.ts';
import { errorsOf, ForbiddenError, NotFoundError, orMember, ValidationError } from '../kit/graphql-errors.ts';
import { connectionResolver, ownedConnectionResolver } from '../kit/pages.ts';
import type { TypeRefs } from '../kit/type-refs.ts';

/**
 * Adds the type of networks, the queries for all networks and those of a wallet, and the mutation that assigns one to a
 * wallet.
 */
export function addNetworks(builder: Builder, refs: TypeRefs): void {
  refs.network.implement({
    description: 'A network of a chain; the same for every node.',
    fields: (t) => ({
      id: t.exposeID('id', { description: 'A UUID, the same as in REST.' }),
      name: t.exposeString('name', { description: 'The display name.' }),
      chain: t.exposeString('chain', { description: "The chain's name." }),
    }),
  });
  const connection = builder.connectionObject(
    { type: refs.network, name: 'NetworkConnection', description: 'A page of networks.' },
    { name: 'NetworkEdge', description: 'A network and its cursor.' },
  );
  builder.queryField('networks', (t) =>
    t.field({
      type: connection,
      description: 'Every network, in the order in which they were added. Needs any token.',
      authScopes: { token: true },
      args: t.arg.connectionArgs(),
      resolve: connectionResolver(
        'networks',
        ({ networkPages }) => networkPages,
        () => ({}),
      ),
    }),
  );
  builder.objectField(refs.wallet, 'networks', (t) =>
    t.field({
      type: connection,
      description:
        'The networks that the wallet operates on, in the order of their assignment. Any token that reaches the wallet.',
      args: t.arg.connectionArgs(),
      resolve: ownedConnectionResolver('walletNetworks', ({ networkPages }) => networkPages.ofWallets),
    }),
  );
  builder.mutationField('assignNetwork', (t) =>
    t.field({
      type: refs.wallet,
      ...needs(
        'wallets:write',
        'Assigns a network of its chain to a wallet; repeating it has no effect.',
        'Takes an `Idempotency-Key`.',
      ),
      errors: errorsOf(
        'AssignNetworkResult',
        [ValidationError, NotFoundError, ForbiddenError],
        'The wallet; or ValidationError: the network is of another chain; NotFoundError: the wallet or the network; ForbiddenError: without wallets:write.',
      ),
      args: {
        walletId: t.arg.id({ required: true, description: "The wallet's UUID." }),
        networkId: t.arg.id({ required: true, description: "The network's UUID." }),
      },
      resolve: (_root, { walletId, networkId }, context) =>
        orMember(context.services.networkAssignments.assign(context.principal.nodeId, walletId, networkId), context),
    }),
  );
}

import { type Builder, connectionOf, implement, needs } from '../kit/builder.ts';
import { errorsOf, orMember } from '../kit/graphql-errors.ts';
import { connectionResolver, ownedConnectionResolver } from '../kit/pages.ts';
import type { TypeRefs } from '../kit/type-refs.ts';

/**
 * Adds the type of networks, the queries for all networks and for a wallet's, and the mutation that assigns one to a
 * wallet.
 */
export function addNetworks(builder: Builder, refs: TypeRefs): void {
  implement(refs.network, 'A network of a chain; the same for every tenant.', {
    id: ['ID', 'A UUID, the same as in REST.'],
    name: ['String', 'The display name.'],
    chain: ['String', "The chain's name."],
  });
  const connection = connectionOf(builder, refs.network, 'A page of networks.', 'A network and its cursor.');
  builder.queryField('networks', (t) =>
    t.field({
      type: connection,
      description: 'Every network, in the order in which they were added. Needs any token.',
      authScopes: { token: true },
      args: t.arg.connectionArgs(),
      resolve: connectionResolver('networks', ({ networks }) => networks),
    }),
  );
  builder.objectField(refs.wallet, 'networks', (t) =>
    t.field({
      type: connection,
      description:
        'The networks that the wallet operates on, in the order of their assignment. Needs any token that can read the wallet.',
      args: t.arg.connectionArgs(),
      resolve: ownedConnectionResolver('walletNetworks', ({ networks }) => networks.ofWallets),
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
        'The wallet; or ValidationError: the network belongs to another chain; NotFoundError: there is no such wallet or network; ForbiddenError: the caller lacks wallets:write.',
      ),
      args: {
        walletId: t.arg.id({ required: true, description: "The wallet's UUID." }),
        networkId: t.arg.id({ required: true, description: "The network's UUID." }),
      },
      resolve: (_root, { walletId, networkId }, context) =>
        orMember(context.services.networks.assign(context.principal.nodeId, walletId, networkId), context),
    }),
  );
}

import { type Builder, connectionOf, IDEMPOTENT, implement, needs } from '../../api/graphql/kit/builder.ts';
import {
  callerOf,
  connectionResolver,
  errorsOf,
  orMember,
  ownedConnectionResolver,
  withoutNulls,
} from '../../api/graphql/kit/resolvers.ts';
import { uuidInput } from '../../lib/input.ts';
import type { CurrencyRow, NetworkRow } from './networks.service.ts';

declare module '../../api/graphql/kit/builder.ts' {
  interface ObjectRows {
    Network: NetworkRow;
  }
}

/**
 * Adds the types of networks and currencies, the queries for all of them and for a wallet's networks, and the mutation
 * that assigns a network to a wallet.
 */
export function addNetworks(builder: Builder): void {
  implement(builder.objectRef<NetworkRow>('Network'), 'A network of a chain; the same for every tenant.', {
    id: ['ID', 'A UUID, the same as in REST.'],
    name: ['String', 'The display name.'],
    chain: ['String', "The chain's name."],
    explorer_url: [
      'String?',
      'The address of a transaction in a block explorer, with `{hash}` in place of the percent-encoded hash: an http or https URL. Null if unknown.',
    ],
  });
  const connection = connectionOf(builder, 'Network', 'A page of networks.', 'A network and its cursor.');
  const currency = implement(
    builder.objectRef<CurrencyRow>('NetworkCurrency'),
    'A currency of a network; the same for every tenant.',
    {
      id: ['ID', 'A UUID: the `networkCurrencyId` of rules.'],
      network_id: ['ID', 'The UUID of its network.'],
      symbol: ['String', 'The symbol, such as `USDC`.'],
      name: ['String?', 'The display name; null if unknown.'],
      decimals: ['Int?', 'The number of decimal places; null if unknown.'],
    },
  );
  const currencies = connectionOf(builder, currency, 'A page of currencies.', 'A currency and its cursor.');
  builder.queryFields((t) => ({
    networks: t.field({
      type: connection,
      description: 'Every network, in the order in which they were added. Needs any token.',
      authScopes: { token: true },
      args: t.arg.connectionArgs(),
      resolve: connectionResolver('networks', ({ networks }) => networks),
    }),
    networkCurrencies: t.field({
      type: currencies,
      description: 'The currencies of all networks or of one, by symbol. Needs any token.',
      authScopes: { token: true },
      args: {
        networkId: t.arg.id({ description: 'Currencies of this network.', validate: { schema: uuidInput() } }),
        ...t.arg.connectionArgs(),
      },
      resolve: connectionResolver(
        'networkCurrencies',
        ({ networks }) => networks.currencies,
        ({ networkId }) => withoutNulls({ networkId }),
      ),
    }),
  }));
  builder.objectField('Wallet', 'networks', (t) =>
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
      type: 'Wallet',
      ...IDEMPOTENT,
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
        orMember(context.services.networks.assign(callerOf(context), walletId, networkId), context),
    }),
  );
}

import { type Builder, connectionOf, implement, needs } from '../../api/graphql/kit/builder.ts';
import {
  connectionResolver,
  loaderOfRows,
  ownedConnectionResolver,
  rowResolver,
} from '../../api/graphql/kit/resolvers.ts';
import { uuidInput } from '../../lib/input.ts';
import type { AccountRow } from '../accounts/accounts.service.ts';
import type { WalletRow } from './wallets.service.ts';

declare module '../../api/graphql/kit/builder.ts' {
  interface ObjectRows {
    Wallet: WalletRow;
  }
}

/** Adds the type of wallets, the queries for them and the wallets of an account. */
export function addWallets(builder: Builder): void {
  const accounts = loaderOfRows<AccountRow>(
    ({ accountPages }) => accountPages,
    (id) => new Error(`the account ${id} no longer exists`),
  );
  implement(
    builder.objectRef<WalletRow>('Wallet'),
    'A wallet of an account, on one chain.',
    {
      id: ['ID', 'A UUID, the same as in REST.'],
      chain: ['String', "The chain's name."],
      created_at: ['DateTime', 'When it was created.'],
    },
    (t) => ({
      account: t.field({
        type: 'Account',
        ...needs('accounts:read', 'The account that it belongs to.'),
        resolve: ({ account_id: id }, _args, context) => accounts(context).load(id),
      }),
    }),
  );
  const connection = connectionOf(builder, 'Wallet', 'A page of wallets.', 'A wallet and its cursor.');
  const filter = builder.inputType('WalletFilter', {
    description: 'Filters wallets; all given members must match.',
    fields: (t) => ({
      accountId: t.id({ description: 'Wallets of this account.', validate: { schema: uuidInput() } }),
      networkId: t.id({ description: 'Wallets that this network is assigned to.', validate: { schema: uuidInput() } }),
    }),
  });
  builder.queryFields((t) => ({
    wallets: t.field({
      type: connection,
      ...needs('wallets:read', "The tenant's wallets, oldest first."),
      args: {
        filter: t.arg({ type: filter, description: 'Filters the wallets; all by default.' }),
        ...t.arg.connectionArgs(),
      },
      resolve: connectionResolver('wallets', ({ walletPages }) => walletPages),
    }),
    wallet: t.field({
      type: 'Wallet',
      nullable: true,
      ...needs('wallets:read', 'One wallet; null if the id is unknown or belongs to another tenant.'),
      args: { id: t.arg.id({ required: true, description: "The wallet's UUID." }) },
      resolve: rowResolver(({ walletPages }, nodeId, id) => walletPages.find(nodeId, id)),
    }),
  }));
  builder.objectField('Account', 'wallets', (t) =>
    t.field({
      type: connection,
      ...needs('wallets:read', "The account's wallets, oldest first."),
      args: t.arg.connectionArgs(),
      resolve: ownedConnectionResolver('accountWallets', ({ walletPages }) => walletPages.ofAccounts),
    }),
  );
}

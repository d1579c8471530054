import DataLoader from 'dataloader';
import type { Builder } from '../graphql/builder.ts';
import type { GraphqlContext } from '../graphql/context.ts';
import { connectionOf, pageRequest } from '../graphql/pages.ts';
import { perOperation } from '../graphql/per-operation.ts';
import type { Refs } from '../graphql/refs.ts';
import { isoFromPg } from '../lib/pg-time.ts';

const CONNECTION = 'wallets';

/** Adds the type of wallets and the wallets of an account. */
export function addWallets(builder: Builder, refs: Refs): void {
  refs.wallet.implement({
    description: 'A wallet of an account, on one chain.',
    fields: (t) => ({
      id: t.exposeID('id', { description: 'A UUID, the same as in REST.' }),
      account: t.field({
        type: refs.account,
        description: 'The account that it belongs to. Needs accounts:read.',
        authScopes: { permission: 'accounts:read' },
        resolve: (row) => row.account_id,
      }),
      chain: t.exposeString('chain', { description: "The chain's name." }),
      createdAt: t.field({
        type: 'DateTime',
        description: 'When it was created.',
        resolve: (row) => isoFromPg(row.created_at),
      }),
    }),
  });
  const connection = builder.connectionObject(
    { type: refs.wallet, name: 'WalletConnection', description: 'A page of wallets.' },
    { name: 'WalletEdge', description: 'A wallet and its place in the list.' },
  );
  const counts = perOperation(walletCounts);
  builder.objectField(refs.account, 'wallets', (t) =>
    t.loadable({
      type: connection,
      description: "The account's wallets, oldest first. Needs wallets:read.",
      authScopes: { permission: 'wallets:read' },
      args: t.arg.connectionArgs(),
      byPath: true,
      resolve: (account) => account.id,
      // Every account of one place in the answer has the same arguments: one statement for all of them.
      load: async (accountIds: string[], context, args) => {
        const request = pageRequest(args, context, CONNECTION);
        const { services, principal } = context;
        const pages = await services.walletPages.ofAccounts(principal.nodeId, accountIds, request);
        return accountIds.map((accountId) =>
          connectionOf({
            page: pages.get(accountId) ?? { rows: [], hasMore: false },
            request,
            connection: CONNECTION,
            context,
            keyOf: (row) => ({ at: row.created_at, id: row.id }),
            nodeOf: (row) => row,
            totalCount: () => counts(context).load(accountId),
          }),
        );
      },
    }),
  );
}

function walletCounts({ services, principal }: GraphqlContext): DataLoader<string, number> {
  return new DataLoader(async (accountIds) => {
    const counted = await services.walletPages.countOfAccounts(principal.nodeId, accountIds);
    return accountIds.map((accountId) => counted.get(accountId) ?? 0);
  });
}

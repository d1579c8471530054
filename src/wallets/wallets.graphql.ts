import type { Builder } from '../graphql/builder.ts';
import { nestedPages } from '../graphql/nested-pages.ts';
import { connectionOf, pageRequest } from '../graphql/pages.ts';
import type { Refs } from '../graphql/refs.ts';
import { isUuid, uuidInput } from '../lib/input.ts';
import type { PageKey } from '../lib/keyset.ts';
import { isoFromPg } from '../lib/pg-time.ts';
import type { WalletRow } from './wallet-pages.service.ts';

const CONNECTION = 'wallets';
const OF_ACCOUNT = 'accountWallets';

/** Adds the type of wallets, the queries for them and the wallets of an account. */
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
  const connection = walletConnection(builder, refs);
  addWalletQueries(builder, refs, connection);
  const ofAccounts = nestedPages({
    connection: OF_ACCOUNT,
    read: ({ services, principal }, accountIds, request) =>
      services.walletPages.ofAccounts(principal.nodeId, accountIds, request),
    count: ({ services, principal }, accountIds) => services.walletPages.countOfAccounts(principal.nodeId, accountIds),
    keyOf,
  });
  builder.objectField(refs.account, 'wallets', (t) =>
    t.field({
      type: connection,
      description: "The account's wallets, oldest first. Needs wallets:read.",
      authScopes: { permission: 'wallets:read' },
      args: t.arg.connectionArgs(),
      resolve: ({ id }, args, context, info) => ofAccounts.resolve(id, args, context, info),
    }),
  );
}

function keyOf(row: WalletRow): PageKey {
  return { at: row.created_at, id: row.id };
}

function walletConnection(builder: Builder, { wallet }: Refs) {
  return builder.connectionObject(
    { type: wallet, name: 'WalletConnection', description: 'A page of wallets.' },
    { name: 'WalletEdge', description: 'A wallet and its place in the list.' },
  );
}

function addWalletQueries(builder: Builder, refs: Refs, connection: ReturnType<typeof walletConnection>): void {
  const authScopes = { permission: 'wallets:read' } as const;
  const filter = builder.inputType('WalletFilter', {
    description: 'Which wallets a list has; all that is given must hold.',
    fields: (t) => ({
      accountId: t.id({ description: 'Those of this account.', validate: { schema: uuidInput() } }),
      networkId: t.id({ description: 'Those that this network is assigned to.', validate: { schema: uuidInput() } }),
    }),
  });
  builder.queryFields((t) => ({
    wallets: t.field({
      type: connection,
      description: "The node's wallets, oldest first. Needs wallets:read.",
      authScopes,
      args: {
        filter: t.arg({ type: filter, description: 'Which wallets; all by default.' }),
        ...t.arg.connectionArgs(),
      },
      resolve: async (_root, args, context) => {
        const { services, principal } = context;
        const request = pageRequest(args, context, CONNECTION);
        const wanted = {
          accountId: args.filter?.accountId ?? undefined,
          networkId: args.filter?.networkId ?? undefined,
        };
        return connectionOf({
          page: await services.walletPages.page(principal.nodeId, wanted, request),
          request,
          connection: CONNECTION,
          context,
          keyOf,
          nodeOf: (row) => row,
          totalCount: () => services.walletPages.count(principal.nodeId, wanted),
        });
      },
    }),
    wallet: t.field({
      type: refs.wallet,
      nullable: true,
      description: 'One wallet; null for an id that is unknown or of another node. Needs wallets:read.',
      authScopes,
      args: { id: t.arg.id({ required: true, description: "The wallet's UUID." }) },
      resolve: async (_root, { id }, { services, principal }) => {
        if (!isUuid(id)) return null;
        return (await services.walletPages.find(principal.nodeId, id.toLowerCase())) ?? null;
      },
    }),
  }));
}

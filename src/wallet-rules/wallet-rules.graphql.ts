import type { Builder } from '../graphql/builder.ts';
import { notFoundError } from '../graphql/errors.ts';
import { nestedPages } from '../graphql/nested-pages.ts';
import { connectionOf, NO_ROWS, pageRequest } from '../graphql/pages.ts';
import type { Refs } from '../graphql/refs.ts';
import { isUuid } from '../lib/input.ts';
import type { PageKey } from '../lib/keyset.ts';
import { addPreview } from './preview.graphql.ts';
import { walletRuleInputType } from './wallet-rule-input.graphql.ts';
import { addWalletRuleMutations } from './wallet-rule-mutations.graphql.ts';
import type { WalletRuleRow } from './wallet-rule-pages.service.ts';
import { implementWalletRule, walletRuleStatusEnum } from './wallet-rule-type.graphql.ts';

const CONNECTION = 'walletRules';
const OF_WALLET = 'rulesOfWallet';

/** Adds the types of wallet rules, the queries for them, the preview and the mutations. */
export function addWalletRules(builder: Builder, refs: Refs): void {
  const status = walletRuleStatusEnum(builder);
  const input = walletRuleInputType(builder);
  implementWalletRule(builder, refs, status);
  addPreview(builder, input);
  addWalletRuleMutations(builder, refs, { input, status });
  const authScopes = { permission: 'wallet-rules:read' } as const;
  const connection = builder.connectionObject(
    { type: refs.walletRule, name: 'WalletRuleConnection', description: 'A page of wallet rules.' },
    { name: 'WalletRuleEdge', description: 'A rule and its place in the list.' },
  );
  const ofWallets = nestedPages({
    connection: OF_WALLET,
    read: ({ services, principal }, walletIds, request) =>
      services.walletRulePages.ofWallets(principal.nodeId, walletIds, request),
    count: ({ services, principal }, walletIds) => services.walletRulePages.countOfWallets(principal.nodeId, walletIds),
    keyOf,
  });
  builder.objectField(refs.wallet, 'rules', (t) =>
    t.field({
      type: connection,
      description: "The wallet's rules, oldest first. Needs wallet-rules:read.",
      authScopes,
      args: t.arg.connectionArgs(),
      resolve: ({ id }, args, context, info) => ofWallets.resolve(id, args, context, info),
    }),
  );
  builder.queryFields((t) => ({
    walletRules: t.field({
      type: connection,
      description:
        "A wallet's rules, active or not, oldest first. NOT_FOUND for a wallet that is unknown or of another node. Needs wallet-rules:read.",
      authScopes,
      args: {
        walletId: t.arg.id({ required: true, description: "The wallet's UUID." }),
        ...t.arg.connectionArgs(),
      },
      resolve: async (_root, { walletId: given, ...args }, context) => {
        const { services, principal } = context;
        const request = pageRequest(args, context, CONNECTION);
        const walletId = given.toLowerCase();
        if (!isUuid(walletId) || !(await services.walletPages.find(principal.nodeId, walletId))) throw notFoundError();
        const pages = await services.walletRulePages.ofWallets(principal.nodeId, [walletId], request);
        return connectionOf({
          page: pages.get(walletId) ?? NO_ROWS,
          request,
          connection: CONNECTION,
          context,
          keyOf,
          nodeOf: (row) => row,
          totalCount: () => ofWallets.totalOf(walletId, context),
        });
      },
    }),
    walletRule: t.field({
      type: refs.walletRule,
      nullable: true,
      description: 'One rule; null for an id that is unknown or of another node. Needs wallet-rules:read.',
      authScopes,
      args: { id: t.arg.id({ required: true, description: "The rule's UUID." }) },
      resolve: async (_root, { id }, { services, principal }) => {
        if (!isUuid(id)) return null;
        return (await services.walletRulePages.find(principal.nodeId, id.toLowerCase())) ?? null;
      },
    }),
  }));
}

function keyOf(row: WalletRuleRow): PageKey {
  return { at: row.created_at, id: row.id };
}

import DataLoader from 'dataloader';
import type { Builder } from '../graphql/builder.ts';
import type { GraphqlContext } from '../graphql/context.ts';
import { notFoundError } from '../graphql/errors.ts';
import { type ConnectionArgs, connectionOf, NO_ROWS, pageRequest } from '../graphql/pages.ts';
import { perOperation } from '../graphql/per-operation.ts';
import { perPlace } from '../graphql/per-place.ts';
import type { Refs } from '../graphql/refs.ts';
import { isUuid } from '../lib/input.ts';
import type { Page, PageRequest } from '../lib/keyset.ts';
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
  const counts = perOperation(ruleCounts);
  const rulesOf = (walletId: string, pages: Map<string, Page<WalletRuleRow>>, at: PlaceOfList) =>
    connectionOf({
      page: pages.get(walletId) ?? NO_ROWS,
      ...at,
      keyOf: (row) => ({ at: row.created_at, id: row.id }),
      nodeOf: (row) => row,
      totalCount: () => counts(at.context).load(walletId),
    });
  const rulesOfPlace = perPlace(async (walletIds, context, args: ConnectionArgs) => {
    const request = pageRequest(args, context, OF_WALLET);
    const pages = await context.services.walletRulePages.ofWallets(context.principal.nodeId, walletIds, request);
    return walletIds.map((walletId) => rulesOf(walletId, pages, { connection: OF_WALLET, request, context }));
  });
  builder.objectField(refs.wallet, 'rules', (t) =>
    t.field({
      type: connection,
      description: "The wallet's rules, oldest first. Needs wallet-rules:read.",
      authScopes,
      args: t.arg.connectionArgs(),
      resolve: ({ id }, args, context, info) => rulesOfPlace(id, args, context, info),
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
        return rulesOf(walletId, pages, { connection: CONNECTION, request, context });
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

interface PlaceOfList {
  connection: string;
  request: PageRequest;
  context: GraphqlContext;
}

function ruleCounts({ services, principal }: GraphqlContext): DataLoader<string, number> {
  return new DataLoader(async (walletIds) => {
    const counted = await services.walletRulePages.countOfWallets(principal.nodeId, walletIds);
    return walletIds.map((walletId) => counted.get(walletId) ?? 0);
  });
}

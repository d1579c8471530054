import type { Builder } from '../graphql/builder.ts';
import { connectionOf, pageRequest } from '../graphql/pages.ts';
import type { Refs } from '../graphql/refs.ts';
import { textInput } from '../lib/input.ts';
import { addRegisterTransaction } from './register-transaction.graphql.ts';
import { addTransactionEnums } from './transaction-enums.graphql.ts';
import { addTransactionEvents } from './transaction-events.graphql.ts';
import { addTransactionFilter, type TransactionFilterRef, transactionFilterOf } from './transaction-filter.graphql.ts';
import { addTransactionSubscriptions } from './transaction-subscriptions.graphql.ts';
import { implementTransaction } from './transaction-type.graphql.ts';

const CONNECTION = 'transactions';

/** Adds everything about transactions: types, queries, the registration, the subscriptions. */
export function addTransactions(builder: Builder, refs: Refs): void {
  const enums = addTransactionEnums(builder);
  const filter = addTransactionFilter(builder, enums);
  implementTransaction(refs, enums);
  addTransactionEvents(builder, refs, enums);
  addTransactionQueries(builder, refs, filter);
  addRegisterTransaction(builder, refs, enums);
  addTransactionSubscriptions(builder, { refs, enums, filter });
}

function addTransactionQueries(builder: Builder, refs: Refs, filter: TransactionFilterRef): void {
  const connection = builder.connectionObject(
    { type: refs.transaction, name: 'TransactionConnection', description: 'A page of transactions.' },
    { name: 'TransactionEdge', description: 'A transaction and its place in the list.' },
  );
  builder.queryFields((t) => ({
    transactions: t.field({
      type: connection,
      description: "The node's transactions, in the order of their registration. Needs transactions:read.",
      authScopes: { permission: 'transactions:read' },
      args: {
        filter: t.arg({ type: filter, description: 'Which transactions; all by default.' }),
        ...t.arg.connectionArgs(),
      },
      resolve: async (_root, args, context) => {
        const { services, principal } = context;
        const request = pageRequest(args, context, CONNECTION);
        const wanted = transactionFilterOf(args.filter);
        return connectionOf({
          page: await services.transactionPages.page(principal.nodeId, wanted, request),
          request,
          connection: CONNECTION,
          context,
          keyOf: ({ snapshot, registeredAt }) => ({ at: registeredAt, id: snapshot.id }),
          nodeOf: ({ snapshot }) => snapshot,
          totalCount: () => services.transactionPages.count(principal.nodeId, wanted),
        });
      },
    }),
    transaction: t.field({
      type: refs.transaction,
      nullable: true,
      description: 'One transaction; null for an id that is unknown or of another node. Needs transactions:read.',
      authScopes: { permission: 'transactions:read' },
      args: { id: t.arg.id({ required: true, description: "The worker's id.", validate: { schema: textInput() } }) },
      resolve: async (_root, { id }, { services, principal }) =>
        (await services.transactionPages.byIds(principal.nodeId, [id]))[0] ?? null,
    }),
  }));
}

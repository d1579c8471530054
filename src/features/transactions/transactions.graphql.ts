import { z } from 'zod';
import {
  type Builder,
  COUNTS_ROWS,
  enumOf,
  IDEMPOTENT,
  implement,
  needs,
  pagesOf,
} from '../../api/graphql/kit/builder.ts';
import {
  badInputError,
  connectionResolver,
  DuplicateError,
  errorsOf,
  loaderPerOperation,
  orMember,
  ownedConnectionResolver,
} from '../../api/graphql/kit/resolvers.ts';
import { objectInput, textInput, uuidInput } from '../../lib/input.ts';
import { compareInstants } from '../../lib/instants.ts';
import { TRANSACTION_COLLECTIONS } from '../../tables/transaction-content.ts';
import type { AssetRow } from '../assets/assets.service.ts';
import { transactionIdInput } from './notification.input.ts';
import {
  addTransactionEnums,
  addTransactionFilter,
  addTransactionSubscriptions,
  implementTransactions,
  type TransactionEnums,
} from './transaction-events.graphql.ts';
import { COUNTED_AT_MOST, type TransactionStat } from './transaction-pages.service.ts';

const registerInput = objectInput({
  id: transactionIdInput,
  collection: z.enum(TRANSACTION_COLLECTIONS),
  type: z.int32(),
  assetId: uuidInput().optional(),
});

/** Adds the mutation that registers a transaction, before or after its first notification. */
function addRegisterTransaction(builder: Builder, enums: TransactionEnums): void {
  const input = builder.inputType('RegisterTransactionInput', {
    description: 'A transaction that notifications will refer to.',
    validate: { schema: registerInput },
    fields: (t) => ({
      id: t.id({
        required: true,
        description:
          'The id that the chain processor gave the transaction: 1 to 128 characters, unique across all collections.',
      }),
      collection: t.field({
        type: enums.transactionCollection,
        required: true,
        description: 'The collection of the transaction.',
      }),
      type: t.int({ required: true, description: 'A code whose meaning depends on the collection.' }),
      assetId: t.id({ description: 'The UUID of the tokenized asset that it concerns.' }),
    }),
  });
  builder.mutationField('registerTransaction', (t) =>
    t.field({
      type: 'Transaction',
      ...IDEMPOTENT,
      ...needs(
        'transactions:write',
        'Registers a transaction of the tenant; repeating it has no effect.',
        'Takes an `Idempotency-Key`.',
      ),
      errors: errorsOf(
        'The transaction; or ValidationError: a member of `input` is invalid; DuplicateError: the id is already registered with another type, collection or tenant; ForbiddenError: the caller lacks transactions:write, or REGISTRATION_BY_MUTATION is off and the owner has not registered the id; NotFoundError: the id was registered for another tenant in the meantime.',
        DuplicateError,
      ),
      args: { input: t.arg({ type: input, required: true, description: 'The transaction.' }) },
      resolve: (_root, { input: transactionInput }, context) => {
        const { id, collection, type, assetId } = transactionInput;
        const { nodeId } = context.principal;
        const registration = { id, nodeId, collection: collection, type, assetId: assetId ?? null };
        return orMember(context.services.transactions.registerByMutation(registration), context);
      },
    }),
  );
}

const MAX_STATS_SECONDS = 31n * 86_400n;

/** Adds the query that counts transactions by hour or day. */
function addTransactionStats(builder: Builder, { transactionStatus }: TransactionEnums): void {
  const bucket = enumOf(builder, 'StatsBucket', 'The length of the periods that transactions are counted by.', {
    hour: 'An hour.',
    day: 'A day, from midnight to midnight in UTC.',
  });
  const stat = implement(
    builder.objectRef<TransactionStat>('TransactionStat'),
    'How many transactions of a status were last updated within an hour or a day.',
    {
      at: ['DateTime', 'When the hour or day begins.'],
      status: [transactionStatus, 'The status that these transactions have now.'],
      count: ['Int', 'The number of transactions, at least 1.'],
    },
  );
  const instant = (description: string) => ({ type: 'DateTime', required: true, description }) as const;
  builder.queryField('transactionStats', (t) =>
    t.field({
      type: [stat],
      ...COUNTS_ROWS,
      ...needs(
        'transactions:read',
        'Counts transactions by status and by the hour or day of their last update, by the clock of the chain processor, oldest first. Hours and days without transactions are left out. The first and last one count only what is in the range.',
      ),
      args: {
        since: t.arg(instant('The start of the range.')),
        until: t.arg(instant('The end of the range, exclusive: at most 31 days later.')),
        bucket: t.arg({ type: bucket, required: true, description: 'Whether to count by hour or by day.' }),
      },
      resolve: (_root, { since, until, bucket }, { services, principal }) => {
        const latest = { seconds: since.seconds + MAX_STATS_SECONDS, nanos: since.nanos };
        if (compareInstants(until, since) < 0 || compareInstants(until, latest) > 0) {
          throw badInputError([{ path: ['until'], message: 'must be at most 31 days after since, and not before it' }]);
        }
        return services.transactionPages.stats(principal.nodeId, { since, until, bucket });
      },
    }),
  );
}

/** Adds everything about transactions: types, queries, the registration and the subscriptions. */
export function addTransactions(builder: Builder): void {
  const enums = addTransactionEnums(builder);
  const filter = addTransactionFilter(builder, enums);
  implementTransactions(builder, enums);
  const connection = pagesOf(builder, 'Transaction', 'A page of transactions.', 'A transaction and its cursor.');
  builder.objectFields(connection, (t) => ({
    totalCount: t.int({
      ...COUNTS_ROWS,
      nullable: true,
      description: `The exact number of rows over all pages; null if a filter matches more than ${COUNTED_AT_MOST}. Counted only if selected.`,
      resolve: async (counted) => {
        const total = await counted.totalCount();
        return Number.isFinite(total) ? total : null;
      },
    }),
    totalCountAtLeast: t.int({
      ...COUNTS_ROWS,
      description: `\`totalCount\`, or ${COUNTED_AT_MOST} if it is null. Counted only if selected.`,
      resolve: async (counted) => {
        const total = await counted.totalCount();
        return Number.isFinite(total) ? total : COUNTED_AT_MOST;
      },
    }),
  }));
  builder.queryFields((t) => ({
    transactions: t.field({
      type: connection,
      ...needs('transactions:read', "The tenant's transactions, in the order of their registration."),
      args: {
        filter: t.arg({ type: filter, description: 'Filters the transactions; all by default.' }),
        ...t.arg.connectionArgs(),
      },
      resolve: connectionResolver('transactions', ({ transactionPages }) => transactionPages),
    }),
    transaction: t.field({
      type: 'Transaction',
      nullable: true,
      ...needs('transactions:read', 'One transaction; null if the id is unknown or belongs to another tenant.'),
      args: {
        id: t.arg.id({
          required: true,
          description: 'The id that the chain processor gave the transaction.',
          validate: { schema: textInput() },
        }),
      },
      resolve: async (_root, { id }, { services, principal }) =>
        (await services.transactionPages.find(principal.nodeId, id)) ?? null,
    }),
  }));
  const assets = loaderPerOperation<AssetRow | null>(async (ids, { services, principal: { nodeId } }) => {
    const assetIds = await services.transactionPages.assetIds(nodeId, ids);
    const rows = assetIds.size === 0 ? [] : await services.assets.byIds(nodeId, [...new Set(assetIds.values())]);
    const byId = new Map(rows.map((row) => [row.id, row]));
    return ids.map((id) => byId.get(assetIds.get(id) ?? '') ?? null);
  });
  builder.objectField('Transaction', 'asset', (t) =>
    t.field({
      type: 'Asset',
      nullable: true,
      ...needs('tokens:read', 'The asset that it was registered with; null if there is none of the tenant.'),
      resolve: ({ id }, _args, context) => assets(context).load(id),
    }),
  );
  builder.objectField('Asset', 'transactions', (t) =>
    t.field({
      type: connection,
      ...needs('transactions:read', 'The transactions that were registered with it, newest first.'),
      args: t.arg.connectionArgs(),
      resolve: ownedConnectionResolver('assetTransactions', ({ transactionPages }) => transactionPages.ofAssets),
    }),
  );
  addRegisterTransaction(builder, enums);
  addTransactionStats(builder, enums);
  addTransactionSubscriptions(builder, enums, filter);
}

import { type Builder, connectionOf, enumOf, implement, needs } from '../../api/graphql/kit/builder.ts';
import {
  badInputError,
  callerOf,
  type GraphqlContext,
  ownedConnectionResolver,
  withoutNulls,
} from '../../api/graphql/kit/resolvers.ts';
import type { LoggedEvent } from '../../events/streams/event-log.ts';
import { searchInput, textInput } from '../../lib/input.ts';
import { compareInstants, parseInstant } from '../../lib/instants.ts';
import { orNotFound } from '../../platform/errors.ts';
import { STATUS, type TransactionCollection, type TransactionSnapshot } from '../../tables/transaction-content.ts';
import type { TransactionFilter } from './transaction-pages.service.ts';
import { TransactionStates } from './transaction-states.rules.ts';
import { typeFlagged, typeName } from './type-codes.rules.ts';

declare module '../../api/graphql/kit/builder.ts' {
  interface ObjectRows {
    Transaction: TransactionSnapshot;
    TransactionEvent: LoggedEvent;
  }
}

/** Adds the enums of transactions. */
export function addTransactionEnums(builder: Builder) {
  return {
    transactionStatus: builder.enumType('TransactionStatus', {
      description: 'The status of a transaction.',
      values: {
        STARTED: { value: STATUS.Started, description: 'The chain processor has queued it.' },
        IN_PROGRESS: { value: STATUS.InProgress, description: 'The chain processor is preparing or signing it.' },
        DONE: { value: STATUS.Done, description: 'It is confirmed on the chain. Final.' },
        ERROR: { value: STATUS.Error, description: 'It failed. Final.' },
        PENDING_RECEIPT: { value: STATUS.PendingReceipt, description: 'It was broadcast and waits for its receipt.' },
      } as const,
    }),
    transactionCollection: enumOf<TransactionCollection>(
      builder,
      'TransactionCollection',
      'The collection of a transaction; it determines the meaning of the type code.',
      {
        token_transactions: 'Transactions of tokenized assets.',
        node_transactions: 'Transactions of the tenant (node) itself.',
        currency_token_transactions: 'Transactions of currency tokens.',
        user_transactions: 'Transactions of users on the primary market.',
        secondary_market_transactions: 'Transactions of users on the secondary market.',
        otc_transactions: 'Transactions of users over the counter.',
      },
    ),
  };
}

/** The enums that `addTransactionEnums` returns. */
export type TransactionEnums = ReturnType<typeof addTransactionEnums>;

/** Implements the types of transactions and of their events. */
export function implementTransactions(
  builder: Builder,
  { transactionStatus, transactionCollection }: TransactionEnums,
): void {
  implement(
    builder.objectRef<TransactionSnapshot>('Transaction'),
    'A registered transaction, in the state that follows from all its notifications.',
    {
      id: ['ID', 'The id that the chain processor gave the transaction.'],
      type: ['Int', 'A code whose meaning depends on the collection.'],
      status: [transactionStatus, 'Its status; null before the first notification.', 'nullable'],
      transaction_hash: ['String', 'The transaction hash; empty until broadcast.'],
      contract_address: ['String', 'The contract that it calls or deploys; empty if there is none.'],
      gas_used: ['String', 'Gas used, in units of gas: a decimal integer of any length; "0" while pending.'],
      error: ['String?', "The chain processor's error message."],
      conflict: ['Boolean', 'Whether both DONE and ERROR were reported. Such a transaction needs attention.'],
      created_at: ['DateTime?', 'When the chain processor queued it; null before the first notification.'],
      updated_at: ['DateTime?', 'When the chain processor last updated it; null before the first notification.'],
    },
    (t) => ({
      collection: t.expose('collection', {
        type: transactionCollection,
        description: 'The collection of the transaction.',
      }),
      typeName: t.string({
        nullable: true,
        description: 'The name of the type; null if its collection gives it none.',
        resolve: (row) => typeName(row.collection, row.type),
      }),
      typeFlagged: t.boolean({
        description: 'Whether the type code is unknown in the collection. Such a transaction needs attention.',
        resolve: (row) => typeFlagged(row.collection, row.type),
      }),
    }),
  );
  builder.objectRef<LoggedEvent>('TransactionEvent').implement({
    description: 'A change that was applied to a transaction, and the state after it.',
    fields: (t) => ({
      cursor: t.string({
        description: 'Its position in the event log, valid as `after` of transactionUpdates.',
        resolve: ({ seq }) => seq.toString(),
      }),
      status: t.expose('status', { type: transactionStatus, description: 'The status after the change.' }),
      previousStatus: t.expose('previous_status', {
        type: transactionStatus,
        nullable: true,
        description: 'The status before the change; null for the first change.',
      }),
      transactionHash: t.string({
        description: 'The transaction hash; empty until broadcast.',
        resolve: (row) => row.transaction.transaction_hash,
      }),
      contractAddress: t.string({
        description: 'The contract that it calls or deploys; empty if there is none.',
        resolve: (row) => row.transaction.contract_address,
      }),
      error: t.string({
        nullable: true,
        description: "The chain processor's error message.",
        resolve: (row) => row.transaction.error,
      }),
      correlationId: t.string({
        nullable: true,
        description: 'The correlation id of the request that caused the change.',
        resolve: (row) => row.correlation_id || null,
      }),
      occurredAt: t.expose('occurred_at', { type: 'DateTime', description: 'When it was applied.' }),
    }),
  });
  const connection = connectionOf(builder, 'TransactionEvent', 'A page of events.', 'An event and its cursor.');
  builder.objectField('Transaction', 'events', (t) =>
    t.field({
      type: connection,
      ...needs('transactions:read', 'Each applied change, in the order of the event log.'),
      args: t.arg.connectionArgs(),
      resolve: ownedConnectionResolver('transaction-events', (services) => services.transactionPages.events),
    }),
  );
}

/** Adds the filter that lists and subscriptions of transactions share. */
export function addTransactionFilter(builder: Builder, { transactionCollection, transactionStatus }: TransactionEnums) {
  return builder.inputType('TransactionFilter', {
    description: 'Filters transactions; all given members must match.',
    fields: (t) => ({
      collection: t.field({ type: transactionCollection, description: 'The collection of the transaction.' }),
      status: t.field({ type: transactionStatus, description: 'With this status.' }),
      type: t.int({ description: 'With this type code.' }),
      error: t.string({
        description: 'With exactly this error.',
        validate: { schema: textInput() },
      }),
      idOrHash: t.string({
        description: 'With exactly this id or transaction hash.',
        validate: { schema: textInput() },
      }),
      search: t.string({
        description: 'With an id or transaction hash that begins with this text.',
        validate: { schema: searchInput() },
      }),
      updatedSince: t.field({
        type: 'DateTime',
        description: 'Last updated at or after this time, by the clock of the chain processor.',
      }),
      updatedUntil: t.field({ type: 'DateTime', description: 'Last updated before this time, by the same clock.' }),
      conflict: t.boolean({ description: 'Whether both DONE and ERROR were reported.' }),
      flagged: t.boolean({ description: 'Whether the type code is unknown in the collection.' }),
    }),
  });
}

/** The input type `TransactionFilter`. */
type TransactionFilterRef = ReturnType<typeof addTransactionFilter>;

/** Checks whether a transaction matches the filter. */
function isSelected(filter: TransactionFilter, snapshot: TransactionSnapshot): boolean {
  const { collection, status, type, error, idOrHash, search, updatedSince, updatedUntil, conflict, flagged } = filter;
  if (collection !== undefined && collection !== snapshot.collection) return false;
  if (status !== undefined && status !== snapshot.status) return false;
  if (type !== undefined && type !== snapshot.type) return false;
  if (error !== undefined && error !== snapshot.error) return false;
  if (idOrHash !== undefined && ![snapshot.id, snapshot.transaction_hash || snapshot.id].includes(idOrHash))
    return false;
  if (search !== undefined && ![snapshot.id, snapshot.transaction_hash].some((text) => text.startsWith(search)))
    return false;
  if (conflict !== undefined && conflict !== snapshot.conflict) return false;
  if (flagged !== undefined && flagged !== typeFlagged(snapshot.collection, snapshot.type)) return false;
  if (updatedSince === undefined && updatedUntil === undefined) return true;
  const updatedAt = snapshot.updated_at === null ? undefined : parseInstant(snapshot.updated_at);
  if (updatedAt === undefined) return false;
  // The event log stores times to the millisecond.
  const since = updatedSince && { ...updatedSince, nanos: updatedSince.nanos - (updatedSince.nanos % 1_000_000) };
  return (
    (since === undefined || compareInstants(updatedAt, since) >= 0) &&
    (updatedUntil === undefined || compareInstants(updatedAt, updatedUntil) < 0)
  );
}

const CURSOR = /^(?:0|[1-9][0-9]{0,17})$/;

/** Adds two subscriptions: to all changes of a tenant, and to one transaction until its status is final. */
export function addTransactionSubscriptions(
  builder: Builder,
  { transactionStatus }: TransactionEnums,
  filter: TransactionFilterRef,
): void {
  const update = builder.objectRef<LoggedEvent>('TransactionUpdate').implement({
    description: 'A change of a transaction, and the transaction after the change.',
    fields: (t) => ({
      cursor: t.string({
        description: 'Its position in the event log, valid as `after`.',
        resolve: ({ seq }) => seq.toString(),
      }),
      event: t.string({
        description: 'Always `transaction.status.updated`.',
        resolve: () => 'transaction.status.updated',
      }),
      transaction: t.field({
        type: 'Transaction',
        ...needs('transactions:read', 'The transaction after the change.'),
        resolve: (event) => event.transaction,
      }),
      previousStatus: t.expose('previous_status', {
        type: transactionStatus,
        nullable: true,
        description: 'The status before the change; null for the first change.',
      }),
      correlationId: t.string({
        nullable: true,
        description: 'The correlation id of the request that caused the change.',
        resolve: (event) => event.correlation_id || null,
      }),
    }),
  });
  builder.subscriptionFields((t) => ({
    transactionUpdates: t.field({
      type: update,
      ...needs(
        'transactions:read',
        'Each change of a transaction, in the order of the event log. Over SSE, the `id` of each event is its cursor, and `Last-Event-ID` takes precedence over `after`. The subscription ends with `cursor_expired` if events after the cursor are no longer stored, and with `slow_consumer` if the client reads too slowly.',
      ),
      args: {
        filter: t.arg({
          type: filter,
          description: 'Filters by the state of the transaction after the change; all by default.',
        }),
        after: t.arg.string({
          description:
            'The cursor of the last update that was received; missed updates are delivered first. "0" delivers all stored updates.',
        }),
      },
      subscribe: (_root, args, context) => updates(args, context),
      resolve: (event) => event,
    }),
    transaction: t.field({
      type: 'Transaction',
      ...needs(
        'transactions:read',
        'The current state of a transaction, then each change until it is DONE or ERROR. NOT_FOUND if the id is unknown or belongs to another tenant.',
      ),
      args: {
        id: t.arg.id({
          required: true,
          description: 'The id that the chain processor gave the transaction.',
          validate: { schema: textInput() },
        }),
      },
      subscribe: (_root, { id }, context) => states(id, context),
      resolve: (state) => state,
    }),
  }));
}

async function updates(
  args: { filter?: TransactionFilterRef['$inferInput'] | null | undefined; after?: string | null | undefined },
  context: GraphqlContext,
): Promise<AsyncIterable<LoggedEvent>> {
  const after = callerOf(context).lastEventId ?? args.after ?? undefined;
  if (after !== undefined && !CURSOR.test(after))
    throw badInputError([{ path: ['after'], message: 'is not a cursor' }]);
  const filter = withoutNulls(args.filter);
  const events = context.services.streams.subscribe({
    nodeId: context.principal.nodeId,
    after: after === undefined ? undefined : BigInt(after),
    matches: (event) => isSelected(filter, event.transaction),
  });
  // Waits until the stream has begun, so that the client misses no event from its first response on. If it could not
  // begin, `next` rejects with the reason.
  await events.started.catch(() => undefined);
  return events;
}

async function states(id: string, { services, principal }: GraphqlContext): Promise<TransactionStates> {
  const positionedSnapshot = orNotFound(await services.transactionPages.positioned(principal.nodeId, id));
  return new TransactionStates(positionedSnapshot.snapshot, () =>
    services.streams.subscribe({
      nodeId: principal.nodeId,
      after: positionedSnapshot.seq,
      transactionId: id,
      matches: (event) => event.transaction_id === id,
    }),
  );
}

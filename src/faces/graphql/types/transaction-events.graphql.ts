import { TransactionStates, viewOfLogged } from '../../../domain/transactions/transaction-view.ts';
import { statusOfCode } from '../../../domain/transactions/type-codes.rules.ts';
import type { LoggedEvent } from '../../../events/streams/event-log.ts';
import { textInput } from '../../../lib/input.ts';
import { notFoundRefusal } from '../../../platform/errors.ts';
import { EVENTS_OF_TRANSACTIONS } from '../../shared/lists.ts';
import type { Builder } from '../kit/builder.ts';
import { withoutNulls } from '../kit/camel-input.ts';
import { callerOf, type GraphqlContext, tokenOf } from '../kit/graphql-context.ts';
import { badInputError } from '../kit/graphql-errors.ts';
import { ownedConnectionResolver } from '../kit/pages.ts';
import type { TypeRefs } from '../kit/type-refs.ts';
import { passes, type TransactionEnums, type TransactionFilterRef } from './transaction-type.graphql.ts';

/** Adds the type of events and the events of a transaction. */
export function addTransactionEvents(builder: Builder, refs: TypeRefs, enums: TransactionEnums): void {
  refs.transactionEvent.implement({
    description: 'A change that was applied to a transaction, with the transaction as of it.',
    fields: (t) => ({
      cursor: t.exposeString('seq', {
        description: 'Its place in the event log: good for `after` of transactionUpdates.',
      }),
      status: t.field({
        type: enums.status,
        description: 'The status after it.',
        resolve: (row) => statusOfCode(row.status),
      }),
      previousStatus: t.field({
        type: enums.status,
        nullable: true,
        description: 'The status before it; null for the first.',
        resolve: (row) => (row.previous_status === null ? null : statusOfCode(row.previous_status)),
      }),
      transactionHash: t.string({
        description: 'The hash on the chain; empty until broadcast.',
        resolve: (row) => viewOfLogged(row.transaction).transaction_hash,
      }),
      contractAddress: t.string({
        description: 'The contract it deals with; empty for none.',
        resolve: (row) => viewOfLogged(row.transaction).contract_address,
      }),
      error: t.string({
        nullable: true,
        description: 'What went wrong, in the words of the worker.',
        resolve: (row) => viewOfLogged(row.transaction).error,
      }),
      correlationId: t.string({
        nullable: true,
        description: 'The correlation id of the request that brought the change.',
        resolve: (row) => row.correlation_id || null,
      }),
      occurredAt: t.expose('occurred_at', { type: 'DateTime', description: 'When it was applied.' }),
    }),
  });
  const connection = builder.connectionObject(
    { type: refs.transactionEvent, name: 'TransactionEventConnection', description: 'A page of events.' },
    { name: 'TransactionEventEdge', description: 'An event and its place in the list.' },
  );
  builder.objectField(refs.transaction, 'events', (t) =>
    t.field({
      type: connection,
      description: 'Each applied change, in the order of the log. Needs transactions:read.',
      authScopes: { permission: 'transactions:read' },
      args: t.arg.connectionArgs(),
      resolve: ownedConnectionResolver('transaction-events', EVENTS_OF_TRANSACTIONS),
    }),
  );
}

const CURSOR = /^(?:0|[1-9][0-9]{0,17})$/;

interface SubscriptionTypes {
  refs: TypeRefs;
  enums: TransactionEnums;
  filter: TransactionFilterRef;
}

/** Adds the subscriptions: all changes of a node, and one transaction until it is final. */
export function addTransactionSubscriptions(builder: Builder, { refs, enums, filter }: SubscriptionTypes): void {
  const update = builder.objectRef<LoggedEvent>('TransactionUpdate').implement({
    description: 'A change of a transaction, with the transaction as of it.',
    fields: (t) => ({
      cursor: t.string({
        description: 'Its place in the event log: good for `after`.',
        resolve: ({ seq }) => seq.toString(),
      }),
      event: t.string({
        description: 'Always `transaction.status.updated`.',
        resolve: () => 'transaction.status.updated',
      }),
      transaction: t.field({
        type: refs.transaction,
        description: 'The transaction as of the change. Needs transactions:read.',
        authScopes: { permission: 'transactions:read' },
        resolve: (event) => viewOfLogged(event.transaction),
      }),
      previousStatus: t.field({
        type: enums.status,
        nullable: true,
        description: 'The status before the change; null for the first.',
        resolve: ({ previousStatus }) => (previousStatus === null ? null : statusOfCode(previousStatus)),
      }),
      correlationId: t.string({
        nullable: true,
        description: 'The correlation id of the request that brought the change.',
        resolve: ({ correlationId }) => correlationId || null,
      }),
    }),
  });
  builder.subscriptionFields((t) => ({
    transactionUpdates: t.field({
      type: update,
      description:
        'Each change of the status of a transaction, as it is logged. On SSE each has its cursor as `id`, and `Last-Event-ID` outranks `after`. Errors `cursor_expired` (what came after the cursor is kept no more) and `slow_consumer` end it. Needs transactions:read.',
      authScopes: { permission: 'transactions:read' },
      args: {
        filter: t.arg({ type: filter, description: 'Which transactions, as of the change; all by default.' }),
        after: t.arg.string({
          description:
            'The cursor of the last update that was seen: what was missed comes first. "0": all that is kept.',
        }),
      },
      subscribe: (_root, args, context) => updates(args, context),
      resolve: (event) => event,
    }),
    transaction: t.field({
      type: refs.transaction,
      description:
        'A transaction: its state at once, then each change, until it is DONE or ERROR. NOT_FOUND for an id that is unknown or of another node. Needs transactions:read.',
      authScopes: { permission: 'transactions:read' },
      args: { id: t.arg.id({ required: true, description: "The worker's id.", validate: { schema: textInput() } }) },
      subscribe: (_root, { id }, context) => states(id, context),
      resolve: (state) => state,
    }),
  }));
}

interface UpdatesArgs {
  filter?: TransactionFilterRef['$inferInput'] | null | undefined;
  after?: string | null | undefined;
}

async function updates(args: UpdatesArgs, context: GraphqlContext): Promise<AsyncIterable<LoggedEvent>> {
  const after = callerOf(context).lastEventId ?? args.after ?? undefined;
  if (after !== undefined && !CURSOR.test(after)) throw badInputError([{ path: ['after'], message: 'is no cursor' }]);
  const wanted = withoutNulls(args.filter);
  const events = context.services.streams.subscribe({
    nodeId: context.principal.nodeId,
    after: after === undefined ? undefined : BigInt(after),
    matches: (event) => passes(wanted, viewOfLogged(event.transaction)),
    ...tokenOf(context),
  });
  // Whoever has an answer misses nothing from then on. How a stream has ended before, `next` says.
  await events.started.catch(() => undefined);
  return events;
}

async function states(id: string, context: GraphqlContext): Promise<TransactionStates> {
  const { services, principal } = context;
  const found = await services.transactionPages.positioned(principal.nodeId, id);
  if (!found) throw notFoundRefusal();
  return new TransactionStates(found.snapshot, () =>
    services.streams.subscribe({
      nodeId: principal.nodeId,
      after: found.seq,
      transactionId: id,
      matches: (event) => event.transactionId === id,
      ...tokenOf(context),
    }),
  );
}

import type { Builder } from '../graphql/builder.ts';
import { askerOf, type GraphqlContext } from '../graphql/context.ts';
import { badInputError, notFoundError } from '../graphql/errors.ts';
import { liveEvents } from '../graphql/live-events.ts';
import type { Refs } from '../graphql/refs.ts';
import { textInput } from '../lib/input.ts';
import type { LoggedEvent } from '../realtime/logged-event.ts';
import type { TransactionEnums } from './transaction-enums.graphql.ts';
import {
  type GivenTransactionFilter,
  passes,
  type TransactionFilterRef,
  transactionFilterOf,
} from './transaction-filter.graphql.ts';
import { TransactionStates } from './transaction-states.ts';
import { statusOfCode } from './transaction-status.ts';
import { viewOfLogged } from './transaction-view.ts';

const CURSOR = /^(?:0|[1-9][0-9]{0,17})$/;

interface SubscriptionTypes {
  refs: Refs;
  enums: TransactionEnums;
  filter: TransactionFilterRef;
}

/** Adds the subscriptions: all changes of a node, and one transaction until it is final. */
export function addTransactionSubscriptions(builder: Builder, { refs, enums, filter }: SubscriptionTypes): void {
  const update = transactionUpdate(builder, refs, enums);
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

function transactionUpdate(builder: Builder, { transaction }: Refs, { status }: TransactionEnums) {
  return builder.objectRef<LoggedEvent>('TransactionUpdate').implement({
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
        type: transaction,
        description: 'The transaction as of the change. Needs transactions:read.',
        authScopes: { permission: 'transactions:read' },
        resolve: (event) => viewOfLogged(event.transaction),
      }),
      previousStatus: t.field({
        type: status,
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
}

interface UpdatesArgs {
  filter?: GivenTransactionFilter;
  after?: string | null | undefined;
}

async function updates(args: UpdatesArgs, context: GraphqlContext): Promise<AsyncIterable<LoggedEvent>> {
  const after = askerOf(context).lastEventId ?? args.after ?? undefined;
  if (after !== undefined && !CURSOR.test(after)) throw badInputError([{ path: ['after'], message: 'is no cursor' }]);
  const wanted = transactionFilterOf(args.filter);
  const events = liveEvents(context, {
    after: after === undefined ? undefined : BigInt(after),
    matches: (event) => passes(wanted, viewOfLogged(event.transaction)),
  });
  // Whoever has an answer misses nothing from then on.
  await events.started;
  return events;
}

async function states(id: string, context: GraphqlContext): Promise<TransactionStates> {
  const { services, principal } = context;
  const found = await services.transactionPages.positioned(principal.nodeId, id);
  if (!found) throw notFoundError();
  return new TransactionStates(found.snapshot, () =>
    liveEvents(context, {
      after: found.seq,
      transactionId: id,
      matches: (event) => event.transactionId === id,
    }),
  );
}

import type { TransactionFilter } from '../../../domain/transactions/transaction-pages.service.ts';
import type { TransactionView } from '../../../domain/transactions/transaction-view.ts';
import {
  isTransactionCollection,
  STATUS,
  type TransactionCollection,
  typeFlagged,
  typeName,
} from '../../../domain/transactions/type-codes.rules.ts';
import { compareInstants, type Instant, parseInstant } from '../../../lib/instants.ts';
import type { Builder } from '../kit/builder.ts';
import type { TypeRefs } from '../kit/type-refs.ts';

/** Adds the enums of transactions; inside, their values are the codes and names of the specification. */
export function addTransactionEnums(builder: Builder) {
  const status = builder.enumType('TransactionStatus', {
    description: 'How far a transaction is.',
    values: {
      STARTED: { value: STATUS.Started, description: 'The worker has queued it.' },
      IN_PROGRESS: { value: STATUS.InProgress, description: 'It is being worked on.' },
      DONE: { value: STATUS.Done, description: 'It is on the chain: final.' },
      ERROR: { value: STATUS.Error, description: 'It failed: final.' },
      PENDING_RECEIPT: { value: STATUS.PendingReceipt, description: 'It was broadcast; the receipt is awaited.' },
    } as const,
  });
  const collection = builder.enumType('TransactionCollection', {
    description: 'What a transaction belongs to; decides what its type code means.',
    values: {
      TOKEN_TRANSACTIONS: { value: 'token_transactions', description: 'Of tokenized assets.' },
      NODE_TRANSACTIONS: { value: 'node_transactions', description: 'Of the node itself.' },
      CURRENCY_TOKEN_TRANSACTIONS: { value: 'currency_token_transactions', description: 'Of currency tokens.' },
      USER_TRANSACTIONS: { value: 'user_transactions', description: 'Of users on the primary market.' },
      SECONDARY_MARKET_TRANSACTIONS: {
        value: 'secondary_market_transactions',
        description: 'Of users on the secondary market.',
      },
      OTC_TRANSACTIONS: { value: 'otc_transactions', description: 'Of users over the counter.' },
    } as const,
  });
  return { status, collection };
}

/** What `addTransactionEnums` gives. */
export type TransactionEnums = ReturnType<typeof addTransactionEnums>;

/** Implements the type of transactions, its events apart. */
export function implementTransaction({ transaction }: TypeRefs, { status, collection }: TransactionEnums): void {
  transaction.implement({
    description: 'A transaction that was registered, with what its notifications together say.',
    fields: (t) => ({
      id: t.exposeID('id', { description: "The worker's id." }),
      collection: t.field({ type: collection, description: 'What it belongs to.', resolve: collectionOf }),
      type: t.exposeInt('type', { description: 'A code whose meaning depends on the collection.' }),
      typeName: t.string({
        nullable: true,
        description: "The type's name, where the collection gives one.",
        resolve: (row) => typeName(collectionOf(row), row.type),
      }),
      typeFlagged: t.boolean({
        description: 'Whether the collection knows no such type: somebody has to look.',
        resolve: (row) => typeFlagged(collectionOf(row), row.type),
      }),
      status: t.expose('status', {
        type: status,
        nullable: true,
        description: 'How far it is; null before the first notification.',
      }),
      transactionHash: t.exposeString('transaction_hash', {
        description: 'The hash on the chain; empty until broadcast.',
      }),
      contractAddress: t.exposeString('contract_address', {
        description: 'The contract it deals with; empty for none.',
      }),
      gasUsed: t.exposeString('gas_used', {
        description: 'Gas used, in units of gas: a decimal integer of any length; "0" while pending.',
      }),
      error: t.exposeString('error', { nullable: true, description: 'What went wrong, in the words of the worker.' }),
      conflict: t.exposeBoolean('conflict', {
        description: 'Whether both DONE and ERROR were told of it: somebody has to look.',
      }),
      createdAt: t.expose('created_at', {
        type: 'DateTime',
        nullable: true,
        description: 'When the worker queued it; null before the first notification.',
      }),
      updatedAt: t.expose('updated_at', {
        type: 'DateTime',
        nullable: true,
        description: 'When the worker last updated it; null before the first notification.',
      }),
    }),
  });
}

function collectionOf({ id, collection }: TransactionView): TransactionCollection {
  if (!isTransactionCollection(collection)) throw new Error(`the transaction ${id} has no collection of ours`);
  return collection;
}

/** Adds the filter that lists and subscriptions of transactions share. */
export function addTransactionFilter(builder: Builder, { collection, status }: TransactionEnums) {
  return builder.inputType('TransactionFilter', {
    description: 'Which transactions; all that is given must hold.',
    fields: (t) => ({
      collection: t.field({ type: collection, description: 'Of this collection.' }),
      status: t.field({ type: status, description: 'With this status.' }),
      type: t.int({ description: 'With this type code.' }),
      updatedSince: t.field({
        type: 'DateTime',
        description: "Last updated, by the notifications' own clock, at this instant or after it.",
      }),
    }),
  });
}

/** The input type `TransactionFilter`. */
export type TransactionFilterRef = ReturnType<typeof addTransactionFilter>;

/** Whether a transaction is one that the filter lets through. */
export function passes(
  { collection, status, type, updatedSince }: TransactionFilter,
  snapshot: TransactionView,
): boolean {
  if (collection !== undefined && collection !== snapshot.collection) return false;
  if (status !== undefined && status !== snapshot.status) return false;
  if (type !== undefined && type !== snapshot.type) return false;
  if (updatedSince === undefined) return true;
  const updatedAt = snapshot.updated_at === null ? undefined : parseInstant(snapshot.updated_at);
  // The log keeps milliseconds.
  return updatedAt !== undefined && compareInstants(updatedAt, wholeMillis(updatedSince)) >= 0;
}

function wholeMillis({ seconds, nanos }: Instant): Instant {
  return { seconds, nanos: nanos - (nanos % 1_000_000) };
}

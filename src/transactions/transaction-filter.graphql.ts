import type { Builder } from '../graphql/builder.ts';
import { compareInstants, type Instant, parseInstant } from '../lib/iso-instant.ts';
import type { TransactionEnums } from './transaction-enums.graphql.ts';
import type { TransactionFilter } from './transaction-pages.service.ts';
import type { TransactionView } from './transaction-view.ts';

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

/** A filter as callers give it: null counts as absent. */
export type GivenTransactionFilter = TransactionFilterRef['$inferInput'] | null | undefined;

/** The filter that is meant by a given one. */
export function transactionFilterOf(given: GivenTransactionFilter): TransactionFilter {
  return {
    collection: given?.collection ?? undefined,
    status: given?.status ?? undefined,
    type: given?.type ?? undefined,
    updatedSince: given?.updatedSince ?? undefined,
  };
}

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

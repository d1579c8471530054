import type { Refs } from '../graphql/refs.ts';
import type { TransactionEnums } from './transaction-enums.graphql.ts';
import type { TransactionView } from './transaction-view.ts';
import { isTransactionCollection, type TransactionCollection, typeFlagged, typeName } from './type-codes.rules.ts';

/** Implements the type of transactions, its events apart. */
export function implementTransaction({ transaction }: Refs, { status, collection }: TransactionEnums): void {
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

import { z } from 'zod';
import { transactionIdInput } from '../../../domain/transactions/notification.input.ts';
import { TRANSACTION_COLLECTIONS } from '../../../domain/transactions/type-codes.rules.ts';
import { objectInput, textInput, uuidInput } from '../../../lib/input.ts';
import { type Builder, connectionOf, needs } from '../kit/builder.ts';
import { DuplicateError, errorsOf, orMember } from '../kit/graphql-errors.ts';
import { connectionResolver } from '../kit/pages.ts';
import type { TypeRefs } from '../kit/type-refs.ts';
import {
  addTransactionEvents,
  addTransactionFilter,
  addTransactionSubscriptions,
  implementTransaction,
} from './transaction-events.graphql.ts';

const registerInput = objectInput({
  id: transactionIdInput,
  collection: z.enum(TRANSACTION_COLLECTIONS),
  type: z.int32(),
  assetId: uuidInput().optional(),
});

/** Adds the mutation that registers a transaction, before or after its first notification. */
function addRegisterTransaction(builder: Builder, refs: TypeRefs): void {
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
        type: refs.transactionCollection,
        required: true,
        description: 'The collection of the transaction.',
      }),
      type: t.int({ required: true, description: 'A code whose meaning depends on the collection.' }),
      assetId: t.id({ description: 'The UUID of the tokenized asset that it concerns.' }),
    }),
  });
  builder.mutationField('registerTransaction', (t) =>
    t.field({
      type: refs.transaction,
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
      resolve: (_root, { input: given }, context) => {
        const { id, collection: of, type, assetId } = given;
        const { nodeId } = context.principal;
        const registration = { id, nodeId, collection: of, type, assetId: assetId ?? null };
        return orMember(context.services.transactions.registerByMutation(registration), context);
      },
    }),
  );
}

/** Adds everything about transactions: types, queries, the registration and the subscriptions. */
export function addTransactions(builder: Builder, refs: TypeRefs): void {
  const filter = addTransactionFilter(builder, refs);
  implementTransaction(builder, refs);
  addTransactionEvents(builder, refs);
  const connection = connectionOf(
    builder,
    refs.transaction,
    'A page of transactions.',
    'A transaction and its cursor.',
  );
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
      type: refs.transaction,
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
  addRegisterTransaction(builder, refs);
  addTransactionSubscriptions(builder, refs, filter);
}

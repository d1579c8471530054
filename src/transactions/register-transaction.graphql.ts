import { z } from 'zod';
import type { Builder } from '../graphql/builder.ts';
import { DuplicateError, ForbiddenError, NotFoundError, ValidationError } from '../graphql/errors.ts';
import type { Refs } from '../graphql/refs.ts';
import { orMember } from '../graphql/refusals.ts';
import { objectInput, uuidInput } from '../lib/input.ts';
import { transactionIdInput } from './registration.input.ts';
import type { TransactionEnums } from './transaction-enums.graphql.ts';
import { TRANSACTION_COLLECTIONS } from './type-codes.rules.ts';

const registerInput = objectInput({
  id: transactionIdInput,
  collection: z.enum(TRANSACTION_COLLECTIONS),
  type: z.int32(),
  assetId: uuidInput().optional(),
});

/** Adds the mutation that tells of a transaction before the first notification of it, or after. */
export function addRegisterTransaction(builder: Builder, refs: Refs, { collection }: TransactionEnums): void {
  const input = builder.inputType('RegisterTransactionInput', {
    description: 'A transaction that notifications will tell of.',
    validate: { schema: registerInput },
    fields: (t) => ({
      id: t.id({
        required: true,
        description: "The worker's id: 1 to 128 characters, one space over all collections.",
      }),
      collection: t.field({ type: collection, required: true, description: 'What it belongs to.' }),
      type: t.int({ required: true, description: 'A code whose meaning depends on the collection.' }),
      assetId: t.id({ description: 'The UUID of the tokenized asset that it is about.' }),
    }),
  });
  builder.mutationField('registerTransaction', (t) =>
    t.field({
      type: refs.transaction,
      description:
        'Registers a transaction for the node; the same again is as good as the first. Needs transactions:write.',
      authScopes: { permission: 'transactions:write' },
      errors: {
        types: [ValidationError, DuplicateError, ForbiddenError, NotFoundError],
        union: {
          name: 'RegisterTransactionResult',
          description:
            'The transaction; or ValidationError: a member of `input` is not valid; DuplicateError: the id is taken, by another type, collection or node; ForbiddenError: without transactions:write, or where REGISTRATION_BY_MUTATION is off and its owner has not registered the id; NotFoundError: it has become that of another node meanwhile.',
        },
      },
      args: { input: t.arg({ type: input, required: true, description: 'The transaction.' }) },
      resolve: async (_root, { input: given }, { services, principal }) => {
        const { id, collection: of, type, assetId } = given;
        const { nodeId } = principal;
        const registration = { id, nodeId, collection: of, type, assetId: assetId ?? null };
        if ((await orMember(services.transactions.registerByMutation(registration))) === 'duplicate') {
          throw new DuplicateError('duplicate_id', 'the id is taken');
        }
        const [registered] = await services.transactionPages.byIds(nodeId, [id]);
        // Its owner may have moved it to another node in between.
        if (!registered) throw new NotFoundError();
        return registered;
      },
    }),
  );
}

import { z } from 'zod';
import { objectInput, textInput, uuidInput } from '../lib/input.ts';
import { decodeUtf8, parseJson, Utf8Error } from '../lib/json.ts';
import { PoisonError } from './parsed-delivery.ts';
import type { NewTransaction } from './transactions.service.ts';
import { TRANSACTION_COLLECTIONS } from './type-codes.rules.ts';

const MAX_ID_CHARACTERS = 128;

/** A transaction's id: 1 to 128 characters, one space over all nodes and collections. */
export const transactionIdInput = textInput()
  .min(1, 'must not be empty')
  .refine((id) => [...id].length <= MAX_ID_CHARACTERS, `must have at most ${MAX_ID_CHARACTERS} characters`)
  .meta({ maxLength: MAX_ID_CHARACTERS });

/** What the topic `transactions.registered` carries (decisions: the mirror). */
export const registrationInput = objectInput({
  id: transactionIdInput,
  collection: z.enum(TRANSACTION_COLLECTIONS),
  type: z.int32(),
  node_id: uuidInput(),
  asset_id: uuidInput().optional(),
});

/**
 * The registration in a message's bytes.
 * @throws PoisonError where they are no registration.
 */
export function parseRegistration(value: Uint8Array): NewTransaction {
  const parsed = registrationInput.safeParse(jsonOf(value));
  if (!parsed.success) throw new PoisonError(`not a registration: ${z.prettifyError(parsed.error)}`);
  const { id, collection, type, node_id: nodeId, asset_id: assetId } = parsed.data;
  return { id, nodeId, collection, type, assetId: assetId ?? null };
}

function jsonOf(value: Uint8Array): unknown {
  try {
    return parseJson(decodeUtf8(value));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof Utf8Error) throw new PoisonError('not JSON in UTF-8');
    throw error;
  }
}

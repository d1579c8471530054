import { z } from 'zod';
import { objectInput, textInput, uuidInput } from '../../lib/input.ts';
import { decodeUtf8, parseJson, Utf8Error } from '../../lib/json.ts';
import { compareKeys, orderKeyOf } from './join.rules.ts';
import { type Notification, parseNotification } from './notification.input.ts';
import type { Delivery } from './transaction-store.ts';
import type { NewTransaction } from './transactions.service.ts';
import { TRANSACTION_COLLECTIONS } from './type-codes.rules.ts';

/** A message that no repeat makes applicable: it goes to the dead letters. */
export class PoisonError extends Error {
  override name = 'PoisonError';
}

/** A delivery and what it says. */
export interface ParsedDelivery extends Delivery {
  notification: Notification;
}

/** @throws PoisonError where it is no notification. */
export function parseDelivery(delivery: Delivery): ParsedDelivery {
  const parsed = parseNotification(delivery.body);
  if (parsed.ok) return { ...delivery, notification: parsed.notification };
  const issues = parsed.issues.map(({ path, message }) => `${path} ${message}`.trim());
  throw new PoisonError(`not a notification: ${issues.join('; ')}`);
}

/** The ids that deliveries are about, each once. */
export function idsOf(deliveries: readonly ParsedDelivery[]): string[] {
  return [...new Set(deliveries.map(({ notification }) => notification.id))];
}

/** In the total order of notifications: each that can tell something new then does. */
export function inTotalOrder(deliveries: readonly ParsedDelivery[]): ParsedDelivery[] {
  const keyed = deliveries.map((delivery) => ({ delivery, key: orderKeyOf(delivery.notification) }));
  return keyed.toSorted((a, b) => compareKeys(a.key, b.key)).map(({ delivery }) => delivery);
}

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

import type { Delivery } from './mirror-store.ts';
import { type Notification, parseNotification } from './notification.input.ts';
import { compareKeys, orderKeyOf } from './order-key.rules.ts';

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

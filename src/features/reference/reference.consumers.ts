import {
  type BatchHandler,
  type EventBus,
  type IncomingMessage,
  type Subscription,
  withDeadLetters,
} from '../../events/bus/event-bus.ts';
import { REFERENCE_TOPICS } from '../../events/bus/topics.ts';
import { decodeUtf8, parsedOr, parseJson } from '../../lib/json.ts';
import { parseOfTopic } from './reference.input.ts';
import { type ReferenceChange, UnfitReferenceError } from './reference.rules.ts';
import type { Reference } from './reference.service.ts';

interface HandlerDependencies {
  bus: Pick<EventBus, 'publish'>;
  reference: Pick<Reference, 'apply'>;
}

/**
 * Starts the consumer of all topics of reference data. A message that cannot be applied becomes a dead letter of its
 * topic.
 */
export function startReferenceConsumers({
  bus,
  reference,
}: HandlerDependencies & { bus: EventBus }): Promise<Subscription> {
  return bus.subscribe({
    groupId: 'portcullis.reference',
    topics: REFERENCE_TOPICS,
    handle: handlerOf({ bus, reference }, changeOf),
  });
}

/**
 * Returns a handler that applies replayed dead letters of reference data. Later messages for the same ids may already
 * have been applied: a row loses against a higher version and against a tombstone with a higher offset. A tombstone is
 * refused, since it would delete newer rows. What cannot be applied becomes a dead letter again.
 */
export function lateReferenceHandler(deps: HandlerDependencies): BatchHandler {
  return handlerOf(deps, (message) => {
    const change = changeOf(message);
    if (change.row === undefined) throw new UnfitReferenceError('a late tombstone could delete newer rows');
    return { ...change, isLate: true };
  });
}

function handlerOf({ bus, reference }: HandlerDependencies, read: (message: IncomingMessage) => ReferenceChange) {
  return withDeadLetters(bus, async (batch) => {
    const {
      rejected: [first],
    } = await reference.apply(batch.map(read));
    if (first) throw new UnfitReferenceError(first.reason);
  });
}

function changeOf({ topic, key, value, offset, timestampMs }: IncomingMessage): ReferenceChange {
  // The JSON text `null` is not a tombstone, which is a message without a value.
  const row = parsedOr(
    () => (value === null ? null : (parseJson(decodeUtf8(value)) ?? undefined)),
    ({ message }) => new UnfitReferenceError(message),
  );
  const change = parseOfTopic(topic, key, row);
  return { ...change, position: { offset: BigInt(offset), timeMs: BigInt(timestampMs) } };
}

import { withDeadLetters } from '../../events/bus/dead-letters.ts';
import type { BatchHandler, EventBus, IncomingMessage, Subscription } from '../../events/bus/event-bus.ts';
import { REFERENCE_TOPICS } from '../../events/bus/topics.ts';
import { decodeUtf8, parseJson, Utf8Error } from '../../lib/json.ts';
import { isRefusedValue } from '../../platform/database/sql-state.ts';
import { parseReferenceChange } from './reference.input.ts';
import type { Reference } from './reference.service.ts';
import { kindOfTopic, type ReferenceChange, UnfitReferenceError } from './reference-kinds.ts';

interface HandlerParts {
  bus: Pick<EventBus, 'publish'>;
  reference: Pick<Reference, 'apply'>;
}

interface ConsumerParts extends HandlerParts {
  bus: EventBus;
}

/** Starts the consumer of every topic of reference data. What cannot be applied goes to its topic's dead letters. */
export function startReferenceConsumers({ bus, reference }: ConsumerParts): Promise<Subscription> {
  return bus.subscribe({
    groupId: 'portcullis.reference',
    topics: REFERENCE_TOPICS,
    handle: handlerOf({ bus, reference }, changeOf),
  });
}

/**
 * Applies dead letters of reference data, given as the messages that they were. Later messages of the same ids may have
 * been applied: a row is outranked by a higher version and by a tombstone that stood behind it, and a tombstone, which
 * would delete what came after it, is refused. What cannot be applied is a dead letter again.
 */
export function lateReferenceHandler(parts: HandlerParts): BatchHandler {
  return handlerOf(parts, (message) => {
    const change = changeOf(message);
    if (change.row === undefined) throw new UnfitReferenceError('a tombstone that is late could delete newer rows');
    return { ...change, isLate: true };
  });
}

function handlerOf({ bus, reference }: HandlerParts, read: (message: IncomingMessage) => ReferenceChange) {
  const handle = async (batch: readonly IncomingMessage[]): Promise<void> => {
    const { rejected } = await reference.apply(batch.map(read));
    const [first] = rejected;
    if (first) throw new UnfitReferenceError(first.reason);
  };
  return withDeadLetters(bus, handle, isPoison);
}

function changeOf({ topic, key, value, offset, timestampMs }: IncomingMessage): ReferenceChange {
  const kind = kindOfTopic(topic);
  if (!kind) throw new Error(`${topic} is no topic of reference data`);
  const change = parseReferenceChange(kind, key, value === null ? null : (jsonOf(value) ?? undefined));
  return { ...change, place: { offset: BigInt(offset), timeMs: BigInt(timestampMs) } };
}

/** JSON null is not a tombstone: that is a message without a value. */
function jsonOf(value: Uint8Array): unknown {
  try {
    return parseJson(decodeUtf8(value));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof Utf8Error) throw new UnfitReferenceError('not JSON in UTF-8');
    throw error;
  }
}

/** Whether no repeat mends an error: the message is no change, or the database refuses what it says. */
function isPoison(error: unknown): boolean {
  return error instanceof UnfitReferenceError || isRefusedValue(error);
}

import type { EventBus, IncomingMessage, Subscription } from '../events/event-bus.ts';
import { withDeadLetters } from '../events/poison.ts';
import { REFERENCE_TOPICS } from '../events/topics.ts';
import { decodeUtf8, parseJson, Utf8Error } from '../lib/json.ts';
import { sqlState } from '../lib/sql-state.ts';
import { parseReferenceChange } from './reference.input.ts';
import type { Reference } from './reference.service.ts';
import { type ReferenceChange, UnfitReferenceError } from './reference-change.ts';
import { kindOfTopic } from './reference-kinds.ts';

interface ConsumerParts {
  bus: EventBus;
  reference: Reference;
}

/** Starts the consumer of every topic of reference data. What cannot be applied goes to its topic's dead letters. */
export function startReferenceConsumers({ bus, reference }: ConsumerParts): Promise<Subscription> {
  const handle = async (batch: readonly IncomingMessage[]): Promise<void> => {
    const { rejected } = await reference.apply(batch.map(changeOf));
    const [first] = rejected;
    if (first) throw new UnfitReferenceError(first.reason);
  };
  return bus.subscribe({
    groupId: 'portcullis.reference',
    topics: REFERENCE_TOPICS,
    handle: withDeadLetters(bus, handle, isPoison),
  });
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

/** What no repeat mends: no change, or a value or constraint that the database refuses (SQLSTATE 22 and 23). */
function isPoison(error: unknown): boolean {
  if (error instanceof UnfitReferenceError) return true;
  const state = sqlState(error);
  return state !== undefined && /^2[23]/.test(state);
}

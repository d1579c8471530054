import { isRefusedValue } from '../../platform/database/sql-state.ts';
import type { BatchHandler, EventBus, IncomingMessage } from './event-bus.ts';

/** Returns the name of the topic that holds the dead letters of `topic`. */
export function deadLetterTopicOf(topic: string): string {
  return `${topic}.dlq`;
}

/** Returns the name of the topic whose dead letters are in `topic`. */
export function originOf(topic: string): string {
  return topic.slice(0, topic.lastIndexOf('.'));
}

/** Checks whether `topic` holds the dead letters of another topic. */
export function isDeadLetterTopic(topic: string): boolean {
  return topic.endsWith('.dlq');
}

/** Where a dead letter is: its topic, its partition and its offset. */
export type LetterPlace = Pick<IncomingMessage, 'topic' | 'partition' | 'offset'>;

/** Returns the id by which operators name a dead letter. */
export function letterId({ topic, partition, offset }: LetterPlace): string {
  return `${topic}-${partition}-${offset}`;
}

/** Returns the place that an id names; undefined if it is no id of a dead letter. */
export function letterPlace(id: string): LetterPlace | undefined {
  const [, topic = '', partition, offset = ''] = /^(.+)-(\d{1,9})-(\d{1,18})$/.exec(id) ?? [];
  return isDeadLetterTopic(topic) ? { topic, partition: Number(partition), offset: String(BigInt(offset)) } : undefined;
}

const MAX_ERROR_LENGTH = 1_024;

/** Thrown for a message that no retry can apply; it becomes a dead letter. */
export class PoisonError extends Error {
  override name = 'PoisonError';
}

/**
 * Returns a handler that moves poison to dead letters: messages that no retry can apply, since `handle` throws a
 * PoisonError or the database refuses their values. When a batch fails with poison, its messages are handled singly; those that fail again are published to the dead-letter topic with their
 * headers and `error`, `original-topic`, `original-partition` and `original-offset`. Any other error is thrown, and the
 * whole batch is delivered again, so `handle` must tolerate repeats.
 */
export function withDeadLetters(bus: Pick<EventBus, 'publish'>, handle: BatchHandler): BatchHandler {
  async function handleAlone(message: IncomingMessage): Promise<void> {
    try {
      await handle([message]);
    } catch (error) {
      if (!isPoison(error)) throw error;
      await bus.publish([deadLetter(message, error)]);
    }
  }

  return async function handleBatch(batch) {
    const [only, ...otherMessages] = batch;
    if (only && otherMessages.length === 0) return handleAlone(only);
    try {
      await handle(batch);
    } catch (error) {
      if (!isPoison(error)) throw error;
      for (const message of batch) await handleAlone(message);
    }
  };
}

function isPoison(error: unknown): boolean {
  return error instanceof PoisonError || isRefusedValue(error);
}

function deadLetter(message: IncomingMessage, error: unknown) {
  return {
    topic: deadLetterTopicOf(message.topic),
    key: message.key,
    value: message.value,
    headers: {
      ...message.headers,
      error: describe(error),
      'original-topic': message.topic,
      'original-partition': String(message.partition),
      'original-offset': message.offset,
    },
  };
}

/**
 * Describes an error in one line of at most 1,024 characters, without control characters such as U+0000, which
 * PostgreSQL cannot store.
 */
function describe(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return text
    .replaceAll(/\p{Cc}+/gu, ' ')
    .slice(0, MAX_ERROR_LENGTH)
    .toWellFormed();
}

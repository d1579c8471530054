import type { BatchHandler, EventBus, IncomingMessage } from './event-bus.ts';

/** Returns the topic of a topic's dead letters. */
export function deadLetterTopicOf(topic: string): string {
  return `${topic}.dlq`;
}

/** Returns whether `topic` holds the dead letters of another. */
export function isDeadLetterTopic(topic: string): boolean {
  return topic.endsWith('.dlq');
}

const MAX_ERROR_LENGTH = 1_024;

/**
 * A handler that takes poison out of a partition's path. A batch that fails with poison is given to `handle` message
 * by message; those that fail alone with poison go to the topic's dead letters with their headers and what happened
 * (`error`, `original-topic`, `original-partition`, `original-offset`). Every other error is thrown on, so that the
 * whole batch comes again: `handle` must bear repeats.
 */
export function withDeadLetters(
  bus: Pick<EventBus, 'publish'>,
  handle: BatchHandler,
  isPoison: (error: unknown) => boolean,
): BatchHandler {
  async function handleAlone(message: IncomingMessage): Promise<void> {
    try {
      await handle([message]);
    } catch (error) {
      if (!isPoison(error)) throw error;
      await bus.publish([deadLetter(message, error)]);
    }
  }

  return async function handleBatch(batch) {
    const [only, ...others] = batch;
    if (only && others.length === 0) return handleAlone(only);
    try {
      await handle(batch);
    } catch (error) {
      if (!isPoison(error)) throw error;
      for (const message of batch) await handleAlone(message);
    }
  };
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

/** One bounded line that every store takes: no control characters, U+0000 first of all. */
function describe(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return text
    .replaceAll(/\p{Cc}+/gu, ' ')
    .slice(0, MAX_ERROR_LENGTH)
    .toWellFormed();
}

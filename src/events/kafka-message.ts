import type { IHeaders, KafkaMessage } from 'kafkajs';
import type { IncomingMessage } from './event-bus.ts';

/** A message of kafkajs in the terms of the bus. */
export function incomingMessage(topic: string, partition: number, message: KafkaMessage): IncomingMessage {
  return {
    topic,
    partition,
    offset: message.offset,
    key: message.key?.toString() ?? '',
    value: message.value,
    headers: textHeaders(message.headers),
    timestampMs: Number(message.timestamp),
  };
}

/** Of a header that stands several times the last one counts. */
function textHeaders(headers: IHeaders | undefined): Record<string, string> {
  const entries = Object.entries(headers ?? {}).map(([name, value]) => {
    const last = Array.isArray(value) ? value.at(-1) : value;
    return [name, last?.toString() ?? ''] as const;
  });
  return Object.fromEntries(entries);
}

import { createRequire } from 'node:module';
import { PlainMessage, producePayload, type TopicData } from './kafka-record-batch.ts';

interface ProduceArguments {
  acks: number;
  timeout: number;
  topicData: readonly { topic: string; partitions: readonly { partition: number; messages: readonly unknown[] }[] }[];
}

interface Exchange {
  request: { encode(): Promise<unknown> };
}

/** How kafkajs makes the requests of one kind, by their version. */
interface Definition {
  protocol(options: { version: number }): (given: ProduceArguments) => Exchange;
  isReplaced?: boolean;
}

const FIRST_VERSION = 3;

/**
 * Lets kafkajs write what consists of `PlainMessage` by `producePayload`, which gives the same bytes: its own way has a
 * buffer of 512 bytes for each header of each message, and takes ten times as long. Such messages are for producers
 * without transactions, idempotence and compression. All others are written as ever.
 */
export function encodePlainMessages(): void {
  const definition: Definition = createRequire(import.meta.url)('kafkajs/src/protocol/requests/produce');
  if (definition.isReplaced) return;
  const { protocol } = definition;
  definition.isReplaced = true;
  definition.protocol = (options) => {
    const make = protocol(options);
    if (options.version < FIRST_VERSION) return make;
    return (given) => {
      const { request, ...exchange } = make(given);
      const { acks, timeout, topicData } = given;
      if (!isPlain(topicData)) return { ...exchange, request };
      const encode = async () => encoded(producePayload({ acks, timeout, topicData }, Date.now()));
      return { ...exchange, request: { ...request, encode } };
    };
  };
}

function isPlain(topicData: ProduceArguments['topicData']): topicData is readonly TopicData[] {
  return topicData.every(({ partitions }) =>
    partitions.every(({ messages }) => messages.every((message) => message instanceof PlainMessage)),
  );
}

/** What kafkajs takes for an encoder that has been written to. */
function encoded(buffer: Buffer) {
  return { buf: buffer, buffer, size: () => buffer.length };
}

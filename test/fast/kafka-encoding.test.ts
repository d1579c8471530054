import { createRequire } from 'node:module';
import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { PlainMessage, producePayload } from '../../src/lib/fast/kafka-encoding.ts';
import { anyCharacter } from '../support/harness/any-character.ts';

interface Encoder {
  buffer: Buffer;
}

const kafkajsRequest: (given: object) => { encode(): Promise<Encoder> } = createRequire(import.meta.url)(
  'kafkajs/src/protocol/requests/produce/v7/request',
);

const text = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 200 }),
  fc.string({ unit: fc.constantFrom('a', 'é', '€', '😀'), maxLength: 100 }),
);
const message = fc
  .record({
    topic: fc.constant(''),
    key: text,
    value: fc.option(fc.uint8Array({ maxLength: 20_000 }).map((bytes) => Buffer.from(bytes))),
    headers: fc.dictionary(
      text.filter((name) => name !== '__proto__'),
      text,
      { maxKeys: 6 },
    ),
  })
  .map((given) => new PlainMessage(given));
const topicData = fc.array(
  fc.record({
    topic: text,
    partitions: fc.array(
      fc.record({ partition: fc.nat(), messages: fc.array(message, { minLength: 1, maxLength: 80 }) }),
      { maxLength: 3 },
    ),
  }),
  { maxLength: 2 },
);

it('D6-16: a request to the brokers is byte for byte the one that kafkajs would send', async () => {
  await fc.assert(
    fc.asyncProperty(topicData, fc.integer({ min: 0, max: 4e12 }), async (given, nowMs) => {
      vi.spyOn(Date, 'now').mockReturnValue(nowMs);
      const partitions = (of: (typeof given)[number]) => of.partitions.map((one) => ({ ...one, firstSequence: 0 }));
      const sequenced = given.map((of) => ({ topic: of.topic, partitions: partitions(of) }));
      const { buffer } = await kafkajsRequest({ acks: -1, timeout: 1_000, topicData: sequenced }).encode();
      vi.restoreAllMocks();
      expect(producePayload({ acks: -1, timeout: 1_000, topicData: given }, nowMs).equals(buffer)).toBe(true);
    }),
    { numRuns: 200 },
  );
});

it('D6-16: a message for several topics is byte for byte what kafkajs would send', async () => {
  const batches = fc.array(fc.array(message, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(batches, fc.nat(9), fc.integer({ min: 0, max: 4e12 }), async (given, dropped, nowMs) => {
      vi.spyOn(Date, 'now').mockReturnValue(nowMs);
      const partitions = given.map((messages, partition) => ({ partition, messages, firstSequence: 0 }));
      const less = partitions.map((of) => ({ ...of, messages: of.messages.filter((_, at) => at !== dropped) }));
      const topics = [partitions, partitions.toReversed(), less.filter(({ messages }) => messages.length > 0)];
      const of = topics.map((some, index) => ({ topic: `t${index}`, partitions: some }));
      const { buffer } = await kafkajsRequest({ acks: -1, timeout: 1_000, topicData: of }).encode();
      vi.restoreAllMocks();
      expect(producePayload({ acks: -1, timeout: 1_000, topicData: of }, nowMs).equals(buffer)).toBe(true);
    }),
    { numRuns: 100 },
  );
});

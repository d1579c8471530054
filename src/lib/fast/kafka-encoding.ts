import { createRequire } from 'node:module';
import { crc32c } from '../crc32c.ts';

/**
 * A message as Portcullis passes it to kafkajs: the key and header values are strings, and it has no timestamp of its
 * own.
 */
export class PlainMessage {
  readonly key: string;
  readonly value: Buffer | null;
  readonly headers: Record<string, string>;

  constructor({ key, value, headers }: Pick<PlainMessage, 'key' | 'value' | 'headers'>) {
    this.key = key;
    this.value = value;
    this.headers = headers;
  }

  /** Checks whether it was made from a message with this key, value and headers. */
  isOf({ key, value, headers }: Pick<PlainMessage, 'key' | 'value' | 'headers'>): boolean {
    return this.headers === headers && this.value === value && this.key === key;
  }
}

/** The messages for each partition of one topic in a produce request. */
interface TopicData {
  topic: string;
  partitions: readonly { partition: number; messages: readonly PlainMessage[] }[];
}

const MAGIC = 2;
const NO_PRODUCER = -1n;
/** The length of a record batch up to its first record, in bytes. */
const BATCH_HEAD = 61;
/** The greatest length of a variable-length integer, in bytes. */
const VARINT = 5;
/** Offsets of the fields of a record batch, in bytes from its beginning. */
const AT = { length: 8, magic: 16, crc: 17, attributes: 21 } as const;

/**
 * Encodes the body of a Kafka produce request, versions 3 to 7 (Kafka protocol guide; record batches of magic 2),
 * without transactions, sequence numbers or compression. All messages get the timestamp `nowMs`. Everything is written
 * into one buffer. A record batch of the same messages in a partition of the same number, for another topic, is copied.
 */
export function producePayload(
  { acks, timeout, topicData }: { acks: number; timeout: number; topicData: readonly TopicData[] },
  nowMs: number,
): Buffer {
  const to = new Writer(sizeOf(topicData));
  to.int16(-1);
  to.int16(acks);
  to.int32(timeout);
  to.int32(topicData.length);
  const encodedPartitions = new Map<number, { messages: readonly PlainMessage[]; from: number }>();
  for (const { topic, partitions } of topicData) {
    to.shortText(topic);
    to.int32(partitions.length);
    for (const { partition, messages } of partitions) {
      to.int32(partition);
      const sizeAt = to.at;
      to.int32(0);
      const known = encodedPartitions.get(partition);
      if (known?.messages.length === messages.length && known.messages.every((one, at) => one === messages[at]))
        to.copy(known.from, to.bytes.readInt32BE(known.from - 4));
      else writeBatch(to, messages, nowMs);
      to.bytes.writeInt32BE(to.at - sizeAt - 4, sizeAt);
      encodedPartitions.set(partition, { messages, from: sizeAt + 4 });
    }
  }
  return to.written;
}

function writeBatch(to: Writer, messages: readonly PlainMessage[], nowMs: number): void {
  const from = to.at;
  to.bytes.fill(0, from, from + AT.magic);
  to.bytes[from + AT.magic] = MAGIC;
  to.at = from + AT.attributes;
  to.int16(0);
  to.int32(messages.length - 1);
  to.int64(BigInt(nowMs));
  to.int64(BigInt(nowMs));
  to.int64(NO_PRODUCER);
  to.int16(0);
  to.int32(0);
  to.int32(messages.length);
  for (const [index, message] of messages.entries()) writeRecord(to, message, index);
  to.bytes.writeInt32BE(to.at - from - AT.length - 4, from + AT.length);
  to.bytes.writeUInt32BE(crc32c(to.bytes, from + AT.attributes, to.at), from + AT.crc);
}

/**
 * Writes one record. Its length comes first and is a variable-length integer itself, so the record is written after
 * enough space for the longest and then moved back.
 */
function writeRecord(to: Writer, { key, value, headers }: PlainMessage, offsetDelta: number): void {
  const lengthAt = to.at;
  to.at += VARINT;
  const from = to.at;
  // No attributes, and no difference to the timestamp of the batch.
  to.bytes[to.at++] = 0;
  to.bytes[to.at++] = 0;
  to.varint(offsetDelta);
  to.text(key);
  to.blob(value);
  const names = Object.keys(headers);
  to.varint(names.length);
  for (const name of names) {
    to.text(name);
    to.text(headers[name] ?? '');
  }
  const end = to.at;
  to.at = lengthAt;
  to.varint(end - from);
  to.bytes.copyWithin(to.at, from, end);
  to.at += end - from;
}

/**
 * Returns an upper bound of the size of a produce request, in bytes: a UTF-16 code unit has at most three bytes in
 * UTF-8.
 */
function sizeOf(topicData: readonly TopicData[]): number {
  let size = 64;
  for (const { topic, partitions } of topicData) {
    size += 8 + 3 * topic.length;
    for (const { messages } of partitions) {
      size += BATCH_HEAD + 8;
      for (const { key, value, headers } of messages) {
        size += 6 * VARINT + 3 * key.length + (value?.length ?? 0);
        for (const name of Object.keys(headers)) {
          size += 2 * VARINT + 3 * (name.length + (headers[name]?.length ?? 0));
        }
      }
    }
  }
  return size;
}

class Writer {
  readonly bytes: Buffer;
  at = 0;

  constructor(size: number) {
    this.bytes = Buffer.allocUnsafe(size);
  }

  get written(): Buffer {
    return this.bytes.subarray(0, this.at);
  }

  int16(value: number): void {
    this.at = this.bytes.writeInt16BE(value, this.at);
  }

  int32(value: number): void {
    this.at = this.bytes.writeInt32BE(value, this.at);
  }

  int64(value: bigint): void {
    this.at = this.bytes.writeBigInt64BE(value, this.at);
  }

  /** Copies bytes that were written before, from an offset on. */
  copy(from: number, length: number): void {
    this.at += this.bytes.copy(this.bytes, this.at, from, from + length);
  }

  /** Writes a zigzag-encoded variable-length integer (the sign is in the lowest bit). */
  varint(value: number): void {
    let remainder = ((value << 1) ^ (value >> 31)) >>> 0;
    while (remainder > 0x7f) {
      this.bytes[this.at++] = (remainder & 0x7f) | 0x80;
      remainder >>>= 7;
    }
    this.bytes[this.at++] = remainder;
  }

  blob(value: Buffer | null): void {
    this.varint(value === null ? -1 : value.length);
    if (value === null) return;
    this.at += value.copy(this.bytes, this.at);
  }

  text(value: string): void {
    this.varint(Buffer.byteLength(value));
    this.at += this.bytes.write(value, this.at);
  }

  shortText(value: string): void {
    this.int16(Buffer.byteLength(value));
    this.at += this.bytes.write(value, this.at);
  }
}

interface ProduceArguments {
  acks: number;
  timeout: number;
  topicData: readonly { topic: string; partitions: readonly { partition: number; messages: readonly unknown[] }[] }[];
}

const FIRST_VERSION = 3;

/**
 * Patches kafkajs to encode requests that consist only of `PlainMessage` with `producePayload`. The bytes are the
 * same, in a tenth of the time: kafkajs allocates 512 bytes for each header of each message. Only for producers without
 * transactions, idempotence and compression; other requests are encoded by kafkajs as before.
 */
export function encodePlainMessages(): void {
  const require = createRequire(import.meta.url);
  const definition: {
    protocol(options: { version: number }): (produceArguments: ProduceArguments) => {
      request: { encode(): Promise<unknown> };
    };
    isReplaced?: boolean;
  } = require('kafkajs/src/protocol/requests/produce/index.js');
  if (definition.isReplaced) return;
  const { protocol } = definition;
  definition.isReplaced = true;
  definition.protocol = (options) => {
    const make = protocol(options);
    if (options.version < FIRST_VERSION) return make;
    return (produceArguments) => {
      const { request, ...exchange } = make(produceArguments);
      const { acks, timeout, topicData } = produceArguments;
      if (!isPlain(topicData)) return { ...exchange, request };
      const encode = async () => {
        const buffer = producePayload({ acks, timeout, topicData }, Date.now());
        return { buf: buffer, buffer, size: () => buffer.length };
      };
      return { ...exchange, request: { ...request, encode } };
    };
  };
}

function isPlain(topicData: ProduceArguments['topicData']): topicData is readonly TopicData[] {
  return topicData.every(({ partitions }) =>
    partitions.every(({ messages }) => messages.every((message) => message instanceof PlainMessage)),
  );
}

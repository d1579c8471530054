import { createRequire } from 'node:module';
import type { Admin, IHeaders, Kafka, KafkaMessage, LogEntry, PartitionerArgs, RetryOptions } from 'kafkajs';
import type { BusLog, IncomingMessage } from './event-bus.ts';

/** Where the brokers are and how to reach them. */
export interface KafkaConnection {
  brokers: string[];
  ssl: boolean;
  sasl: { mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'; username: string; password: string } | undefined;
  /** Stands before the name of every topic and group. */
  topicPrefix: string;
  clientId: string;
}

/** A broker as kafkajs has it. */
interface Broker {
  /** Of each request, as the broker has said with the connection. */
  versions: unknown;
  isConnected(): boolean;
}

const CONNECTION_TIMEOUT_MS = 1_000;
const REPEATED_LOG_MS = 30_000;
const MAX_REMEMBERED_LINES = 100;

/** Bounded attempts: with a request timeout of 1 s a call against a frozen broker fails within 4 s. */
export const KAFKA_RETRY: RetryOptions = {
  initialRetryTime: 100,
  maxRetryTime: 500,
  multiplier: 2,
  factor: 0.2,
  retries: 2,
};

/**
 * A client of kafkajs, loaded at the first use. Each consumer takes one of its own: the consumers of one client share
 * their record of committed offsets, and a member that joins clears it for the others.
 */
export async function kafkaClient(connection: KafkaConnection, requestTimeoutMs: number, log: BusLog): Promise<Kafka> {
  const { Kafka, logLevel } = await import('kafkajs');
  connectWhole();
  const { brokers, ssl, sasl, clientId } = connection;
  return new Kafka({
    brokers,
    ssl,
    clientId,
    ...(sasl ? { sasl: saslOptions(sasl) } : {}),
    connectionTimeout: CONNECTION_TIMEOUT_MS,
    authenticationTimeout: CONNECTION_TIMEOUT_MS,
    requestTimeout: requestTimeoutMs,
    retry: KAFKA_RETRY,
    logLevel: logLevel.ERROR,
    logCreator: () => quietly(log),
  });
}

let connectsWhole = false;

/**
 * Lets kafkajs take a broker for connected once that has said what it understands. It takes a connection for enough: one
 * that was slow to say so at first is never asked again, and whatever is sent by it fails for ever.
 */
function connectWhole(): void {
  if (connectsWhole) return;
  connectsWhole = true;
  const { prototype }: { prototype: Broker } = createRequire(import.meta.url)('kafkajs/src/broker');
  const { isConnected } = prototype;
  prototype.isConnected = function isConnectedWhole() {
    return this.versions !== null && isConnected.call(this);
  };
}

/** Connects a client, or closes it: a connection whose handshake has failed would stay open. */
export async function connected<Client extends Pick<Admin, 'connect' | 'disconnect'>>(client: Client): Promise<Client> {
  try {
    await client.connect();
    return client;
  } catch (error) {
    await client.disconnect().catch(() => undefined);
    throw error;
  }
}

/** The mechanism decides the member of the union, so each is built by itself. */
function saslOptions({ mechanism, username, password }: NonNullable<KafkaConnection['sasl']>) {
  switch (mechanism) {
    case 'plain':
      return { mechanism, username, password };
    case 'scram-sha-256':
      return { mechanism, username, password };
    case 'scram-sha-512':
      return { mechanism, username, password };
    default:
      return mechanism satisfies never;
  }
}

/** When each line was last logged, for each log: the clients of one bus share it. */
const told = new WeakMap<BusLog, Map<string, number>>();

/** Logs each line of kafkajs at most once in 30 s: while a broker is down it repeats them several times a second. */
function quietly(log: BusLog): (entry: LogEntry) => void {
  const toldAt = told.get(log) ?? new Map<string, number>();
  told.set(log, toldAt);
  return ({ namespace, log: { message, timestamp: _timestamp, logger: _logger, stack: _stack, ...fields } }) => {
    const text = `kafkajs ${namespace}: ${message}`;
    const now = performance.now();
    if (now - (toldAt.get(text) ?? Number.NEGATIVE_INFINITY) < REPEATED_LOG_MS) return;
    if (toldAt.size >= MAX_REMEMBERED_LINES) toldAt.clear();
    toldAt.set(text, now);
    log('warn', text, fields);
  };
}

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

const SEED = 0x9747b28c;
const FACTOR = 0x5bd1e995;

/**
 * The partition of a message, as Kafka's own clients choose it: murmur2 of the key's UTF-8 bytes, without the sign, by the
 * number of partitions. The partitioner of kafkajs chooses the same by integers without limit, which takes far longer.
 */
export function partitionOf({ message: { key }, partitionMetadata }: PartitionerArgs): number {
  return (murmur2(Buffer.from(String(key ?? ''))) & 0x7fffffff) % partitionMetadata.length;
}

function murmur2(bytes: Buffer): number {
  const whole = bytes.length - (bytes.length % 4);
  let hash = SEED ^ bytes.length;
  for (let at = 0; at < whole; at += 4) {
    const mixed = Math.imul(bytes.readInt32LE(at), FACTOR);
    hash = Math.imul(hash, FACTOR) ^ Math.imul(mixed ^ (mixed >>> 24), FACTOR);
  }
  if (whole < bytes.length) {
    for (let at = bytes.length - 1; at >= whole; at -= 1) hash ^= (bytes[at] ?? 0) << (8 * (at - whole));
    hash = Math.imul(hash, FACTOR);
  }
  hash = Math.imul(hash ^ (hash >>> 13), FACTOR);
  return hash ^ (hash >>> 15);
}

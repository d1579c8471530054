import { createRequire } from 'node:module';
import type { Admin, Kafka, LogEntry, RetryOptions } from 'kafkajs';
import type { BusLog } from './event-bus.ts';

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

/** Connects a client, or leaves nothing of it: what has been opened and not answered stays open otherwise. */
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

/** When each line was last told, for each log: the clients of one bus share it. */
const told = new WeakMap<BusLog, Map<string, number>>();

/** While a broker is away kafkajs says the same several times a second; once in 30 s is enough. */
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

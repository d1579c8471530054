import { once } from 'node:events';
import { connect as connectPlain, isIP } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress } from 'node:zlib';
import type {
  Admin,
  Consumer,
  ConsumerRunConfig,
  ISocketFactory,
  Kafka,
  KafkaMessage,
  RetryOptions,
  SASLOptions,
} from 'kafkajs';
import { restWhenNothingWaits } from '../../lib/fast/kafka-timers.ts';
import type { Config } from '../../platform/config/config.ts';
import type { BusLog, IncomingMessage } from './event-bus.ts';

/** The addresses of the Kafka brokers and how to connect to them. */
export interface KafkaConnection extends NonNullable<Config['kafka']> {
  /** The prefix of the name of every topic and consumer group. */
  topicPrefix: string;
  clientId: string;
}

const CONNECTION_TIMEOUT_MS = 1_000;
const KEEP_ALIVE_MS = 60_000;

/** The retry policy of kafkajs. With a request timeout of 1 s, a call to a frozen broker fails within 4 s. */
export const KAFKA_RETRY: RetryOptions = {
  initialRetryTime: 100,
  maxRetryTime: 500,
  multiplier: 2,
  factor: 0.2,
  retries: 2,
};

/**
 * Creates a kafkajs client; the library is loaded on first use. Each consumer needs its own client: the consumers
 * of one client share their record of committed offsets, and a member that joins clears it for the others.
 */
export async function kafkaClient(connection: KafkaConnection, requestTimeoutMs: number, log: BusLog): Promise<Kafka> {
  // Node finds no codecs among the names that the package exports.
  const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = (await import('kafkajs')).default;
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: ({ buffer }: { buffer: Buffer }) => promisify(zstdCompress)(buffer),
    decompress: promisify(zstdDecompress),
  });
  restWhenNothingWaits();
  const { brokers, ssl, sasl, clientId } = connection;
  return new Kafka({
    // kafkajs splits an address at its only colon. Of an IPv6 address in brackets, colons are escaped until the socket is
    // opened.
    brokers: brokers.map((broker) => broker.replace(/^\[(.*)\]/, (_, address: string) => encodeURIComponent(address))),
    socketFactory,
    ssl,
    clientId,
    // Each mechanism is a separate member of kafkajs' union type, which TypeScript does not compare with one of all.
    ...(sasl ? { sasl: sasl as SASLOptions } : {}),
    connectionTimeout: CONNECTION_TIMEOUT_MS,
    authenticationTimeout: CONNECTION_TIMEOUT_MS,
    requestTimeout: requestTimeoutMs,
    retry: KAFKA_RETRY,
    logLevel: logLevel.ERROR,
    // While a broker is down, kafkajs repeats its lines several times a second: each names its store, by which the log of
    // a process counts them.
    logCreator:
      () =>
      ({ namespace, log: { message, timestamp: _timestamp, logger: _logger, stack: _stack, ...fields } }) =>
        log('warn', `kafkajs ${namespace}: ${message}`, { ...fields, store: 'bus' }),
  });
}

/** Opens the connection to a broker as kafkajs would, to an escaped host too. */
const socketFactory: ISocketFactory = ({ host: escaped, port, ssl, onConnect }) => {
  const host = decodeURIComponent(escaped);
  const name = isIP(host) === 0 ? { servername: host } : {};
  const socket = ssl ? connectTls({ host, port, ...name, ...ssl }, onConnect) : connectPlain({ host, port }, onConnect);
  return socket.setKeepAlive(true, KEEP_ALIVE_MS);
};

/** A client of kafkajs that is connected when it is first needed, and another one once it has failed. */
export class LazyClient<Client extends Pick<Admin, 'connect' | 'disconnect'>> {
  readonly #create: () => Promise<Client>;
  #connected: Promise<Client> | undefined;

  constructor(create: () => Promise<Client>) {
    this.#create = create;
  }

  /** Returns the connected client. @throws the error of a failed handshake; the next call connects again. */
  get(): Promise<Client> {
    this.#connected ??= this.#connect();
    return this.#connected;
  }

  /** Disconnects a client that has failed, unless that has been done; the next `get` connects another. */
  async drop(failed: Promise<Client>): Promise<void> {
    if (this.#connected !== failed) return;
    this.#connected = undefined;
    await failed.then((client) => client.disconnect()).catch(() => undefined);
  }

  async stop(): Promise<void> {
    await (await this.#connected?.catch(() => undefined))?.disconnect();
  }

  async #connect(): Promise<Client> {
    let client: Client | undefined;
    try {
      client = await this.#create();
      await client.connect();
      return client;
    } catch (error) {
      // The connection of a failed handshake would stay open.
      await client?.disconnect().catch(() => undefined);
      this.#connected = undefined;
      throw error;
    }
  }
}

/**
 * Runs a consumer, which commits no offsets by itself, until `signal` is aborted. Rejects with the error that ended it;
 * an error after which kafkajs restarts it does not.
 */
export async function consume(
  consumer: Consumer,
  {
    topics,
    fromBeginning = true,
    signal,
    onJoin,
    ...run
  }: Pick<ConsumerRunConfig, 'eachBatch' | 'partitionsConsumedConcurrently'> & {
    topics: string[];
    fromBeginning?: boolean | undefined;
    signal: AbortSignal;
    /** Called when it has joined its group, at first and again, before anything is fetched. */
    onJoin(): void;
  },
): Promise<void> {
  const crash = Promise.withResolvers<never>();
  crash.promise.catch(() => undefined);
  consumer.on('consumer.crash', ({ payload: { error, restart } }) => {
    if (!restart) crash.reject(error);
  });
  consumer.on('consumer.group_join', onJoin);
  try {
    await consumer.connect();
    await consumer.subscribe({ topics, fromBeginning });
    // Must be awaited: a consumer that is disconnected while it joins the group starts again once it has joined.
    await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, ...run });
    if (!signal.aborted) await Promise.race([crash.promise, once(signal, 'abort')]);
  } finally {
    await consumer.disconnect().catch(() => undefined);
  }
}

/** Converts a kafkajs message to an `IncomingMessage`. */
export function incomingMessage(topic: string, partition: number, message: KafkaMessage): IncomingMessage {
  return {
    topic,
    partition,
    offset: message.offset,
    key: message.key?.toString() ?? '',
    value: message.value,
    // Header values are text; of a repeated header the last value counts.
    headers: Object.fromEntries(
      Object.entries(message.headers ?? {}).map(([name, value]) => [name, `${[value].flat().at(-1) ?? ''}`]),
    ),
    timestampMs: Number(message.timestamp),
  };
}

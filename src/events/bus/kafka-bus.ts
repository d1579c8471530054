import { AsyncLocalStorage } from 'node:async_hooks';
import type { Producer, TopicMessages } from 'kafkajs';
import { backoffMs, pause } from '../../lib/backoff.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import {
  type BusLog,
  BusUnavailableError,
  type EventBus,
  type GroupLag,
  type OutgoingMessage,
  type PublishOptions,
  type SubscribeOptions,
  type Subscription,
} from './event-bus.ts';
import { KafkaAdmin } from './kafka-admin.ts';
import { connected, KAFKA_RETRY, type KafkaConnection, kafkaClient, partitionOf } from './kafka-client.ts';
import { encodePlainMessages, PlainMessage } from './kafka-encoding.ts';
import { KafkaSubscription } from './kafka-subscription.ts';
import { PublishQueue } from './publish-queue.ts';

const HEALTH_TIMEOUT_MS = 2_000;
/** Half of the usual deadline: what a slow broker acknowledges is heard, and where a reply is lost there is another attempt. */
const REQUEST_TIMEOUT_MS = 2_000;
const MAX_PAUSE_MS = 500;
const UNKNOWN_TOPIC_ATTEMPTS = 3;

/**
 * Sends with acks=all, without idempotence: after a lost reply the idempotent producer of kafkajs reuses a sequence
 * number and loses a message in silence; a repeat is harmless.
 */
class KafkaProducer {
  readonly #connection: KafkaConnection;
  readonly #log: BusLog;
  readonly #stopping = new AbortController();
  #connected: Promise<Producer> | undefined;

  constructor(connection: KafkaConnection, log: BusLog) {
    this.#connection = connection;
    this.#log = log;
  }

  /**
   * Resolves when every message is on all in-sync replicas. Until then it tries again while `isWanted`, each time with
   * the whole batch: the retry of kafkajs itself forgets the messages of a partition whose leader changed in between.
   */
  async send(messages: readonly OutgoingMessage[], isWanted: () => boolean): Promise<void> {
    const topicMessages = this.#byTopic(messages);
    for (let attempt = 1; ; attempt += 1) {
      try {
        const producer = await this.#producer();
        await producer.sendBatch({ acks: -1, timeout: REQUEST_TIMEOUT_MS, topicMessages });
        return;
      } catch (error) {
        if (!isWanted() || isFinal(error, attempt)) throw error;
      }
      await pause(backoffMs(attempt, { maxMs: MAX_PAUSE_MS }), this.#stopping.signal);
    }
  }

  /**
   * Connects unless it has before: the first message of a process is not to wait for that, and who cannot send is not well.
   * @throws BusUnavailableError when no broker lets it within 2 s.
   */
  async checkHealth(): Promise<void> {
    try {
      await withTimeout(this.#producer(), HEALTH_TIMEOUT_MS);
    } catch (error) {
      throw new BusUnavailableError('the brokers let nobody send', { cause: error });
    }
  }

  /** To be called when nothing is being sent any more. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const producer = await this.#connected?.catch(() => undefined);
    await producer?.disconnect();
  }

  #producer(): Promise<Producer> {
    this.#connected ??= this.#connect().catch((error: unknown) => {
      this.#connected = undefined;
      throw error;
    });
    return this.#connected;
  }

  async #connect(): Promise<Producer> {
    const kafka = await kafkaClient(this.#connection, REQUEST_TIMEOUT_MS, this.#log);
    encodePlainMessages();
    const producer = kafka.producer({
      allowAutoTopicCreation: false,
      idempotent: false,
      createPartitioner: () => partitionOf,
      retry: { ...KAFKA_RETRY, retries: 0 },
    });
    return connected(producer);
  }

  #byTopic(messages: readonly OutgoingMessage[]): TopicMessages[] {
    const byTopic = new Map<string, PlainMessage[]>();
    for (const message of messages) {
      const name = this.#connection.topicPrefix + message.topic;
      const sameTopic = byTopic.get(name);
      if (sameTopic) sameTopic.push(new PlainMessage(message));
      else byTopic.set(name, [new PlainMessage(message)]);
    }
    return Array.from(byTopic, ([topic, ofTopic]) => ({ topic, messages: ofTopic }));
  }
}

/**
 * Whether another attempt would meet the same: too large, say, or not allowed. That a topic does not exist may be said
 * by a broker that has just started, and to the sends that shared a request with the one that named it.
 */
function isFinal(error: unknown, attempt: number): boolean {
  if (!(error instanceof Error)) return true;
  if (error.cause instanceof Error) return isFinal(error.cause, attempt);
  if ('type' in error && error.type === 'UNKNOWN_TOPIC_OR_PARTITION') return attempt >= UNKNOWN_TOPIC_ATTEMPTS;
  return error instanceof TypeError || ('retriable' in error && error.retriable === false);
}

/** Half of what a broker takes by default, for one topic, so for each of its partitions too. */
const MAX_TOPIC_BYTES = 512 * 1024;

/**
 * The bus on Apache Kafka. It connects when first used and goes on trying, so that a start without brokers only shows
 * in `checkHealth` and in refused messages.
 */
export class KafkaBus implements EventBus {
  readonly #connection: KafkaConnection;
  readonly #log: BusLog;
  readonly #admin: KafkaAdmin;
  readonly #producer: KafkaProducer;
  readonly #queue: PublishQueue;
  readonly #outside = AsyncLocalStorage.snapshot();
  readonly #subscriptions = new Set<KafkaSubscription>();
  #isStopped = false;

  constructor(connection: KafkaConnection, log: BusLog) {
    this.#connection = connection;
    this.#log = log;
    this.#admin = new KafkaAdmin(connection, log);
    this.#producer = new KafkaProducer(connection, log);
    this.#queue = new PublishQueue({
      send: (messages, isWanted) => this.#producer.send(messages, isWanted),
      maxBatchMessages: 2_000,
      maxTopicBytes: MAX_TOPIC_BYTES,
      singlesAtOnce: 16,
    });
  }

  publish(messages: readonly OutgoingMessage[], options: PublishOptions = {}): Promise<void> {
    return this.#queue.publish(messages, options.deadlineMs);
  }

  async subscribe(options: SubscribeOptions): Promise<Subscription> {
    if (this.#isStopped) throw new BusUnavailableError('the bus is stopped');
    const subscription = this.#outside(() => new KafkaSubscription(this.#connection, options, this.#log));
    this.#subscriptions.add(subscription);
    return {
      stop: async () => {
        await subscription.stop();
        this.#subscriptions.delete(subscription);
      },
    };
  }

  ensureTopics(topics: readonly string[]): Promise<void> {
    return this.#outside(() => this.#admin.ensureTopics(topics));
  }

  missingTopics(topics: readonly string[]): Promise<string[]> {
    return this.#outside(() => this.#admin.missingTopics(topics));
  }

  async checkHealth(): Promise<void> {
    await this.#outside(() => Promise.all([this.#admin.checkHealth(), this.#producer.checkHealth()]));
  }

  lag(groups: ReadonlyMap<string, readonly string[]>): Promise<GroupLag[]> {
    return this.#outside(() => this.#admin.lag(groups));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#subscriptions.values().map((subscription) => subscription.stop()));
    await this.#queue.close();
    await Promise.all([this.#producer.stop(), this.#admin.stop()]);
  }
}

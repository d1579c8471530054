import { AsyncLocalStorage } from 'node:async_hooks';
import type { Consumer, EachBatchPayload, TopicMessages } from 'kafkajs';
import { encodePlainMessages, PlainMessage } from '../../lib/fast/kafka-encoding.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import { backoffMs, pause } from '../../lib/work-loop.ts';
import {
  type BusLog,
  BusUnavailableError,
  type ConsumerLag,
  type EventBus,
  type GroupLag,
  HEALTH_TIMEOUT_MS,
  type IncomingMessage,
  MAX_BATCH_MESSAGES,
  type OutgoingMessage,
  type PublishOptions,
  type SubscribeOptions,
  type Subscription,
} from './event-bus.ts';
import { KafkaAdmin } from './kafka-admin.ts';
import {
  consume,
  incomingMessage,
  KAFKA_RETRY,
  type KafkaConnection,
  kafkaClient,
  LazyClient,
} from './kafka-client.ts';
import { PublishQueue } from './publish-queue.ts';

/**
 * How long a broker may take to respond, in milliseconds: half of the default publish deadline, which leaves time for a
 * second attempt when a response is lost.
 */
const REQUEST_TIMEOUT_MS = 2_000;
const MAX_PAUSE_MS = 500;
const UNKNOWN_TOPIC_ATTEMPTS = 3;
/**
 * What kafkajs says of a connection whose first question, for the versions of requests, was not answered in time: it
 * never asks again, so that only another producer can send.
 */
const NEVER_CONNECTED = 'Broker not connected';

/**
 * Sends batches with acks=all and without idempotence: after a lost response, the idempotent producer of kafkajs reuses
 * a sequence number and silently loses a message. Duplicates are harmless.
 */
class KafkaProducer {
  readonly #connection: KafkaConnection;
  readonly #log: BusLog;
  readonly #stopping = new AbortController();
  readonly #producer = new LazyClient(async () => {
    const kafka = await kafkaClient(this.#connection, REQUEST_TIMEOUT_MS, this.#log);
    const { Partitioners } = await import('kafkajs');
    encodePlainMessages();
    return kafka.producer({
      allowAutoTopicCreation: false,
      idempotent: false,
      createPartitioner: Partitioners.DefaultPartitioner,
      retry: { ...KAFKA_RETRY, retries: 0 },
    });
  });

  constructor(connection: KafkaConnection, log: BusLog) {
    this.#connection = connection;
    this.#log = log;
  }

  /**
   * Sends messages and resolves when all in-sync replicas have every one. After a failure it sends the whole batch
   * again while `isWanted` returns true: the retry of kafkajs itself drops the messages of a partition whose leader has
   * changed.
   */
  async send(messages: readonly OutgoingMessage[], isWanted: () => boolean): Promise<void> {
    const topicMessages = this.#byTopic(messages);
    for (let attempt = 1; ; attempt += 1) {
      const connecting = this.#producer.get();
      try {
        await (await connecting).sendBatch({ acks: -1, timeout: REQUEST_TIMEOUT_MS, topicMessages });
        return;
      } catch (error) {
        if (String(error).includes(NEVER_CONNECTED)) void this.#producer.drop(connecting);
        if (!isWanted() || isFinal(error, attempt)) throw error;
      }
      await pause(backoffMs(attempt, { maxMs: MAX_PAUSE_MS }), this.#stopping.signal);
    }
  }

  /**
   * Checks whether the producer can connect, and connects it unless it is connected, so that the first message of a
   * process need not wait.
   * @throws BusUnavailableError when no broker accepts the producer within 2 s.
   */
  async checkHealth(): Promise<void> {
    try {
      await withTimeout(this.#producer.get(), HEALTH_TIMEOUT_MS);
    } catch (error) {
      throw new BusUnavailableError('the brokers do not allow this user to produce', { cause: error });
    }
  }

  /** Disconnects. Call it when nothing is being sent any more. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#producer.stop();
  }

  #byTopic(messages: readonly OutgoingMessage[]): TopicMessages[] {
    const byTopic = new Map<string, PlainMessage[]>();
    let plain: PlainMessage | undefined;
    for (const message of messages) {
      const name = this.#connection.topicPrefix + message.topic;
      // A message for several topics is encoded only once.
      if (!plain?.isOf(message)) plain = new PlainMessage(message);
      byTopic.getOrInsertComputed(name, () => []).push(plain);
    }
    return Array.from(byTopic, ([topic, ofTopic]) => ({ topic, messages: ofTopic }));
  }
}

/**
 * Checks whether a retry would fail in the same way, as for a message that is too large or not allowed. An unknown
 * topic is final only at the third attempt: a broker that has just started may report it, and it may concern another
 * batch that shared a request with this one.
 */
function isFinal(error: unknown, attempt: number): boolean {
  if (!(error instanceof Error)) return true;
  if (error.cause instanceof Error) return isFinal(error.cause, attempt);
  if ('type' in error && error.type === 'UNKNOWN_TOPIC_OR_PARTITION') return attempt >= UNKNOWN_TOPIC_ATTEMPTS;
  return error instanceof TypeError || ('retriable' in error && error.retriable === false);
}

/**
 * The maximum number of bytes of one topic in a batch, and so of each partition: half of the size that a broker accepts
 * by default.
 */
const MAX_TOPIC_BYTES = 512 * 1024;

/**
 * The event bus on Apache Kafka. It connects on first use and keeps trying: without brokers a process still starts, and
 * only `checkHealth` and `publish` fail.
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
    void subscription.ended.then(() => this.#subscriptions.delete(subscription));
    return subscription;
  }

  ensureTopics(topics: readonly string[]): Promise<void> {
    return this.#outside(() => this.#admin.ensureTopics(topics));
  }

  missingTopics(topics: readonly string[], partitions?: number): Promise<string[]> {
    return this.#outside(() => this.#admin.missingTopics(topics, partitions));
  }

  async checkHealth(): Promise<void> {
    await this.#outside(() => Promise.all([this.#admin.checkHealth(), this.#producer.checkHealth()]));
  }

  lag(groups: ReadonlyMap<string, readonly string[]>): Promise<ConsumerLag[]> {
    return this.#outside(() => this.#admin.lag(groups));
  }

  rewind(sinceMs: number): Promise<GroupLag[]> {
    return this.#outside(() => this.#admin.rewind(sinceMs));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#subscriptions.values().map((subscription) => subscription.stop()));
    await this.#queue.close();
    await Promise.all([this.#producer.stop(), this.#admin.stop()]);
  }
}

const CONSUMER_TIMEOUT_MS = 3_000;
const HEARTBEAT_MS = 500;
const SESSION_TIMEOUT_MS = 6_000;
const MAX_WAIT_MS = 500;
const PARTITIONS_AT_ONCE = 4;

/**
 * A member of a consumer group. A consumer that crashes or cannot reach a broker is replaced after a backoff, until
 * `stop`. A partition whose handler fails is paused for the backoff; the others continue.
 */
export class KafkaSubscription implements Subscription {
  readonly #deps;
  readonly #stopping = new AbortController();
  readonly #failures = new Map<string, number>();
  /** Resolves when it has stopped; never rejects. */
  readonly ended: Promise<void>;
  #crashes = 0;

  constructor(connection: KafkaConnection, options: SubscribeOptions, log: BusLog) {
    this.#deps = { connection, options, log };
    this.ended = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.ended;
  }

  async #run(): Promise<void> {
    const { connection, options, log } = this.#deps;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await consume(await this.#newConsumer(), {
          topics: options.topics.map((topic) => connection.topicPrefix + topic),
          fromBeginning: options.fromBeginning,
          signal,
          onJoin: () => {
            this.#crashes = 0;
          },
          partitionsConsumedConcurrently: PARTITIONS_AT_ONCE,
          eachBatch: (payload) => this.#eachBatch(payload),
        });
      } catch (error) {
        this.#crashes += 1;
        const fields = { store: 'bus', groupId: options.groupId, failures: this.#crashes, error };
        log('warn', 'consumer failed; replacing it', fields);
        await pause(backoffMs(this.#crashes), signal);
      }
    }
  }

  async #newConsumer(): Promise<Consumer> {
    return (await kafkaClient(this.#deps.connection, CONSUMER_TIMEOUT_MS, this.#deps.log)).consumer({
      groupId: this.#deps.connection.topicPrefix + this.#deps.options.groupId,
      heartbeatInterval: HEARTBEAT_MS,
      sessionTimeout: SESSION_TIMEOUT_MS,
      rebalanceTimeout: SESSION_TIMEOUT_MS,
      maxWaitTimeInMs: MAX_WAIT_MS,
      allowAutoTopicCreation: false,
      retry: { ...KAFKA_RETRY, restartOnFailure: async () => false },
    });
  }

  async #eachBatch(payload: EachBatchPayload): Promise<void> {
    const { batch, resolveOffset, commitOffsetsIfNecessary, uncommittedOffsets, isRunning, isStale } = payload;
    const topic = batch.topic.slice(this.#deps.connection.topicPrefix.length);
    for (let start = 0; start < batch.messages.length && isRunning() && !isStale(); start += MAX_BATCH_MESSAGES) {
      const part = batch.messages.slice(start, start + MAX_BATCH_MESSAGES);
      const messages = part.map((message) => incomingMessage(topic, batch.partition, message));
      const last = messages.at(-1);
      if (!last || !(await this.#handle(messages, last, payload))) return;
      resolveOffset(last.offset);
      await commitOffsetsIfNecessary(uncommittedOffsets());
    }
  }

  /**
   * Runs the handler and returns whether it has succeeded. If not, the partition is paused and the messages will be
   * fetched again.
   */
  async #handle(messages: IncomingMessage[], at: IncomingMessage, payload: EachBatchPayload): Promise<boolean> {
    const { topic, partition } = at;
    const name = `${topic}/${partition}`;
    // A failed heartbeat needs no handling: the next request of kafkajs fails as well, and it rejoins the group.
    using _heartbeats = setInterval(() => payload.heartbeat().catch(() => undefined), HEARTBEAT_MS);
    const earlierFailures = this.#failures.get(name) ?? 0;
    try {
      await this.#deps.options.handle(messages, earlierFailures);
      this.#failures.delete(name);
      return true;
    } catch (error) {
      const failures = earlierFailures + 1;
      this.#failures.set(name, failures);
      const fields = { groupId: this.#deps.options.groupId, topic, partition, failures, error };
      this.#deps.log('warn', 'event batch failed; retrying', fields);
      setTimeout(payload.pause(), backoffMs(failures)).unref();
      return false;
    }
  }
}

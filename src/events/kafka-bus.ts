import { AsyncLocalStorage } from 'node:async_hooks';
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
import type { KafkaConnection } from './kafka-client.ts';
import { KafkaProducer } from './kafka-producer.ts';
import { KafkaSubscription } from './kafka-subscription.ts';
import { PublishQueue } from './publish-queue.ts';

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

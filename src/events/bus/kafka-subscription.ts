import { once } from 'node:events';
import type { Consumer, EachBatchPayload } from 'kafkajs';
import { backoffMs, pause } from '../../lib/work-loop.ts';
import {
  type BusLog,
  type IncomingMessage,
  MAX_BATCH_MESSAGES,
  type SubscribeOptions,
  type Subscription,
} from './event-bus.ts';
import { incomingMessage, KAFKA_RETRY, type KafkaConnection, kafkaClient } from './kafka-client.ts';

const REQUEST_TIMEOUT_MS = 3_000;
const HEARTBEAT_MS = 500;
const SESSION_TIMEOUT_MS = 6_000;
const MAX_WAIT_MS = 500;
const PARTITIONS_AT_ONCE = 4;

/**
 * A member of a consumer group. A consumer that crashes or cannot reach a broker is replaced after a backoff, until
 * `stop`. A partition whose handler fails is paused for the backoff; the others continue.
 */
export class KafkaSubscription implements Subscription {
  readonly #connection: KafkaConnection;
  readonly #options: SubscribeOptions;
  readonly #log: BusLog;
  readonly #stopping = new AbortController();
  readonly #failures = new Map<string, number>();
  readonly #ended: Promise<void>;
  #crashes = 0;

  constructor(connection: KafkaConnection, options: SubscribeOptions, log: BusLog) {
    this.#connection = connection;
    this.#options = options;
    this.#log = log;
    this.#ended = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#ended;
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      try {
        await this.#consume();
      } catch (error) {
        this.#crashes += 1;
        const fields = { store: 'bus', groupId: this.#options.groupId, failures: this.#crashes, error };
        this.#log('warn', 'consumer failed; replacing it', fields);
        await pause(backoffMs(this.#crashes), this.#stopping.signal);
      }
    }
  }

  /** Runs one consumer. Resolves when the subscription is stopped; rejects with the error that ended the consumer. */
  async #consume(): Promise<void> {
    const consumer = await this.#newConsumer();
    const crash = Promise.withResolvers<never>();
    crash.promise.catch(() => undefined);
    consumer.on('consumer.crash', ({ payload }) => crash.reject(payload.error));
    consumer.on('consumer.group_join', () => {
      this.#crashes = 0;
    });
    const { topicPrefix } = this.#connection;
    try {
      await consumer.connect();
      await consumer.subscribe({
        topics: this.#options.topics.map((topic) => topicPrefix + topic),
        fromBeginning: this.#options.fromBeginning ?? true,
      });
      // Must be awaited: a consumer that is disconnected while it joins the group starts again once it has joined.
      await consumer.run({
        autoCommit: false,
        eachBatchAutoResolve: false,
        partitionsConsumedConcurrently: PARTITIONS_AT_ONCE,
        eachBatch: (payload) => this.#eachBatch(payload),
      });
      if (!this.#stopping.signal.aborted) await Promise.race([crash.promise, once(this.#stopping.signal, 'abort')]);
    } finally {
      await consumer.disconnect().catch(() => undefined);
    }
  }

  async #newConsumer(): Promise<Consumer> {
    const kafka = await kafkaClient(this.#connection, REQUEST_TIMEOUT_MS, this.#log);
    return kafka.consumer({
      groupId: this.#connection.topicPrefix + this.#options.groupId,
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
    const topic = batch.topic.slice(this.#connection.topicPrefix.length);
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
    const heartbeats = setInterval(() => payload.heartbeat().catch(() => undefined), HEARTBEAT_MS);
    try {
      await this.#options.handle(messages);
      this.#failures.delete(name);
      return true;
    } catch (error) {
      const failures = (this.#failures.get(name) ?? 0) + 1;
      this.#failures.set(name, failures);
      const { groupId } = this.#options;
      const fields = { groupId, topic, partition, failures, error };
      this.#log('warn', 'event batch failed; retrying', fields);
      const resume = payload.pause();
      setTimeout(resume, backoffMs(failures)).unref();
      return false;
    } finally {
      clearInterval(heartbeats);
    }
  }
}

import type { Producer, TopicMessages } from 'kafkajs';
import { inTime } from '../lib/patience.ts';
import { backoffMs, pause } from './backoff.ts';
import { type BusLog, BusUnavailableError, type OutgoingMessage } from './event-bus.ts';
import { connected, KAFKA_RETRY, type KafkaConnection, kafkaClient } from './kafka-client.ts';
import { encodePlainMessages } from './kafka-encoding.ts';
import { partitionOf } from './kafka-partition.ts';
import { PlainMessage } from './kafka-record-batch.ts';

const HEALTH_TIMEOUT_MS = 2_000;
/** Half of the usual deadline: what a slow broker acknowledges is heard, and where a reply is lost there is another attempt. */
const REQUEST_TIMEOUT_MS = 2_000;
const MAX_PAUSE_MS = 500;
const UNKNOWN_TOPIC_ATTEMPTS = 3;

/**
 * Sends with acks=all, without idempotence: after a lost reply the idempotent producer of kafkajs reuses a sequence
 * number and loses a message in silence; a repeat is harmless.
 */
export class KafkaProducer {
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
      await pause(Math.min(backoffMs(attempt), MAX_PAUSE_MS), this.#stopping.signal);
    }
  }

  /**
   * Connects unless it has before: the first message of a process is not to wait for that, and who cannot send is not well.
   * @throws BusUnavailableError when no broker lets it within 2 s.
   */
  async checkHealth(): Promise<void> {
    try {
      await inTime(this.#producer(), HEALTH_TIMEOUT_MS);
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

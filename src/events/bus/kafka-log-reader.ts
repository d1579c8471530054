import { randomUUID } from 'node:crypto';
import type { Admin, Consumer, EachBatchPayload, Kafka } from 'kafkajs';
import {
  type BusLog,
  BusUnavailableError,
  type LogReader,
  MAX_BATCH_MESSAGES,
  type PartitionSpan,
  type ReadOptions,
  type Within,
} from './event-bus.ts';
import { oldestSecondsOf } from './kafka-admin.ts';
import { consume, incomingMessage, KAFKA_RETRY, type KafkaConnection, kafkaClient } from './kafka-client.ts';

const REQUEST_TIMEOUT_MS = 5_000;
/**
 * The session timeout of the reader's consumer group, in milliseconds. It is longer than any handler takes: the group
 * has one member, so no other waits for its partitions.
 */
const SESSION_TIMEOUT_MS = 60_000;
const REBALANCE_TIMEOUT_MS = 10_000;
const MAX_WAIT_MS = 500;
const STALL_MS = 60_000;

/**
 * Reads the messages that the topics of a Kafka cluster retain. Each read uses a temporary consumer group that commits
 * no offsets.
 */
export class KafkaLogReader implements LogReader {
  readonly #connection: KafkaConnection;
  readonly #log: BusLog;

  constructor(connection: KafkaConnection, log: BusLog) {
    this.#connection = connection;
    this.#log = log;
  }

  async spans(topic: string, within: Within): Promise<PartitionSpan[]> {
    const name = this.#connection.topicPrefix + topic;
    const kafka = await this.#kafka();
    const spans = await withAdmin(kafka, async (admin) => {
      const partitionOffsets = await admin.fetchTopicOffsets(name);
      if ('after' in within) {
        return partitionOffsets.map(({ partition, low, high }) =>
          unreadSpan(partition, [BigInt(low), BigInt(high)], within.after),
        );
      }
      const [from, to] = await Promise.all(
        // Negative timestamps have a special meaning in Kafka's protocol.
        [within.fromMs, within.toMs].map((ms) => admin.fetchTopicOffsetsByTimestamp(name, Math.max(0, ms))),
      );
      const offsetOf = (all: typeof from, at: number) =>
        BigInt(all?.find(({ partition }) => partition === at)?.offset ?? 0);
      return partitionOffsets.map(({ partition }) => ({
        partition,
        first: offsetOf(from, partition),
        end: offsetOf(to, partition),
      }));
    });
    return spans
      .filter(({ first, end }) => first < end)
      .map((span) => ({ ...span, count: Number(span.end - span.first) }));
  }

  async oldestSeconds(topic: string, spans: readonly PartitionSpan[]): Promise<number> {
    if (spans.length === 0) return 0;
    const name = this.#connection.topicPrefix + topic;
    return withAdmin(await this.#kafka(), (admin) => oldestSecondsOf(admin, name, spans));
  }

  async read(options: ReadOptions): Promise<void> {
    if (options.spans.length === 0 || options.signal.aborted) return;
    const { topicPrefix } = this.#connection;
    const groupId = `${topicPrefix}portcullis.replay.${randomUUID()}`;
    const kafka = await this.#kafka();
    const consumer = kafka.consumer({
      groupId,
      sessionTimeout: SESSION_TIMEOUT_MS,
      rebalanceTimeout: REBALANCE_TIMEOUT_MS,
      maxWaitTimeInMs: MAX_WAIT_MS,
      allowAutoTopicCreation: false,
      retry: {
        ...KAFKA_RETRY, // The broker that coordinates the group is still reading its groups, as each does after its start.
        restartOnFailure: async (error) => 'type' in error && error.type === 'GROUP_LOAD_IN_PROGRESS',
      },
    });
    // A group that could not be deleted is harmless, and the brokers remove it in time.
    const leave = () => withAdmin(kafka, (admin) => admin.deleteGroups([groupId])).catch(() => undefined);
    await new Reading(consumer, topicPrefix, options).run().finally(leave);
  }

  #kafka(): Promise<Kafka> {
    return kafkaClient(this.#connection, REQUEST_TIMEOUT_MS, this.#log);
  }
}

/** Reads the spans of one topic with one consumer. */
class Reading {
  readonly #consumer: Consumer;
  readonly #name: string;
  readonly #options: ReadOptions;
  /** The remaining range of offsets of each partition; a partition that is done is removed. */
  readonly #left: Map<number, { next: bigint; end: bigint }>;
  /** Aborted when all is read, or when the reading fails. */
  readonly #ended = new AbortController();
  #failure: unknown;
  #stall: NodeJS.Timeout | undefined;

  constructor(consumer: Consumer, topicPrefix: string, options: ReadOptions) {
    this.#consumer = consumer;
    this.#name = topicPrefix + options.topic;
    this.#options = options;
    this.#left = new Map(options.spans.map(({ partition, first, end }) => [partition, { next: first, end }]));
  }

  async run(): Promise<void> {
    this.#stall = setTimeout(() => this.#fail(new BusUnavailableError('the log reader has stopped')), STALL_MS);
    await consume(this.#consumer, {
      topics: [this.#name],
      signal: AbortSignal.any([this.#options.signal, this.#ended.signal]),
      onJoin: () => this.#seek(),
      eachBatch: (payload) => this.#eachBatch(payload),
    }).finally(() => clearTimeout(this.#stall));
    if (this.#failure !== undefined) throw this.#failure;
  }

  #fail(error: unknown): void {
    this.#failure ??= error;
    this.#ended.abort();
  }

  /** Starts each partition at its next offset, at each join of the group. */
  #seek(): void {
    for (const [partition, { next }] of this.#left) {
      this.#consumer.seek({ topic: this.#name, partition, offset: String(next) });
    }
  }

  async #eachBatch({ batch, resolveOffset, pause }: EachBatchPayload): Promise<void> {
    const { topic, handle, signal } = this.#options;
    const left = this.#left.get(batch.partition);
    if (!left) {
      pause();
      return;
    }
    const inRange = batch.messages.filter(({ offset }) => BigInt(offset) >= left.next && BigInt(offset) < left.end);
    try {
      for (let start = 0; start < inRange.length && !signal.aborted; start += MAX_BATCH_MESSAGES) {
        const part = inRange.slice(start, start + MAX_BATCH_MESSAGES);
        await handle(part.map((message) => incomingMessage(topic, batch.partition, message)));
        left.next = BigInt(part.at(-1)?.offset ?? left.next) + 1n;
        this.#stall?.refresh();
      }
    } catch (error) {
      pause();
      this.#fail(error);
      return;
    }
    if (signal.aborted) return;
    resolveOffset(batch.lastOffset());
    if (BigInt(batch.lastOffset()) < left.end - 1n) return;
    this.#left.delete(batch.partition);
    pause();
    if (this.#left.size === 0) this.#ended.abort();
  }
}

/**
 * Returns the range of a partition's offsets after the last one that was read; all that the partition has where the
 * topic was created again since.
 */
function unreadSpan(partition: number, [low, high]: [bigint, bigint], after: ReadonlyMap<number, bigint>) {
  const last = after.get(partition);
  const first = last === undefined || last < low || last >= high ? low : last + 1n;
  return { partition, first, end: high };
}

async function withAdmin<Result>(kafka: Kafka, work: (admin: Admin) => Promise<Result>): Promise<Result> {
  const admin = kafka.admin();
  await admin.connect();
  return work(admin).finally(() => admin.disconnect());
}

import { setTimeout } from 'node:timers/promises';
import type { Admin, ITopicMetadata } from 'kafkajs';
import { causes } from '../../lib/causes.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import { backoffMs } from '../../lib/work-loop.ts';
import {
  type BusLog,
  BusUnavailableError,
  type ConsumerLag,
  type GroupLag,
  HEALTH_TIMEOUT_MS,
  isDeadLetterTopic,
  RETENTION_DAYS,
} from './event-bus.ts';
import { type KafkaConnection, kafkaClient, LazyClient } from './kafka-client.ts';
import { ALL_TOPICS, isCompactedTopic, TOPICS } from './topics.ts';

const REQUEST_TIMEOUT_MS = 1_500;
const CREATION_TIMEOUT_MS = 30_000;
/** The number of partitions of each topic that Portcullis creates. */
export const PARTITIONS = 12;
const MAX_REPLICATION = 3;
/** The maximum size of a dead letter: twice that of a message, unless a broker or a topic has another. */
export const MAX_LETTER_BYTES = 2 * 1024 * 1024;
/** How the name of each consumer group of the product begins, after the installation's prefix. */
const GROUP_PREFIX = 'portcullis.';
export const DAY_MS = 24 * 60 * 60 * 1_000;

/**
 * Creates topics, checks the health of the cluster and reads consumer lag, over one connection that is opened on first
 * use.
 */
export class KafkaAdmin {
  readonly #connection: KafkaConnection;
  readonly #log: BusLog;
  readonly #admin = new LazyClient(async () =>
    (await kafkaClient(this.#connection, REQUEST_TIMEOUT_MS, this.#log)).admin(),
  );
  #probe: Promise<unknown> | undefined;

  constructor(connection: KafkaConnection, log: BusLog) {
    this.#connection = connection;
    this.#log = log;
  }

  /** Creates the topics that do not exist, with one replica for each broker, at most 3. */
  async ensureTopics(topics: readonly string[]): Promise<void> {
    const missing = await this.missingTopics(topics);
    if (missing.length > 0) await this.#withAdmin((admin) => onceLed(() => this.#create(admin, missing)));
  }

  async #create(admin: Admin, missing: readonly string[]): Promise<void> {
    const { brokers } = await admin.describeCluster();
    const replicationFactor = Math.min(MAX_REPLICATION, brokers.length);
    await admin.createTopics({
      waitForLeaders: false,
      topics: missing.map((topic) => ({
        topic: this.#connection.topicPrefix + topic,
        numPartitions: PARTITIONS,
        replicationFactor,
        configEntries: [
          isCompactedTopic(topic)
            ? { name: 'cleanup.policy', value: 'compact' }
            : // The seals of the audit, in a topic that the operator names, are kept for ever.
              { name: 'retention.ms', value: String(ALL_TOPICS.includes(topic) ? retentionDays(topic) * DAY_MS : -1) },
          // A dead letter is longer than its message, by its headers.
          ...(isDeadLetterTopic(topic) ? [{ name: 'max.message.bytes', value: String(MAX_LETTER_BYTES) }] : []),
          // Brokers decompress what other producers send: kafkajs reads neither Snappy nor LZ4.
          { name: 'compression.type', value: 'uncompressed' },
          // With fewer than two in-sync replicas, an acknowledged message could be lost with one broker.
          { name: 'min.insync.replicas', value: String(Math.min(2, replicationFactor)) },
        ],
      })),
    });
    for (const topic of missing) await admin.fetchTopicOffsets(this.#connection.topicPrefix + topic);
  }

  async missingTopics(topics: readonly string[], partitions = 1): Promise<string[]> {
    const names = topics.map((topic) => this.#connection.topicPrefix + topic);
    const existing = await this.#withAdmin(async (admin) =>
      admin.fetchTopicMetadata().then(
        (all) => all.topics,
        // kafkajs rejects the list when any topic of the cluster, of whatever owner, has a partition without a leader.
        async () => (await Promise.all(names.map((name) => metadataOf(admin, name)))).flat(),
      ),
    );
    const enough = new Set(existing.flatMap((topic) => (topic.partitions.length < partitions ? [] : topic.name)));
    return topics.filter((_, index) => !enough.has(names[index] ?? ''));
  }

  /**
   * Checks whether a broker responds. Overlapping calls share one probe.
   * @throws BusUnavailableError when none responds within 2 s.
   */
  async checkHealth(): Promise<void> {
    // Asks for a topic of the product: a list of all would fail with any topic of the cluster that has no leader.
    const describe = (admin: Admin) => metadataOf(admin, this.#connection.topicPrefix + TOPICS.admin);
    this.#probe ??= this.#withAdmin(describe).finally(() => {
      this.#probe = undefined;
    });
    try {
      await withTimeout(this.#probe, HEALTH_TIMEOUT_MS);
    } catch (error) {
      throw new BusUnavailableError('the brokers do not respond', { cause: error });
    }
  }

  /** Returns the lag of each group by the offsets that it has committed. */
  lag(groups: ReadonlyMap<string, readonly string[]>): Promise<ConsumerLag[]> {
    return this.#withAdmin(async (admin) => {
      const lags = Array.from(groups, async ([groupId, topics]) => {
        const committed = await admin.fetchOffsets({
          groupId: this.#connection.topicPrefix + groupId,
          topics: topics.map((topic) => this.#connection.topicPrefix + topic),
        });
        return Promise.all(
          committed.map(async ({ topic, partitions }) => {
            const offsets = new Map(partitions.map(({ partition, offset }) => [partition, BigInt(offset)]));
            const spans = (await admin.fetchTopicOffsets(topic)).map(({ partition, high, low }) => {
              const at = offsets.get(partition) ?? -1n;
              const first = at < BigInt(low) ? BigInt(low) : at;
              return { partition, first, count: Math.max(0, Number(BigInt(high) - first)) };
            });
            const messages = spans.reduce((sum, { count }) => sum + count, 0);
            const oldestSeconds = messages === 0 ? 0 : await oldestSecondsOf(admin, topic, spans);
            return { groupId, topic: topic.slice(this.#connection.topicPrefix.length), messages, oldestSeconds };
          }),
        );
      });
      return (await Promise.all(lags)).flat();
    });
  }

  /**
   * Moves every consumer group of the installation back to the messages of `sinceMs` or later, and returns how many
   * each will read again; a partition that has committed no more stays.
   * @throws BusUnavailableError while a group has members, before anything is moved.
   */
  rewind(sinceMs: number): Promise<GroupLag[]> {
    return this.#withAdmin(async (admin) => {
      const { topicPrefix } = this.#connection;
      const groupIds = (await admin.listGroups()).groups.map(({ groupId }) => groupId);
      const ids = groupIds.filter((id) => id.startsWith(`${topicPrefix}${GROUP_PREFIX}`));
      const busy = (await admin.describeGroups(ids)).groups.filter(({ members }) => members.length > 0);
      if (busy.length > 0) {
        throw new BusUnavailableError(`consumers are running in ${busy.map(({ groupId }) => groupId).join(', ')}`);
      }
      const moved: GroupLag[] = [];
      for (const groupId of ids) {
        for (const { topic, partitions } of await admin.fetchOffsets({ groupId })) {
          const committed = new Map(partitions.map(({ partition, offset }) => [partition, BigInt(offset)]));
          const behind = (at: { partition: number; offset: string }) =>
            Math.max(0, Number((committed.get(at.partition) ?? 0n) - BigInt(at.offset)));
          const back = (await admin.fetchTopicOffsetsByTimestamp(topic, sinceMs)).filter((at) => behind(at) > 0);
          if (back.length > 0) await admin.setOffsets({ groupId, topic, partitions: back });
          moved.push({
            groupId: groupId.slice(topicPrefix.length),
            topic: topic.slice(topicPrefix.length),
            messages: back.reduce((sum, at) => sum + behind(at), 0),
          });
        }
      }
      return moved;
    });
  }

  async stop(): Promise<void> {
    await this.#probe?.catch(() => undefined);
    await this.#admin.stop();
  }

  /**
   * Runs `work` with the connected admin client. After a failure the next call opens a new connection, because an admin
   * client of kafkajs does not recover from a broker's restart.
   */
  async #withAdmin<Result>(work: (admin: Admin) => Promise<Result>): Promise<Result> {
    const admin = this.#admin.get();
    try {
      return await work(await admin);
    } catch (error) {
      await this.#admin.drop(admin);
      throw error;
    }
  }
}

/** Returns the metadata of a topic, in a list; an empty one if it does not exist. */
async function metadataOf(admin: Admin, name: string): Promise<ITopicMetadata[]> {
  try {
    return (await admin.fetchTopicMetadata({ topics: [name] })).topics;
  } catch (error) {
    if (causes(error).some((cause) => 'type' in cause && cause.type === 'UNKNOWN_TOPIC_OR_PARTITION')) return [];
    throw error;
  }
}

/**
 * Runs `work`, and again until it succeeds: the brokers take some time to elect the leaders of new topics.
 * @throws the last error after 30 s.
 */
async function onceLed(work: () => Promise<void>): Promise<void> {
  const giveUpAt = performance.now() + CREATION_TIMEOUT_MS;
  for (let failures = 1; ; failures += 1) {
    try {
      return await work();
    } catch (error) {
      if (performance.now() > giveUpAt) throw error;
    }
    await setTimeout(backoffMs(failures));
  }
}

const [MIN_AGE_MS, MAX_AGE_MS] = [1_000, 400 * DAY_MS];
/** How exactly an age is found: each question to the brokers halves the logarithm of the range that is left. */
const AGE_PRECISION = 1.02;

/**
 * Returns the age in seconds of the oldest message from these offsets on, to 2 %, without reading a message. There must
 * be such a message.
 */
export async function oldestSecondsOf(
  admin: Pick<Admin, 'fetchTopicOffsetsByTimestamp'>,
  topic: string,
  from: readonly { partition: number; first: bigint }[],
): Promise<number> {
  const nowMs = Date.now();
  let [younger, older] = [MIN_AGE_MS, MAX_AGE_MS];
  while (older / younger > AGE_PRECISION) {
    const ageMs = Math.sqrt(younger * older);
    const firstSince = await admin.fetchTopicOffsetsByTimestamp(topic, Math.floor(nowMs - ageMs));
    const offsets = new Map(firstSince.map(({ partition, offset }) => [partition, BigInt(offset)]));
    if (from.some(({ partition, first }) => first < (offsets.get(partition) ?? 0n))) younger = ageMs;
    else older = ageMs;
  }
  return older / 1_000;
}

/** Returns the retention of a topic that is not compacted, in days. */
export function retentionDays(topic: string): number {
  return RETENTION_DAYS[isDeadLetterTopic(topic) ? 'deadLetters' : 'messages'];
}

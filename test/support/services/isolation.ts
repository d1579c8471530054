import { randomBytes, randomInt } from 'node:crypto';
import { Kafka, logLevel } from 'kafkajs';
import { RedisClient } from 'redis';
import { vi } from 'vitest';
import type { KafkaConnection } from '../../../src/events/bus/kafka-client.ts';
import { dropDatabase, withPostgres } from './pg-client.ts';
import { serviceAddress } from './real.ts';

const REDIS_LEASE_SECONDS = 3_600;

export interface FreshDatabase extends AsyncDisposable {
  url: string;
  /** Drops the database, connections to it included. */
  drop(): Promise<void>;
}

export interface FreshRedis extends AsyncDisposable {
  url: string;
  /** Empties the database and gives it back. */
  release(): Promise<void>;
}

/** A new, empty database on the provisioned PostgreSQL. */
export async function freshDatabase(): Promise<FreshDatabase> {
  const server = serviceAddress('postgres');
  const name = `t_${randomBytes(8).toString('hex')}`;
  await withPostgres(server, (client) => client.query(`create database ${name} template template0`));
  const url = new URL(server);
  url.pathname = `/${name}`;
  const drop = () => dropDatabase(server, name);
  return { url: url.href, drop, [Symbol.asyncDispose]: drop };
}

/**
 * An empty logical database on the provisioned Redis that no other suite has until `release`. Keys are apart;
 * channels of publish and subscribe are not: Redis shares them between its databases.
 */
export async function freshRedis(): Promise<FreshRedis> {
  const server = new URL(serviceAddress('redis'));
  server.pathname = '/0';
  await using registry = await connectedRedis(server.href);
  const { databases = '16' } = await registry.client.configGet('databases');
  const count = Number(databases) - 1;
  const first = randomInt(count);
  for (let step = 0; step < count; step += 1) {
    const database = 1 + ((first + step) % count);
    const lease = `portcullis-test:database:${database}`;
    const condition = { condition: 'NX', expiration: { type: 'EX', value: REDIS_LEASE_SECONDS } } as const;
    if ((await registry.client.set(lease, 'taken', condition)) === null) continue;
    const url = new URL(server);
    url.pathname = `/${database}`;
    await flush(url.href);
    const release = async () => {
      await flush(url.href);
      await using connection = await connectedRedis(server.href);
      await connection.client.del(lease);
    };
    return { url: url.href, release, [Symbol.asyncDispose]: release };
  }
  throw new Error(`all ${count} databases of Redis are taken by suites`);
}

/** A prefix for the names of topics and consumer groups that no other suite has. */
export function topicPrefix(): string {
  return `t-${randomBytes(6).toString('hex')}-`;
}

/** How a bus reaches the provisioned Kafka, or other brokers, with topics and consumer groups of a prefix. */
export function kafkaConnection(prefix: string, brokers = serviceAddress('kafka')): KafkaConnection {
  return { brokers: brokers.split(','), ssl: false, sasl: undefined, topicPrefix: prefix, clientId: 'test' };
}

/**
 * Creates topics of a prefix, by default with two partitions each, enough for keys to part, and waits for their leaders: what an
 * instance creates itself has twelve, and a suite's instances would keep the broker busy with that alone.
 */
export async function createTopics(
  brokers: string,
  prefix: string,
  topics: readonly string[],
  numPartitions = 2,
): Promise<void> {
  const admin = new Kafka({ brokers: brokers.split(','), logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  try {
    await admin.createTopics({
      waitForLeaders: false,
      topics: topics.map((topic) => ({ topic: prefix + topic, numPartitions, replicationFactor: 1 })),
    });
    for (const topic of topics) {
      await vi.waitFor(() => admin.fetchTopicOffsets(prefix + topic), { timeout: 15_000 });
    }
  } finally {
    await admin.disconnect();
  }
}

/** Deletes the topics of a prefix: a broker with one Java heap cannot keep those of every suite. */
export async function deleteTopics(brokers: string, prefix: string): Promise<void> {
  const admin = new Kafka({ brokers: brokers.split(','), logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  try {
    const topics = (await admin.listTopics()).filter((topic) => topic.startsWith(prefix));
    if (topics.length > 0) await admin.deleteTopics({ topics });
  } finally {
    await admin.disconnect();
  }
}

async function flush(url: string): Promise<void> {
  await using connection = await connectedRedis(url);
  await connection.client.flushDb();
}

async function connectedRedis(url: string) {
  const client = RedisClient.factory({})({ url, socket: { connectTimeout: 5_000, reconnectStrategy: false } });
  client.on('error', () => undefined);
  await client.connect();
  return { client, [Symbol.asyncDispose]: () => client.close() };
}

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Kafka, logLevel } from 'kafkajs';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { temporaryFolder } from '../support/services/folders.ts';
import { freshDatabase, freshRedis, topicPrefix } from '../support/services/isolation.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { provision } from '../support/services/provision.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';

async function accepts(address: string): Promise<boolean> {
  const { hostname, port } = new URL(address.includes('://') ? address : `kafka://${address}`);
  const socket = connect(Number(port), hostname);
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** `npm run services` for the servers that this run started itself, with its data under `folder`. */
async function startServices(
  folder: string,
  started = inject('startedServices'),
): Promise<{ parent: ChildProcess; addresses: string[] }> {
  const elsewhere = { DATABASE_URL: 'postgresql://x/y', REDIS_URL: 'redis://x', KAFKA_BROKERS: 'x:1', CI: '' };
  const variables = { postgres: 'DATABASE_URL', redis: 'REDIS_URL', kafka: 'KAFKA_BROKERS' } as const;
  const names = started.map((service) => variables[service]);
  const env = { ...process.env, ...elsewhere, TMPDIR: folder, ...Object.fromEntries(names.map((name) => [name, ''])) };
  const parent = spawn(process.execPath, [join(import.meta.dirname, '../support/services/run.ts')], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const printed = new Map<string, string>();
  for await (const line of createInterface({ input: parent.stdout })) {
    const [, name = '', value = ''] = /^export (\w+)=(.+)$/.exec(line) ?? [];
    printed.set(name, value);
    if (printed.size === 3) break;
  }
  return { parent, addresses: names.map((name) => printed.get(name) ?? '') };
}

describeReal('postgres', 'PostgreSQL in tests', () => {
  it('answers, with fsync on', async () => {
    const rows = await withPostgres(serviceAddress('postgres'), async (client) => {
      const one = await client.query('select 1 as one');
      const fsync = await client.query('show fsync');
      return [...one.rows, ...fsync.rows];
    });
    expect(rows).toEqual([{ one: 1 }, { fsync: 'on' }]);
  });

  it('gives each suite a database of its own, and drops it', async () => {
    await using first = await freshDatabase();
    await using second = await freshDatabase();
    await withPostgres(first.url, (client) => client.query('create table only_here (id int)'));
    const tables = await withPostgres(second.url, (client) => client.query("select to_regclass('only_here') as found"));
    expect(tables.rows).toEqual([{ found: null }]);
    await second.drop();
    await expect(withPostgres(second.url, (client) => client.query('select 1'))).rejects.toThrow('does not exist');
  });
});

describeReal('redis', 'Redis in tests', () => {
  it('answers PING', async () => {
    const client = await createClient({ url: serviceAddress('redis') }).connect();
    expect(await client.ping()).toBe('PONG');
    client.destroy();
  });

  it('gives each suite a database of its own, empty', async () => {
    await using first = await freshRedis();
    await using second = await freshRedis();
    const [one, two] = await Promise.all([first.url, second.url].map((url) => createClient({ url }).connect()));
    await one?.set('only', 'here');
    expect(await two?.get('only')).toBeNull();
    one?.destroy();
    two?.destroy();
  });
});

describeReal('kafka', 'Kafka in tests', () => {
  it('creates a topic, acknowledges a message from all replicas and delivers it', async () => {
    const kafka = new Kafka({ brokers: serviceAddress('kafka').split(','), logLevel: logLevel.NOTHING });
    const topic = `${topicPrefix()}greetings`;
    const admin = kafka.admin();
    const producer = kafka.producer({ allowAutoTopicCreation: false });
    const consumer = kafka.consumer({ groupId: `${topic}-readers`, maxWaitTimeInMs: 100 });
    await Promise.all([admin.connect(), producer.connect(), consumer.connect()]);
    // kafkajs's own waiting for leaders fails where the broker has not yet heard of the topic.
    await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 1 }], waitForLeaders: false });
    await vi.waitFor(() => admin.fetchTopicOffsets(topic));
    const sent = await producer.send({ topic, acks: -1, messages: [{ key: 'a', value: 'hello' }] });
    expect(sent).toMatchObject([{ errorCode: 0, partition: 0 }]);
    const received = Promise.withResolvers<string | undefined>();
    await consumer.subscribe({ topic, fromBeginning: true });
    await consumer.run({ eachMessage: async ({ message }) => received.resolve(message.value?.toString()) });
    expect(await received.promise).toBe('hello');
    await admin.deleteTopics({ topics: [topic] });
    await Promise.all([admin.disconnect(), producer.disconnect(), consumer.disconnect()]);
  });
});

describe('provisioning', () => {
  let folder = '';
  beforeAll(async () => {
    folder = await temporaryFolder();
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('leaves the servers alone that the environment names, and starts none in their place', async () => {
    const given = { DATABASE_URL: 'postgresql://x/y', REDIS_URL: 'redis://x', KAFKA_BROKERS: 'a:1,b:2' };
    const services = await provision(given);
    expect(services).toMatchObject({ databaseUrl: 'postgresql://x/y', redisUrl: 'redis://x', kafkaBrokers: 'a:1,b:2' });
    expect(services.missing).toEqual([]);
    await services.stop();
  });

  it('reports what is missing by name with the reason, and fails on it with CI=true', async () => {
    const environment = { DATABASE_URL: 'postgresql://x/y', REDIS_URL: 'redis://x', TEST_SERVICES: '' };
    const services = await provision(environment);
    expect(services.missing).toEqual([{ name: 'kafka', reason: 'left out by TEST_SERVICES' }]);
    await services.stop();
    await expect(provision({ ...environment, CI: 'true' })).rejects.toThrow('- kafka (KAFKA_BROKERS): left out');
  });

  it('looks for a browser only for one who will open pages: the one of CHROMIUM, or else it is missing as a server is', async () => {
    const servers = { DATABASE_URL: 'postgresql://x/y', REDIS_URL: 'redis://x', KAFKA_BROKERS: 'a:1' };
    const environment = { ...servers, TEST_SERVICES: '' };
    const unasked = await provision(environment);
    expect(unasked).toMatchObject({ chromium: undefined, missing: [] });
    const named = await provision({ ...environment, CHROMIUM: '/a/browser' }, { browser: true });
    expect(named).toMatchObject({ chromium: '/a/browser', started: [], missing: [] });
    const lacking = await provision(environment, { browser: true });
    expect(lacking.missing).toEqual([{ name: 'chromium', reason: 'left out by TEST_SERVICES' }]);
    await Promise.all([unasked, named, lacking].map((services) => services.stop()));
    const inCi = provision({ ...environment, CI: 'true' }, { browser: true });
    await expect(inCi).rejects.toThrow('- chromium (CHROMIUM): left out');
  });

  it('looks for Prometheus only for one who will run the alerts: that of PROMETHEUS, or else it is missing as a server is', async () => {
    const servers = { DATABASE_URL: 'postgresql://x/y', REDIS_URL: 'redis://x', KAFKA_BROKERS: 'a:1' };
    const named = await provision({ ...servers, PROMETHEUS: '/a/prometheus' }, { prometheus: true });
    expect(named).toMatchObject({ prometheus: '/a/prometheus', chromium: undefined, started: [], missing: [] });
    const lacking = await provision({ ...servers, TEST_SERVICES: '' }, { prometheus: true });
    expect(lacking.missing).toEqual([{ name: 'prometheus', reason: 'left out by TEST_SERVICES' }]);
    await Promise.all([named, lacking].map((services) => services.stop()));
    const inCi = provision({ ...servers, TEST_SERVICES: '', CI: 'true' }, { prometheus: true });
    await expect(inCi).rejects.toThrow('- prometheus (PROMETHEUS): left out');
  });

  it('looks for Python only for one who will run its client: that of MCP_PYTHON, or else it is missing as a server is', async () => {
    const servers = { DATABASE_URL: 'postgresql://x/y', REDIS_URL: 'redis://x', KAFKA_BROKERS: 'a:1' };
    const named = await provision({ ...servers, MCP_PYTHON: '/a/python' }, { python: true });
    expect(named).toMatchObject({ python: '/a/python', chromium: undefined, started: [], missing: [] });
    const lacking = await provision({ ...servers, TEST_SERVICES: '' }, { python: true });
    expect(lacking.missing).toEqual([{ name: 'python', reason: 'left out by TEST_SERVICES' }]);
    await Promise.all([named, lacking].map((services) => services.stop()));
    const inCi = provision({ ...servers, TEST_SERVICES: '', CI: 'true' }, { python: true });
    await expect(inCi).rejects.toThrow('- python (MCP_PYTHON): left out');
  });

  it('SIGTERM stops the servers before the process ends, and removes their data', async () => {
    const { parent, addresses } = await startServices(folder);
    for (const address of addresses) expect(await accepts(address)).toBe(true);
    parent.kill('SIGTERM');
    expect(await once(parent, 'exit')).toEqual([0, null]);
    for (const address of addresses) expect(await accepts(address)).toBe(false);
    expect(await readdir(folder)).toEqual([]);
  });

  it('SIGKILL leaves neither a server nor data behind', async () => {
    // Kafka, which takes the longest to start, is watched over as Redis is.
    const started = inject('startedServices').filter((name) => inject('isThorough') || name !== 'kafka');
    const { parent, addresses } = await startServices(folder, started);
    for (const address of addresses) expect(await accepts(address)).toBe(true);
    parent.kill('SIGKILL');
    await vi.waitFor(async () => expect(await readdir(folder)).toEqual([]));
    for (const address of addresses) expect(await accepts(address)).toBe(false);
  });
});

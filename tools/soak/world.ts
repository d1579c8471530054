import { randomBytes, randomUUID } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Admin, Kafka, logLevel } from 'kafkajs';
import type { Demo } from '../../src/app/demo/demo.ts';
import { ALL_TOPICS } from '../../src/events/bus/topics.ts';
import { startAnvil, whyNoAnvil } from '../../test/support/gas-fee/anvil.ts';
import { fakeNode } from '../../test/support/gas-fee/node.ts';
import { temporaryFolder } from '../../test/support/services/folders.ts';
import { withPostgres } from '../../test/support/services/pg-client.ts';
import { describeMissing, provision } from '../../test/support/services/provision.ts';
import { type Running, runCli, startInstance, type Variables } from '../../test/support/start/process.ts';

const PARTITIONS = 3;
const LEADER_TIMES = 50;
const LEADER_MS = 200;
/** Collects all garbage on a signal, so that memory is what is held, not what has not been collected yet. */
const COLLECTING = ['--expose-gc', '--import', "data:text/javascript,process.on('SIGUSR2',()=>{gc();gc()})"];

/** An instance in a process of its own, on real servers, and what is known of it. */
export interface World extends AsyncDisposable {
  instance: Running;
  demo: Demo & { webhook: { username: string; password: string } };
  env: Variables & { DATABASE_URL: string };
  kafka: Kafka;
  spool: string;
}

/** Starts servers (those that the environment names stay as they are), seeds the demo and starts an instance, as an operator would. */
export async function startWorld(): Promise<World> {
  const stack = new AsyncDisposableStack();
  try {
    const services = await provision();
    stack.defer(services.stop);
    const { databaseUrl, redisUrl, kafkaBrokers, missing } = services;
    if (databaseUrl === undefined || redisUrl === undefined || kafkaBrokers === undefined)
      throw new Error(`servers cannot be had:\n${describeMissing(missing)}`);
    const name = `soak_${randomBytes(6).toString('hex')}`;
    const folder = await temporaryFolder();
    stack.defer(() => rm(folder, { recursive: true, force: true }));
    const env = {
      DATA_DIR: folder,
      AUDIT_SPOOL_DIR: join(folder, 'spool'),
      DATABASE_URL: await database(databaseUrl, name, stack),
      REDIS_URL: redisUrl,
      KAFKA_BROKERS: kafkaBrokers,
      TOPIC_PREFIX: `${name}-`,
      GAS_RPC_URLS: await gasNodes(stack),
    };
    const kafka = new Kafka({ brokers: kafkaBrokers.split(','), logLevel: logLevel.NOTHING });
    await topics(kafka, env.TOPIC_PREFIX, stack);
    for (const command of ['migrate', 'seed']) {
      const { code, stderr } = await runCli([command], env);
      if (code !== 0) throw new Error(`portcullis ${command} ended with ${code}: ${stderr}`);
    }
    const instance = stack.use(await startInstance(env, COLLECTING));
    const written = JSON.parse(await readFile(join(folder, 'demo.json'), 'utf8'));
    const dispose = () => stack.disposeAsync();
    return { instance, demo: written, env, kafka, spool: env.AUDIT_SPOOL_DIR, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function database(server: string, name: string, stack: AsyncDisposableStack): Promise<string> {
  await withPostgres(server, (client) => client.query(`create database ${name} template template0`));
  stack.defer(async () => {
    await withPostgres(server, (client) => client.query(`drop database if exists ${name} with (force)`));
  });
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

/** Fewer partitions than `migrate` makes: the broker has one small heap for all of them. */
async function topics(kafka: Kafka, prefix: string, stack: AsyncDisposableStack): Promise<void> {
  const admin = kafka.admin();
  await admin.connect();
  stack.defer(async () => {
    const made = (await admin.listTopics()).filter((topic) => topic.startsWith(prefix));
    if (made.length > 0) await admin.deleteTopics({ topics: made });
    await admin.disconnect();
  });
  const names = ALL_TOPICS.map((topic) => prefix + topic);
  const made = names.map((topic) => ({ topic, numPartitions: PARTITIONS, replicationFactor: 1 }));
  await admin.createTopics({ waitForLeaders: false, topics: made });
  for (const name of names) await untilLed(admin, name);
}

/** A topic that was made just now has no leader yet. */
async function untilLed(admin: Admin, topic: string): Promise<void> {
  for (let time = 1; ; time += 1) {
    try {
      await admin.fetchTopicOffsets(topic);
      return;
    } catch (error) {
      if (time === LEADER_TIMES) throw error;
      await delay(LEADER_MS);
    }
  }
}

/** Two networks, of real nodes where there are some. */
async function gasNodes(stack: AsyncDisposableStack): Promise<string> {
  const node = () => (whyNoAnvil() === undefined ? startAnvil('--block-time', '2') : fakeNode());
  const nodes = [stack.use(await node()), stack.use(await node())];
  return nodes.map(({ url }) => `${randomUUID()}=${url}`).join(',');
}

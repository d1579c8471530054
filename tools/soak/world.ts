import { randomBytes, randomUUID } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Admin, Kafka, logLevel } from 'kafkajs';
import type { Demo } from '../../src/app/demo/demo.ts';
import { ALL_TOPICS } from '../../src/events/bus/topics.ts';
import { startAnvil, whyNoAnvil } from '../../test/support/gas-fee/anvil.ts';
import { fakeNode } from '../../test/support/gas-fee/node.ts';
import { temporaryFolder } from '../../test/support/services/folders.ts';
import { dropDatabase, withPostgres } from '../../test/support/services/pg-client.ts';
import { provision } from '../../test/support/services/provision.ts';
import { type Running, runCli, startInstance } from '../../test/support/start/process.ts';

const PARTITIONS = 3;
/** Collects all garbage on a signal, so that memory is what is held, not what has not been collected yet. */
const COLLECTING = ['--expose-gc', '--import', "data:text/javascript,process.on('SIGUSR2',()=>{gc();gc()})"];

/** An instance in a process of its own, on real servers, and what is known of it. */
export interface World extends AsyncDisposable {
  instance: Running;
  demo: Demo & { webhook: { username: string; password: string } };
  databaseUrl: string;
  /** Kafka's, with the prefix of the topics. */
  admin: Admin;
  prefix: string;
  spool: string;
}

/** Starts servers (those that the environment names stay as they are), seeds the demo and starts an instance, as an operator would. */
export async function startWorld(): Promise<World> {
  await using stack = new AsyncDisposableStack();
  const { addresses, stop } = await provision({ ...process.env, CI: 'true' });
  stack.defer(stop);
  const { postgres: server = '', redis = '', kafka = '' } = addresses;
  const name = `soak_${randomBytes(6).toString('hex')}`;
  const [prefix, folder] = [`${name}-`, await temporaryFolder()];
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const databaseUrl = Object.assign(new URL(server), { pathname: `/${name}` }).href;
  await withPostgres(server, (client) => client.query(`create database ${name} template template0`));
  stack.defer(() => dropDatabase(server, name));
  const admin = new Kafka({ brokers: kafka.split(','), logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  stack.defer(() => admin.disconnect());
  const topics = ALL_TOPICS.map((topic) => prefix + topic);
  // Fewer partitions than `migrate` makes: the broker has one small heap for all of them.
  await admin.createTopics({
    topics: topics.map((topic) => ({ topic, numPartitions: PARTITIONS, replicationFactor: 1 })),
  });
  stack.defer(() => admin.deleteTopics({ topics }));
  const spool = join(folder, 'spool');
  const env = {
    DATA_DIR: folder,
    AUDIT_SPOOL_DIR: spool,
    DATABASE_URL: databaseUrl,
    REDIS_URL: redis,
    KAFKA_BROKERS: kafka,
    TOPIC_PREFIX: prefix,
    GAS_RPC_URLS: await gasNodes(stack),
  };
  for (const command of ['migrate', 'seed']) {
    const { code, stderr } = await runCli([command], env);
    if (code !== 0) throw new Error(`portcullis ${command} ended with ${code}: ${stderr}`);
  }
  const instance = stack.use(await startInstance(env, COLLECTING));
  const demo = JSON.parse(await readFile(join(folder, 'demo.json'), 'utf8'));
  const held = stack.move();
  return { instance, demo, databaseUrl, admin, prefix, spool, [Symbol.asyncDispose]: () => held.disposeAsync() };
}

/** Two networks, of real nodes where there are some. */
async function gasNodes(stack: AsyncDisposableStack): Promise<string> {
  const node = () => (whyNoAnvil() === undefined ? startAnvil('--block-time', '2') : fakeNode());
  const nodes = [stack.use(await node()), stack.use(await node())];
  return nodes.map(({ url }) => `${randomUUID()}=${url}`).join(',');
}

import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type PostgresClient, withPostgres } from '../../test/support/services/pg-client.ts';
import { SIGNING_SECRET } from '../gateway/contenders.ts';
import { STEPS } from '../lib/notifications.ts';
import { cpuMs } from '../lib/process-stats.ts';
import { type ProductOptions, type Server, startProduct } from '../lib/product.ts';
import { runScript } from '../lib/run-script.ts';
import { deleteTopics, migrateWorld } from '../lib/topics.ts';
import { seedWorld, type World } from '../lib/world.ts';
import type { Notifications } from './notifications.ts';
import type { Publishing } from './publish.ts';
import { seedTransactions } from './transactions.ts';

const PUBLISH = join(import.meta.dirname, 'publish.ts');
const APPLIED = 'select coalesce(sum(seq), 0)::float8 as applied from node_event_seq';
const BACKENDS = `select pid from pg_stat_activity
  where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`;
const POLL_MS = 50;
const STALLED_MS = 60_000;

export interface Effort {
  /** Each of both topics has so many, a multiple of the steps of a transaction. */
  notifications: number;
  /** How many transactions are registered. */
  transactions: number;
  /** The share of the notifications that is applied before the clock starts. */
  warmUp: number;
}

export interface Consumed {
  /** Notifications a second; both groups have read each of them, and one of the two has applied it. */
  perSecond: number;
  /** Microseconds of CPU for each notification. */
  productUs: number;
  /** The same of the product's connections to PostgreSQL; undefined where that is in the product's process. */
  postgresUs: number | undefined;
}

/** How far the consumers are, and what PostgreSQL has taken so far. */
interface Progress {
  applied: number;
  postgresMs: number;
}

/** Applies what waits in the topics of Kafka: the tables are filled first, and the worker is started then. */
export async function consumeFromKafka(world: World, effort: Effort): Promise<Consumed> {
  const { DATABASE_URL = '' } = world.servers;
  try {
    const product = await startProduct(await filled(world, effort));
    try {
      return await withPostgres(DATABASE_URL, (client) => applied(queried(client), product, effort));
    } finally {
      await product.stop();
    }
  } finally {
    await deleteTopics(world);
  }
}

/** How to start the product on a world whose transactions are registered and whose notifications wait. */
export async function filled(world: World, effort: Effort): Promise<ProductOptions> {
  const { notifications, transactions } = effort;
  const of = { notifications, stride: strideOf(effort) };
  await seedWorld(world);
  if (world.stores === 'embedded') {
    await seedTransactions(world, transactions, of);
    return world;
  }
  await seedTransactions(world, transactions);
  await migrateWorld(world);
  await publish(world, of);
  return { ...world, env: { JWT_SECRET_USER: SIGNING_SECRET, PORTCULLIS_ROLE: 'worker' } };
}

async function applied(
  progress: () => Promise<Progress>,
  { pid }: Server,
  { notifications, warmUp }: Effort,
): Promise<Consumed> {
  const first = await until(progress, notifications * warmUp);
  const [from, fromCpu] = [performance.now(), cpuMs(pid)];
  const last = await until(progress, notifications);
  const [elapsedMs, cpu] = [performance.now() - from, cpuMs(pid) - fromCpu];
  const count = last.applied - first.applied;
  return {
    perSecond: (count * 1000) / elapsedMs,
    productUs: (cpu * 1000) / count,
    postgresUs: ((last.postgresMs - first.postgresMs) * 1000) / count,
  };
}

async function until(progress: () => Promise<Progress>, count: number): Promise<Progress> {
  for (let at = await progress(), changedAt = performance.now(); ; ) {
    if (at.applied >= count) return at;
    await delay(POLL_MS);
    const next = await progress();
    if (next.applied > at.applied) changedAt = performance.now();
    at = next;
    if (performance.now() - changedAt > STALLED_MS) throw new Error(`stalled at ${at.applied} of ${count}`);
  }
}

/** Puts notifications into the topics of a world whose topics exist. */
export async function publish({ servers: { KAFKA_BROKERS = '', TOPIC_PREFIX = '' } }: World, of: Notifications) {
  const publishing: Publishing = { ...of, brokers: KAFKA_BROKERS.split(','), topicPrefix: TOPIC_PREFIX };
  await runScript(PUBLISH, publishing);
}

/** Resolves once so many notifications have been applied. */
export function applying({ servers: { DATABASE_URL = '' } }: World, count: number): Promise<Progress> {
  return withPostgres(DATABASE_URL, (client) => until(queried(client), count));
}

/** Every notification adds one event to the log of the demo's node: its length is how far the consumers are. */
function queried(client: PostgresClient): () => Promise<Progress> {
  return async () => {
    const [{ rows: counts }, { rows: others }] = [await client.query(APPLIED), await client.query(BACKENDS)];
    const postgresMs = others.reduce((sum, { pid }) => sum + cpuMs(Number(pid)), 0);
    return { applied: Number(counts[0]?.applied), postgresMs };
  };
}

/** An odd number: of two transactions that follow each other one is of the admin topic and one of the user topic. */
export function strideOf({ notifications, transactions }: Effort): number {
  const stride = Math.floor(transactions / (notifications / STEPS));
  return stride % 2 === 0 ? stride - 1 : stride;
}

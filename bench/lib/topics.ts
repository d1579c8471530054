import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { productEnv, ROOT } from './product.ts';
import type { World } from './world.ts';

const CLI = join(ROOT, 'src/cli/portcullis.ts');

/** Brings the schema up to date and creates the topics, as an operator does it. */
export async function migrateWorld({ dataDir, servers }: World): Promise<void> {
  const env = productEnv({ dataDir, servers });
  const child = spawn(process.execPath, [CLI, 'migrate'], { cwd: ROOT, env, stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`portcullis migrate ended with ${code}`);
}

/** Deletes the topics of a world: a broker that is used again and again would keep them all. */
export async function deleteTopics({ servers: { KAFKA_BROKERS = '', TOPIC_PREFIX = '' } }: World): Promise<void> {
  const admin = new Kafka({ brokers: KAFKA_BROKERS.split(','), logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  try {
    const topics = (await admin.listTopics()).filter((topic) => topic.startsWith(TOPIC_PREFIX));
    if (TOPIC_PREFIX !== '' && topics.length > 0) await admin.deleteTopics({ topics });
  } finally {
    await admin.disconnect();
  }
}

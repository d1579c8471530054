import { createHash } from 'node:crypto';
import { mkdir, readdir, realpath, stat, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { cached } from './cache.ts';
import { findOnPath, runCommand } from './commands.ts';
import { serverProperties } from './kafka-config.ts';
import { maven } from './maven.ts';

const VERSION = '4.4.0';
const OLDEST_JAVA = 17;
const CLUSTER_ID = 'MkU3OEVBNTcwNTJENDM2Qk';

export interface KafkaDistribution {
  java: string;
  classPath: string;
  /** A formatted, empty data folder, to be copied. */
  template: string;
  /** The name in the cache of the class archive for this very Java. */
  archiveName: string;
}

/** Apache Kafka out of the per-user cache, fetched by Maven the first time; throws what is missing to have it. */
export async function kafkaDistribution(): Promise<KafkaDistribution> {
  const java = findOnPath('java');
  if (java === undefined)
    throw new Error(`Apache Kafka ${VERSION} needs Java ${OLDEST_JAVA}, and no java is on the PATH`);
  const name = `kafka-${VERSION}`;
  const folder = await cached(name, (temporary) => fetchKafka(java, temporary));
  const archive = createHash('sha256')
    .update(await identity(java))
    .digest('hex')
    .slice(0, 16);
  return {
    java,
    classPath: await classPathOf(folder),
    template: join(folder, 'template'),
    archiveName: join(name, `${archive}.jsa`),
  };
}

async function fetchKafka(java: string, temporary: string): Promise<string> {
  await requireJava(java);
  const folder = join(temporary, 'kafka');
  const jars = `-DoutputDirectory=${join(folder, 'jars')}`;
  const pom = join(import.meta.dirname, 'kafka-pom.xml');
  const args = ['-f', pom, '-DincludeScope=runtime', jars];
  await maven({ what: `Apache Kafka ${VERSION}`, goal: 'copy-dependencies', args, folder: temporary });
  const template = join(folder, 'template');
  await mkdir(template);
  const properties = join(temporary, 'format.properties');
  await writeFile(
    properties,
    serverProperties(template, { broker: 9092, controller: 9093, advertisedHost: '127.0.0.1', advertised: 9092 }),
  );
  const format = ['kafka.tools.StorageTool', 'format', '-t', CLUSTER_ID, '-c', properties];
  await runCommand(java, ['-cp', await classPathOf(folder), ...format]);
  return folder;
}

async function requireJava(java: string): Promise<void> {
  const text = await runCommand(java, ['--version']);
  const major = Number(/^\S+ (\d+)/.exec(text)?.[1]);
  if (!(major >= OLDEST_JAVA)) {
    throw new Error(`Apache Kafka ${VERSION} needs Java ${OLDEST_JAVA} or later; ${java} is ${text.split('\n')[0]}`);
  }
}

/** In one order always: a class archive holds for one class path only. */
async function classPathOf(folder: string): Promise<string> {
  const jars = await readdir(join(folder, 'jars'));
  return jars
    .sort()
    .map((jar) => join(folder, 'jars', jar))
    .join(delimiter);
}

/** What changes when Java is replaced or updated, since a class archive holds for one build only. */
async function identity(java: string): Promise<string> {
  const path = await realpath(java);
  const { size, mtimeMs } = await stat(path);
  return `${path} ${size} ${mtimeMs}`;
}

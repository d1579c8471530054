import { existsSync } from 'node:fs';
import { cp, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cached } from './cache.ts';
import { type RunningChild, startChild } from './child.ts';
import { type KafkaPorts, logProperties, serverProperties } from './kafka-config.ts';
import { type KafkaDistribution, kafkaDistribution } from './kafka-distribution.ts';
import { onFreePorts } from './ports.ts';

export interface KafkaOptions {
  /** A folder of this server's own; one that a server has used before is used again with its data. */
  dataDir: string;
  /** A free port unless prescribed. */
  port?: number | undefined;
  /** The port that clients are told, where a proxy stands in between; the broker's own otherwise. */
  advertisedPort?: number | undefined;
  /** The address that clients are told, 127.0.0.1 unless given. */
  advertisedHost?: string | undefined;
}

export interface KafkaServer {
  brokers: string;
  pid: number;
  port: number;
  stop(): Promise<void>;
}

/**
 * Starts Apache Kafka on 127.0.0.1, one node that is broker and controller; topics are not created by use.
 * `dataDir` stays after `stop`; it goes if this process dies without it.
 */
export async function startKafka(options: KafkaOptions): Promise<KafkaServer> {
  const kafka = await kafkaDistribution();
  const archive = await cached(kafka.archiveName, (folder) => makeArchive(kafka, folder));
  const { child, port } = await launch(kafka, options, [`-XX:SharedArchiveFile=${archive}`]);
  return { ...child, port, brokers: `127.0.0.1:${options.advertisedPort ?? port}` };
}

/** A class archive halves the start; Java writes it when a server ends. */
async function makeArchive(kafka: KafkaDistribution, folder: string): Promise<string> {
  const archive = join(folder, 'kafka.jsa');
  const { child } = await launch(kafka, { dataDir: join(folder, 'data') }, [`-XX:ArchiveClassesAtExit=${archive}`]);
  await child.stop();
  return archive;
}

async function launch(
  kafka: KafkaDistribution,
  options: KafkaOptions,
  flags: string[],
): Promise<{ child: RunningChild; port: number }> {
  const { dataDir } = options;
  const logDir = join(dataDir, 'log');
  await mkdir(dataDir, { recursive: true });
  if (!existsSync(logDir)) {
    const unfinished = `${logDir}.new`;
    await rm(unfinished, { recursive: true, force: true });
    await cp(kafka.template, unfinished, { recursive: true });
    await rename(unfinished, logDir);
  }
  return onFreePorts(2, options.port, async ([port = 0, controller = 0]) => {
    const advertised = options.advertisedPort ?? port;
    const { advertisedHost = '127.0.0.1' } = options;
    const child = await run(kafka, dataDir, { broker: port, controller, advertised, advertisedHost }, flags);
    return { child, port };
  });
}

async function run(
  kafka: KafkaDistribution,
  dataDir: string,
  ports: KafkaPorts,
  flags: string[],
): Promise<RunningChild> {
  const properties = join(dataDir, 'server.properties');
  const logging = join(dataDir, 'log4j2.properties');
  await writeFile(properties, serverProperties(join(dataDir, 'log'), ports));
  await writeFile(logging, logProperties());
  const memory = ['-Xms64m', '-Xmx768m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'];
  const main = [`-Dlog4j2.configurationFile=${logging}`, '-cp', kafka.classPath, 'kafka.Kafka', properties];
  return startChild({
    name: 'Apache Kafka',
    command: kafka.java,
    args: [...memory, ...flags, ...main],
    dataDir,
    ready: /Kafka Server started/,
    stopSignal: 'SIGTERM',
    abandonSignal: 'SIGKILL',
  });
}

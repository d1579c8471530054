import { appendFile } from 'node:fs/promises';
import type { Seal } from '../audit/seals.ts';
import { EmbeddedBus, EmbeddedLogReader } from '../events/bus/embedded-bus.ts';
import type { BusLog, EventBus, LogReader } from '../events/bus/event-bus.ts';
import { ALL_TOPICS } from '../events/bus/topics.ts';
import { MemoryWakeUps, type WakeUps } from '../events/streams/wake-ups.ts';
import type { Log } from '../lib/log.ts';
import { type Cache, MemoryCache } from '../platform/cache/cache.ts';
import type { RedisCache } from '../platform/cache/redis-cache.ts';
import type { Config } from '../platform/config/config.ts';
import { embeddedClusterDir, notWhole, PARTS } from '../platform/config/secrets.ts';
import type { Db } from '../platform/database/database.ts';
import { type Database, openDatabase } from '../platform/database/open-database.ts';

const CLIENT_ID = 'portcullis';

/** Opens the configured database, or else the embedded one. */
export async function openStore(
  { databaseUrl: url, dataDir, statementTimeoutMs }: Config,
  stack: AsyncDisposableStack,
): Promise<Database> {
  const location = url === undefined ? { dataDir: embeddedClusterDir(dataDir) } : { url, statementTimeoutMs };
  const database = stack.use(await openDatabase(location));
  if (url === undefined) await ensureOpens(dataDir, database);
  return database;
}

/**
 * Checks that the embedded database can be opened, since only its first statement reveals damaged files. @throws
 * StartError if not.
 */
async function ensureOpens(dataDir: string, { db }: Database): Promise<void> {
  try {
    await db.unscoped('whether it opens').raw((sql) => sql`select 1`);
  } catch (error) {
    // PGlite throws values that are not an Error when it cannot use a file.
    const reason = error instanceof Error ? ` (${error.message.split('\n', 1)})` : '';
    throw notWhole(dataDir, `${PARTS.cluster} cannot be opened${reason}`);
  }
}

/** Opens Redis if it is configured, or else the cache of this process. */
export async function openCache(
  { redisUrl: url, topicPrefix: keyPrefix }: Config,
  log: Log,
  stack: AsyncDisposableStack,
): Promise<MemoryCache | RedisCache> {
  const onOutage = (error: unknown) =>
    log.warn({ store: 'cache', error }, 'Redis does not respond or rejects commands');
  const cache =
    url === undefined
      ? new MemoryCache()
      : await (await import('../platform/cache/redis-cache.ts')).RedisCache.open({ url, keyPrefix, onOutage });
  return stack.adopt(cache, (opened: Cache) => opened.stop());
}

/** Opens wake-ups between processes by Redis if it is configured, or else within this process. */
export async function openWakeUps(
  { redisUrl: url, topicPrefix: channelPrefix }: Config,
  log: Log,
  stack: AsyncDisposableStack,
): Promise<WakeUps> {
  const onOutage = (error: unknown) => log.warn({ store: 'cache', error }, 'wake-ups unavailable; subscribers poll');
  const wakeUps: WakeUps =
    url === undefined
      ? new MemoryWakeUps()
      : await (await import('../events/streams/redis-wake-ups.ts')).RedisWakeUps.open({ url, channelPrefix, onOutage });
  return stack.adopt(wakeUps, (opened) => opened.stop());
}

/** Makes the reader of the topics on the bus that `openBus` opens with the same configuration. */
export async function openLogReader({ kafka, topicPrefix }: Config, db: Db, log: Log): Promise<LogReader> {
  if (!kafka) return new EmbeddedLogReader(db);
  const { KafkaLogReader } = await import('../events/bus/kafka-log-reader.ts');
  return new KafkaLogReader({ ...kafka, topicPrefix, clientId: CLIENT_ID }, busLogOf(log));
}

/** Opens Kafka if it is configured, or else the embedded bus, which is durable in the database. */
export async function openBus(config: Config, db: Db, log: Log, stack: AsyncDisposableStack): Promise<EventBus> {
  const connection = config.kafka && { ...config.kafka, topicPrefix: config.topicPrefix, clientId: CLIENT_ID };
  const bus: EventBus = connection
    ? new (await import('../events/bus/kafka-bus.ts')).KafkaBus(connection, busLogOf(log))
    : new EmbeddedBus(db, busLogOf(log));
  return stack.adopt(bus, (opened) => opened.stop());
}

/** Returns what copies audit seals outside the database, to a file or a topic; undefined if none is configured. */
export function sealSink(
  { auditCheckpoints: destination }: Pick<Config, 'auditCheckpoints'>,
  bus: () => EventBus | Promise<EventBus>,
) {
  if (destination === undefined) return undefined;
  return async (seal: Seal): Promise<void> => {
    const line = JSON.stringify(seal);
    if ('file' in destination) return appendFile(destination.file, `${line}\n`, { mode: 0o600 });
    const opened = await bus();
    await opened.publish([{ topic: destination.topic, key: '', value: Buffer.from(line), headers: {} }]);
  };
}

/** Returns every topic that an installation needs. */
export function topicsOf({ auditCheckpoints: destination }: Config): string[] {
  return [...ALL_TOPICS, ...(destination && 'topic' in destination ? [destination.topic] : [])];
}

function busLogOf(log: Log): BusLog {
  return (level, message, fields = {}) => log[level](fields, message);
}

import { EmbeddedBus, EmbeddedLogReader } from '../events/bus/embedded-bus.ts';
import type { BusLog, EventBus, LogReader } from '../events/bus/event-bus.ts';
import { MemoryWakeUps, type WakeUps } from '../events/streams/wake-ups.ts';
import type { Log } from '../lib/log.ts';
import type { Cache } from '../platform/cache/cache.ts';
import { MemoryCache } from '../platform/cache/memory-cache.ts';
import type { Config } from '../platform/config/config.ts';
import { embeddedClusterDir, notWhole, PARTS } from '../platform/config/data-dir.ts';
import { type Database, type Db, openDatabase } from '../platform/database/database.ts';

const CLIENT_ID = 'portcullis';

/** Opens the configured database, or else the embedded one. */
export async function openStore(config: Config, stack: AsyncDisposableStack): Promise<Database> {
  const { databaseUrl: url, dataDir, statementTimeoutMs } = config;
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
export async function openCache(config: Config, log: Log, stack: AsyncDisposableStack): Promise<Cache> {
  const cache = await openRedisCache(config, log);
  return stack.adopt(cache ?? new MemoryCache(), (opened) => opened.stop());
}

async function openRedisCache({ redisUrl, topicPrefix }: Config, log: Log): Promise<Cache | undefined> {
  if (redisUrl === undefined) return undefined;
  const { RedisCache } = await import('../platform/cache/redis-cache.ts');
  const onOutage = (error: unknown) => log.warn({ err: error }, 'the cache does not answer');
  return RedisCache.open({ url: redisUrl, keyPrefix: topicPrefix, onOutage });
}

/** Opens wake-ups between processes by Redis if it is configured, or else those of this process. */
export async function openWakeUps(config: Config, log: Log, stack: AsyncDisposableStack): Promise<WakeUps> {
  const wakeUps = await openRedisWakeUps(config, log);
  return stack.adopt(wakeUps ?? new MemoryWakeUps(), (opened) => opened.stop());
}

async function openRedisWakeUps({ redisUrl, topicPrefix }: Config, log: Log): Promise<WakeUps | undefined> {
  if (redisUrl === undefined) return undefined;
  const { RedisWakeUps } = await import('../events/streams/redis-wake-ups.ts');
  const onOutage = (error: unknown) => log.warn({ err: error }, 'wake-ups are lost, readers poll');
  return RedisWakeUps.open({ url: redisUrl, channelPrefix: topicPrefix, onOutage });
}

/** Makes the reader of the topics on the bus that `openBus` opens with the same configuration. */
export async function openLogReader({ kafka, topicPrefix }: Config, db: Db, log: Log): Promise<LogReader> {
  if (!kafka) return new EmbeddedLogReader(db);
  const { KafkaLogReader } = await import('../events/bus/kafka-log-reader.ts');
  return new KafkaLogReader({ ...kafka, topicPrefix, clientId: CLIENT_ID }, busLogOf(log));
}

/** Opens Kafka if it is configured, or else the embedded bus, which is durable in the database. */
export async function openBus(config: Config, db: Db, log: Log, stack: AsyncDisposableStack): Promise<EventBus> {
  const { kafka, topicPrefix } = config;
  const busLog = busLogOf(log);
  if (!kafka) return stack.adopt(new EmbeddedBus(db, busLog), (bus) => bus.stop());
  const { KafkaBus } = await import('../events/bus/kafka-bus.ts');
  const bus = new KafkaBus({ ...kafka, topicPrefix, clientId: CLIENT_ID }, busLog);
  return stack.adopt<EventBus>(bus, (opened) => opened.stop());
}

function busLogOf(log: Log): BusLog {
  return (level, message, fields = {}) => log[level](fields, message);
}

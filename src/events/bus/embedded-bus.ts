import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate } from 'node:timers/promises';
import { instantOfMs, pgFromInstant } from '../../lib/instants.ts';
import { KeyedMutex } from '../../lib/semaphore.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import { WorkLoop } from '../../lib/work-loop.ts';
import type { UnscopedDatabase } from '../../platform/database/database.ts';
import {
  type BatchHandler,
  type BusLog,
  BusUnavailableError,
  type ConsumerLag,
  type EventBus,
  HEALTH_TIMEOUT_MS,
  type IncomingMessage,
  type LogReader,
  MAX_BATCH_MESSAGES,
  type OutgoingMessage,
  type PartitionSpan,
  type PublishOptions,
  RETENTION_DAYS,
  type ReadOptions,
  type SubscribeOptions,
  type Subscription,
  type Within,
} from './event-bus.ts';
import { PublishQueue } from './publish-queue.ts';

/** The only access to the database that the embedded bus needs: unscoped raw SQL. */
export interface BusDatabase {
  unscoped(reason: string): Pick<UnscopedDatabase, 'raw'>;
}

/** A consumer group and a topic, for which one offset is stored: how far the group has read the topic. */
interface ReadPosition {
  groupId: string;
  topic: string;
}

const PUBLISH_LOCK = 7_205_001;
const MAX_BATCH_BYTES = 4 * 1024 * 1024;
const MAX_COUNTED = 100_000;
const REMOVED_AT_ONCE = 1_000;
const MAX_POSITION = '9223372036854775807';

/**
 * The storage of the embedded bus: its messages and offsets, in the tables `bus_messages` and `bus_offsets`. Each
 * method runs one SQL statement.
 */
export class EmbeddedStore {
  readonly #database: Pick<UnscopedDatabase, 'raw'>;

  constructor(database: BusDatabase) {
    this.#database = database.unscoped('messages of all nodes');
  }

  /**
   * Appends all messages or none. An advisory lock makes positions rise in commit order even when the database has more
   * than one connection, so that a reader that has passed a position never misses a lower one.
   */
  async append(messages: readonly OutgoingMessage[]): Promise<void> {
    const topics = messages.map((message) => message.topic);
    const keys = messages.map((message) => message.key.toWellFormed());
    const values = messages.map((message) => message.value);
    // Lone surrogates become U+FFFD, as UTF-8 encoding does on the way to Kafka; `jsonb` would refuse them.
    const headers = messages.map((message) =>
      JSON.stringify(
        Object.fromEntries(
          Object.entries(message.headers).map(([name, text]) => [name.toWellFormed(), text.toWellFormed()]),
        ),
      ),
    );
    await this.#database.raw(
      (text) => text`
        insert into bus_messages (topic, key, value, headers)
        select m.topic, m.key, m.value, m.headers::jsonb
        from (select pg_advisory_xact_lock(${PUBLISH_LOCK}::bigint) as held) l,
          unnest(${topics}::text[], ${keys}::text[], ${values}::bytea[], ${headers}::text[])
            with ordinality as m (topic, key, value, headers, ordinal)
        where l is not null order by m.ordinal`,
    );
  }

  /**
   * Registers a consumer group for a topic, so that no message is removed before the group has read it. A registered
   * group keeps its offset.
   */
  async register({ groupId, topic }: ReadPosition, fromBeginning: boolean): Promise<void> {
    await this.#database.raw(
      (text) => text`
        insert into bus_offsets (group_id, topic, position)
        select ${groupId}::text, ${topic}::text, case when ${fromBeginning}::boolean then 0
          else coalesce((select max(position) from bus_messages where topic = ${topic}), 0) end
        on conflict do nothing`,
    );
  }

  /**
   * Reads the messages after the group's offset, in order: at most 500, and none after the one that reaches 4 MiB in
   * total.
   */
  read({ groupId, topic }: ReadPosition): Promise<IncomingMessage[]> {
    return this.#page({ topic, groupId, first: null, end: null });
  }

  /**
   * Reads the messages from offset `first` to before `end`, in order: at most 500, and none after the one that reaches
   * 4 MiB in total.
   */
  readBetween(topic: string, first: bigint, end: bigint): Promise<IncomingMessage[]> {
    return this.#page({ topic, groupId: null, first: String(first), end: String(end) });
  }

  /**
   * Returns the first and last position, and the number, of those messages of a topic that come after a position, or
   * that were published from `fromMs` to before `toMs` (milliseconds since 1970). Undefined if there are none.
   */
  async spanOf(topic: string, within: { after: bigint } | { fromMs: number; toMs: number }) {
    const after = 'after' in within ? within.after : 0n;
    const [from, to] =
      'after' in within
        ? ['-infinity', 'infinity']
        : [within.fromMs, within.toMs].map((ms) => pgFromInstant(instantOfMs(ms)));
    const rows = await this.#database.raw<{ first: string | null; last: string | null; count: string }>(
      (text) => text`
        select min(position)::text as first, max(position)::text as last, count(*)::text as count
        from bus_messages
        where topic = ${topic} and position > ${String(after)}::bigint
          and position >= (select min(position) from bus_messages
            where topic = ${topic} and created_at >= ${from}::timestamptz)
          and position < coalesce((select min(position) from bus_messages
            where topic = ${topic} and created_at >= ${to}::timestamptz), ${MAX_POSITION}::bigint)`,
    );
    const { first = null, last = null, count = '0' } = rows[0] ?? {};
    return first === null || last === null
      ? undefined
      : { first: BigInt(first), last: BigInt(last), count: Number(count) };
  }

  /** Returns how many messages each group has yet to read of each of its topics, to 100,000 at most, and since when. */
  async lag(groupIds: readonly string[]): Promise<ConsumerLag[]> {
    const rows = await this.#database.raw<{ group_id: string; topic: string; messages: string; oldest: number | null }>(
      (text) => text`
        select o.group_id, o.topic, (select count(*) from (
          select 1 from bus_messages m where m.topic = o.topic and m.position > o.position limit ${MAX_COUNTED}
        ) behind)::text as messages, (
          select extract(epoch from clock_timestamp() - m.created_at)::float8 from bus_messages m
          where m.topic = o.topic and m.position > o.position order by m.position limit 1) as oldest
        from bus_offsets o where o.group_id = any (${[...groupIds]}::text[])`,
    );
    return rows.map(({ group_id: groupId, topic, messages, oldest }) => {
      return { groupId, topic, messages: Number(messages), oldestSeconds: Math.max(0, oldest ?? 0) };
    });
  }

  /** Returns the age in seconds of the first message of a topic from a position on; undefined if there is none. */
  async ageFrom(topic: string, first: bigint): Promise<number | undefined> {
    const [row] = await this.#database.raw<{ age: number }>(
      (text) => text`
        select extract(epoch from clock_timestamp() - created_at)::float8 as age from bus_messages
        where topic = ${topic} and position >= ${String(first)}::bigint order by position limit 1`,
    );
    return row?.age;
  }

  /** Stores that the group has processed every message up to `offset`. An offset never goes back. */
  async commit({ groupId, topic }: ReadPosition, offset: string): Promise<void> {
    await this.#database.raw(
      (text) => text`
        update bus_offsets set position = greatest(position, ${offset}::bigint)
        where group_id = ${groupId} and topic = ${topic}`,
    );
  }

  /**
   * Removes old messages that every group of their topic has read: after 7 days, dead letters after 30. Takes at most
   * the 1,000 oldest of each topic. Returns how many it removed; `isDone` is false where there may be more.
   */
  async removeRead(): Promise<{ removed: number; isDone: boolean }> {
    const rows = await this.#database.raw<{ topic: string }>(
      (text) => text`
        with recursive topics (topic) as (
          select min(topic) from bus_messages
          union all
          select (select min(topic) from bus_messages where topic > t.topic) from topics t where t.topic is not null
        )
        delete from bus_messages m using (
          select head.topic, head.position, head.created_at
          from topics t
          left join (select topic, min(position) as position from bus_offsets group by topic) r using (topic)
          cross join lateral (
            select topic, position, created_at from bus_messages
            where topic = t.topic and (r.position is null or position <= r.position)
            order by position limit ${REMOVED_AT_ONCE}
          ) head
        ) old
        where m.topic = old.topic and m.position = old.position
          and old.created_at < now() - make_interval(days =>
            case when old.topic like '%.dlq' then ${RETENTION_DAYS.deadLetters}::integer
              else ${RETENTION_DAYS.messages}::integer end)
        returning m.topic`,
    );
    return { removed: rows.length, isDone: rows.length < REMOVED_AT_ONCE };
  }

  /** Reads messages from `first` on or, where that is null, from the one after the group's offset. */
  async #page({
    topic,
    groupId,
    first,
    end,
  }: {
    topic: string;
    groupId: string | null;
    first: string | null;
    end: string | null;
  }): Promise<IncomingMessage[]> {
    const rows = await this.#database.raw<{
      position: string;
      key: string;
      value: Buffer | null;
      headers: Record<string, string>;
      timestamp_ms: string;
    }>(
      (text) => text`
        select position, key, value, headers, (extract(epoch from created_at) * 1000)::bigint as timestamp_ms
        from (
          select page.*, sum(octet_length(value)) over (
            order by position rows between unbounded preceding and 1 preceding) as bytes_before
          from (
            select * from bus_messages
            where topic = ${topic}
              and position >= coalesce(${first}::bigint,
                (select position + 1 from bus_offsets where group_id = ${groupId} and topic = ${topic}))
              and position < coalesce(${end}::bigint, ${MAX_POSITION}::bigint)
            order by position limit ${MAX_BATCH_MESSAGES}
          ) page
        ) sized
        where coalesce(bytes_before, 0) < ${MAX_BATCH_BYTES} order by position`,
    );
    return rows.map((row) => ({
      topic,
      partition: 0,
      offset: row.position,
      key: row.key,
      value: row.value,
      headers: row.headers,
      timestampMs: Number(row.timestamp_ms),
    }));
  }

  /**
   * Checks whether the database responds.
   * @throws the driver's error when it does not.
   */
  async ping(): Promise<void> {
    await this.#database.raw((text) => text`select 1`);
  }
}

/** Checks whether a batch has as many messages or bytes as one may have, so that others may follow it. */
function isWhole(batch: readonly IncomingMessage[]): boolean {
  const bytes = batch.reduce((sum, { value }) => sum + (value?.length ?? 0), 0);
  return batch.length >= MAX_BATCH_MESSAGES || bytes >= MAX_BATCH_BYTES;
}

const TOPIC_POLL_MS = 1_000;

/**
 * Reads one topic for one group: gives each batch to the handler, then stores its offset. A batch that fails is read
 * again after a backoff. Only one batch is in memory, however large the lag is.
 */
class EmbeddedReader {
  readonly #options;
  readonly #stopping = new AbortController();
  readonly #loop = new WorkLoop({ iterate: (signal) => this.#iterate(signal), pollMs: TOPIC_POLL_MS });
  #failures = 0;
  /** Resolves when the reader has ended; never rejects. */
  readonly ended: Promise<void>;

  constructor(options: {
    store: EmbeddedStore;
    at: ReadPosition;
    handle: BatchHandler;
    log: BusLog;
    /**
     * The mutex that all readers of the bus share, keyed by group and topic: only one reader of a group reads a topic at
     * a time.
     */
    mutex: KeyedMutex;
  }) {
    this.#options = options;
    const { signal } = this.#stopping;
    this.ended = options.mutex
      .run(JSON.stringify([options.at.groupId, options.at.topic]), () => this.#loop.run(signal), signal)
      // Rejects when the reader is stopped while it waits for the mutex: then it has nothing to end.
      .catch(() => undefined);
  }

  /** Starts the next read at once instead of at the next poll, if there are new messages of its topic. */
  notify(topics: ReadonlySet<string>): void {
    if (topics.has(this.#options.at.topic)) this.#loop.notify();
  }

  /** Resolves when the running handler has ended and its offset is stored. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.ended;
  }

  async #iterate(signal: AbortSignal): Promise<boolean> {
    const { at, log } = this.#options;
    try {
      const hasMore = await this.#step(signal);
      this.#failures = 0;
      // The embedded database responds within one tick of the event loop: many batches in a row would block everything
      // else.
      if (hasMore) await setImmediate();
      return hasMore;
    } catch (error) {
      this.#failures += 1;
      log('warn', 'event batch failed; retrying', { ...at, failures: this.#failures, error });
      throw error;
    }
  }

  /** Reads a batch and passes it to the handler. Returns whether there may be more messages: after a full batch. */
  async #step(signal: AbortSignal): Promise<boolean> {
    const { store, at, handle } = this.#options;
    const batch = await store.read(at);
    const last = batch.at(-1);
    if (!last || signal.aborted) return false;
    await handle(batch, this.#failures);
    await store.commit(at, last.offset);
    return isWhole(batch);
  }
}

const REMOVAL_INTERVAL_MS = 10 * 60 * 1_000;

/**
 * The event bus of an installation without Kafka. Messages are stored in the database; readers of this process are
 * woken as soon as one is published and poll every second for messages of other processes. Only one process may
 * consume. Stop the bus before the database is closed.
 */
export class EmbeddedBus implements EventBus {
  readonly #store: EmbeddedStore;
  readonly #log: BusLog;
  readonly #queue: PublishQueue;
  readonly #outside = AsyncLocalStorage.snapshot();
  readonly #readers = new Set<EmbeddedReader>();
  readonly #mutex = new KeyedMutex();
  readonly #removal: NodeJS.Timeout;
  #removing: Promise<unknown> = Promise.resolve();
  #isStopped = false;

  constructor(database: BusDatabase, log: BusLog) {
    this.#store = new EmbeddedStore(database);
    this.#log = log;
    this.#queue = new PublishQueue({
      send: (messages) => this.#append(messages),
      maxBatchMessages: 1_000,
      maxTopicBytes: 2 * 1024 * 1024,
      singlesAtOnce: 1,
    });
    this.#removal = setInterval(() => this.#removeInBackground(), REMOVAL_INTERVAL_MS);
    this.#removal.unref();
  }

  publish(messages: readonly OutgoingMessage[], options: PublishOptions = {}): Promise<void> {
    return this.#queue.publish(messages, options.deadlineMs);
  }

  async subscribe({ groupId, topics, handle, fromBeginning = true }: SubscribeOptions): Promise<Subscription> {
    const positions = topics.map((topic) => ({ groupId, topic }));
    await this.#outside(async () => {
      for (const at of positions) await this.#store.register(at, fromBeginning);
    });
    if (this.#isStopped) throw new BusUnavailableError('the bus is stopped');
    const readers = this.#outside(() => positions.map((at) => this.#startReader(at, handle)));
    return {
      stop: async () => {
        await Promise.all(readers.map((reader) => reader.stop()));
      },
    };
  }

  /** Does nothing: the topics of the embedded bus need no creation. */
  async ensureTopics(_topics: readonly string[]): Promise<void> {}

  async missingTopics(_topics: readonly string[]): Promise<string[]> {
    return [];
  }

  async checkHealth(): Promise<void> {
    try {
      await withTimeout(
        this.#outside(() => this.#store.ping()),
        HEALTH_TIMEOUT_MS,
      );
    } catch (error) {
      throw new BusUnavailableError('the database is rejecting writes, or is slow', { cause: error });
    }
  }

  lag(groups: ReadonlyMap<string, readonly string[]>): Promise<ConsumerLag[]> {
    return this.#outside(() => this.#store.lag([...groups.keys()]));
  }

  /**
   * Removes the messages that every consumer group has read and whose retention has passed, in bounded batches, and
   * returns their number. The bus also calls it every ten minutes.
   */
  async removeRead(): Promise<number> {
    let total = 0;
    for (let isDone = false; !isDone && !this.#isStopped; ) {
      const page = await this.#outside(() => this.#store.removeRead());
      total += page.removed;
      isDone = page.isDone;
    }
    return total;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#removal);
    await Promise.all(this.#readers.values().map((reader) => reader.stop()));
    await Promise.all([this.#queue.close(), this.#removing]);
  }

  async #append(messages: readonly OutgoingMessage[]): Promise<void> {
    await this.#store.append(messages);
    const topics = new Set(messages.map(({ topic }) => topic));
    for (const reader of this.#readers) reader.notify(topics);
  }

  #startReader(at: { groupId: string; topic: string }, handle: SubscribeOptions['handle']): EmbeddedReader {
    const reader = new EmbeddedReader({ store: this.#store, at, handle, log: this.#log, mutex: this.#mutex });
    this.#readers.add(reader);
    void reader.ended.then(() => this.#readers.delete(reader));
    return reader;
  }

  #removeInBackground(): void {
    this.#removing = this.removeRead().catch((error: unknown) => {
      this.#log('warn', 'could not delete old events', { error: String(error) });
    });
  }
}

const PARTITION = 0;

/**
 * Reads the messages that the embedded bus stores. Each topic has one partition, number 0; its offsets rise, with gaps.
 */
export class EmbeddedLogReader implements LogReader {
  readonly #store: EmbeddedStore;

  constructor(database: BusDatabase) {
    this.#store = new EmbeddedStore(database);
  }

  async spans(topic: string, within: Within): Promise<PartitionSpan[]> {
    const span = await this.#store.spanOf(
      topic,
      'after' in within ? { after: within.after.get(PARTITION) ?? 0n } : within,
    );
    return span ? [{ partition: PARTITION, first: span.first, end: span.last + 1n, count: span.count }] : [];
  }

  async oldestSeconds(topic: string, [span]: readonly PartitionSpan[]): Promise<number> {
    return (span && (await this.#store.ageFrom(topic, span.first))) ?? 0;
  }

  async read({ topic, spans, handle, signal }: ReadOptions): Promise<void> {
    for (const { first, end } of spans) {
      for (let next = first; next < end && !signal.aborted; ) {
        const batch = await this.#store.readBetween(topic, next, end);
        const last = batch.at(-1);
        if (!last) break;
        await handle(batch);
        next = BigInt(last.offset) + 1n;
      }
    }
  }
}

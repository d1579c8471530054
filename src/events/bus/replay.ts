import { deadLetterTopicOf } from './dead-letters.ts';
import type { BusDatabase } from './embedded-store.ts';
import type {
  BatchHandler,
  EventBus,
  IncomingMessage,
  LogReader,
  OutgoingMessage,
  PartitionSpan,
} from './event-bus.ts';

const GROUP = 'portcullis.transactions.replay';

/**
 * The storage of how far the dead letters of each partition have been replayed. It uses the database even with Kafka,
 * which drops the offsets of a group without members after seven days but retains dead letters for thirty.
 */
export class ReplayPositions {
  readonly #database: BusDatabase;
  readonly #topicPrefix: string;

  constructor(database: BusDatabase, topicPrefix: string) {
    this.#database = database;
    this.#topicPrefix = topicPrefix;
  }

  /**
   * Returns the offset of the last replayed message of each partition of a topic, without partitions that have none.
   */
  async of(topic: string): Promise<Map<number, bigint>> {
    const name = this.#name(topic);
    const rows = await this.#raw<{ topic: string; position: string }>(
      (text) => text`
        select topic, position::text as position from bus_offsets
        where group_id = ${GROUP} and starts_with(topic, ${name})`,
    );
    return new Map(rows.map((row) => [Number(row.topic.slice(name.length)), BigInt(row.position)]));
  }

  /** Stores that all messages of the partition up to `offset` have been replayed. */
  async save(topic: string, partition: number, offset: string): Promise<void> {
    await this.#raw(
      (text) => text`
        insert into bus_offsets (group_id, topic, position)
        values (${GROUP}, ${`${this.#name(topic)}${partition}`}, ${offset}::bigint)
        on conflict (group_id, topic) do update set position = excluded.position`,
    );
  }

  /**
   * Returns the prefix of the names under which the partitions of a topic are stored. A name with a slash is never a
   * topic, so these rows do not keep the embedded bus from removing old messages.
   */
  #name(topic: string): string {
    return `${this.#topicPrefix}${topic}/`;
  }

  get #raw() {
    return this.#database.unscoped('dead letters of all nodes').raw;
  }
}

const PUBLISH_DEADLINE_MS = 30_000;
/** The headers that a dead letter has in addition to the original message's. */
const DEAD_LETTER_HEADERS = new Set(['error', 'original-topic', 'original-partition', 'original-offset']);

interface Dependencies {
  bus: Pick<EventBus, 'publish'>;
  reader: LogReader;
  positions: ReplayPositions;
  /**
   * Returns the handler that applies the dead letters of `topic` directly, or undefined if they are to be published to
   * it.
   */
  applying?(topic: string): BatchHandler | undefined;
}

/** The messages to copy from one topic to another, as of the time of planning; later messages are not included. */
export interface ReplayPlan {
  source: string;
  topic: string;
  spans: readonly PartitionSpan[];
  /** The highest number of messages that are replayed. */
  count: number;
}

interface ReplayOptions {
  signal: AbortSignal;
  onReplayed(messages: number): void;
}

/**
 * Replays messages of a topic: publishes or applies them again. Consumers tolerate duplicates, and a dead letter may
 * succeed now.
 */
export class Replay {
  readonly #deps: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#deps = dependencies;
  }

  /** Plans the replay of those dead letters of a topic that have not been replayed yet. */
  async deadLetters(topic: string): Promise<ReplayPlan> {
    const source = deadLetterTopicOf(topic);
    const after = await this.#deps.positions.of(source);
    return planOf(source, topic, await this.#deps.reader.spans(source, { after }));
  }

  /** Plans the replay of messages published to a topic from `fromMs` to before `toMs`, in milliseconds since 1970. */
  async between(topic: string, fromMs: number, toMs: number): Promise<ReplayPlan> {
    return planOf(topic, topic, await this.#deps.reader.spans(topic, { fromMs, toMs }));
  }

  /**
   * Publishes or applies the planned messages, with their headers and `replayed-from` (topic/partition/offset). The
   * next plan leaves out dead letters that were replayed; after a crash one batch may be repeated. Stops early when
   * `signal` aborts.
   * @throws BusUnavailableError when the bus accepts or delivers no messages any more.
   */
  async run({ source, topic, spans }: ReplayPlan, { signal, onReplayed }: ReplayOptions): Promise<void> {
    const { bus, reader, positions, applying } = this.#deps;
    const apply = source === topic ? undefined : applying?.(topic);
    const handle = async (batch: readonly IncomingMessage[]): Promise<void> => {
      if (apply) await apply(batch.map((message) => originalMessage(message, topic)));
      // Published singly: the bus coalesces them anyway, and one that it refuses fails no other.
      else {
        await Promise.all(
          batch.map((message) => bus.publish([replayed(message, topic)], { deadlineMs: PUBLISH_DEADLINE_MS })),
        );
      }
      const last = batch.at(-1);
      if (last && source !== topic) await positions.save(source, last.partition, last.offset);
      onReplayed(batch.length);
    };
    if (spans.length > 0) await reader.read({ topic: source, spans, handle, signal });
  }
}

function planOf(source: string, topic: string, spans: readonly PartitionSpan[]): ReplayPlan {
  return { source, topic, spans, count: spans.reduce((sum, { count }) => sum + count, 0) };
}

function replayed({ topic, partition, offset, key, value, headers }: IncomingMessage, target: string): OutgoingMessage {
  const sourceHeaders = Object.entries(headers).filter(([name]) => topic === target || !DEAD_LETTER_HEADERS.has(name));
  const replayedFrom = `${topic}/${partition}/${offset}`;
  return {
    topic: target,
    key,
    value,
    headers: { ...Object.fromEntries(sourceHeaders), 'replayed-from': replayedFrom },
  };
}

/**
 * Restores the original message of a dead letter, with its partition and offset; offset 0 where the letter does not
 * have them.
 */
function originalMessage(letter: IncomingMessage, topic: string): IncomingMessage {
  const { 'original-partition': partition = '', 'original-offset': offset = '' } = letter.headers;
  const hasOrigin = [partition, offset].every((part) => /^\d{1,18}$/.test(part));
  const origin = hasOrigin ? { partition: Number(partition), offset } : { partition: 0, offset: '0' };
  return { ...replayed(letter, topic), ...origin, timestampMs: letter.timestampMs };
}

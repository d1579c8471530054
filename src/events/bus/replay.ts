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
 * How far the dead letters of each partition have been replayed, kept in the database whatever the bus is: Kafka
 * forgets the offsets of a group that nobody is a member of after seven days, and keeps dead letters for thirty.
 */
export class ReplayPositions {
  readonly #database: BusDatabase;
  readonly #topicPrefix: string;

  constructor(database: BusDatabase, topicPrefix: string) {
    this.#database = database;
    this.#topicPrefix = topicPrefix;
  }

  /** The offset of the last message that was replayed, of each partition of a topic that has had one. */
  async of(topic: string): Promise<Map<number, bigint>> {
    const name = this.#name(topic);
    const rows = await this.#raw<{ topic: string; position: string }>(
      (text) => text`
        select topic, position::text as position from bus_offsets
        where group_id = ${GROUP} and starts_with(topic, ${name})`,
    );
    return new Map(rows.map((row) => [Number(row.topic.slice(name.length)), BigInt(row.position)]));
  }

  /** Everything of the partition up to `offset` has been replayed. */
  async keep(topic: string, partition: number, offset: string): Promise<void> {
    await this.#raw(
      (text) => text`
        insert into bus_offsets (group_id, topic, position)
        values (${GROUP}, ${`${this.#name(topic)}${partition}`}, ${offset}::bigint)
        on conflict (group_id, topic) do update set position = excluded.position`,
    );
  }

  /** The name of a partition is no topic's: it never keeps the embedded bus from removing what is past its age. */
  #name(topic: string): string {
    return `${this.#topicPrefix}${topic}/`;
  }

  get #raw() {
    return this.#database.unscoped('dead letters are of all nodes').raw;
  }
}

const PUBLISH_DEADLINE_MS = 30_000;
/** What a dead letter has beside the headers of the message that it was. */
const HEADERS_OF_DEATH = new Set(['error', 'original-topic', 'original-partition', 'original-offset']);

interface ReplayParts {
  bus: Pick<EventBus, 'publish'>;
  reader: LogReader;
  positions: ReplayPositions;
  /** Of a topic whose dead letters are applied at once, and not published to it again: what applies them. */
  applying?(topic: string): BatchHandler | undefined;
}

/** What goes from one topic to another, as it was when this was planned: what comes later is not of it. */
export interface ReplayPlan {
  source: string;
  topic: string;
  spans: readonly PartitionSpan[];
  /** How many messages at most. */
  count: number;
}

interface ReplayOptions {
  signal: AbortSignal;
  onReplayed(messages: number): void;
}

/** Gives again what a topic has had: consumers bear repeats, and what was dead may be mended. */
export class Replay {
  readonly #parts: ReplayParts;

  constructor(parts: ReplayParts) {
    this.#parts = parts;
  }

  /** The dead letters of a topic that have not been replayed yet. */
  async deadLetters(topic: string): Promise<ReplayPlan> {
    const source = deadLetterTopicOf(topic);
    const after = await this.#parts.positions.of(source);
    return planOf(source, topic, await this.#parts.reader.spans(source, { after }));
  }

  /** What was published to a topic from `fromMs` to before `toMs`. */
  async between(topic: string, fromMs: number, toMs: number): Promise<ReplayPlan> {
    return planOf(topic, topic, await this.#parts.reader.spans(topic, { fromMs, toMs }));
  }

  /**
   * Publishes or applies what is planned, with its headers and `replayed-from` (topic/partition/offset). What was
   * acknowledged of dead letters is not planned again; a crash in between repeats a batch. Stops early when `signal`
   * aborts.
   * @throws BusUnavailableError when the bus takes or gives nothing any more.
   */
  async run({ source, topic, spans }: ReplayPlan, { signal, onReplayed }: ReplayOptions): Promise<void> {
    const { bus, reader, positions, applying } = this.#parts;
    const apply = source === topic ? undefined : applying?.(topic);
    const handle = async (batch: readonly IncomingMessage[]): Promise<void> => {
      if (apply) await apply(batch.map((message) => revived(message, topic)));
      // Each by itself: the bus puts them together, and one that it cannot take stands for itself alone.
      else {
        await Promise.all(
          batch.map((message) => bus.publish([replayed(message, topic)], { deadlineMs: PUBLISH_DEADLINE_MS })),
        );
      }
      const last = batch.at(-1);
      if (last && source !== topic) await positions.keep(source, last.partition, last.offset);
      onReplayed(batch.length);
    };
    if (spans.length > 0) await reader.read({ topic: source, spans, handle, signal });
  }
}

function planOf(source: string, topic: string, spans: readonly PartitionSpan[]): ReplayPlan {
  return { source, topic, spans, count: spans.reduce((sum, { count }) => sum + count, 0) };
}

function replayed({ topic, partition, offset, key, value, headers }: IncomingMessage, target: string): OutgoingMessage {
  const kept = Object.entries(headers).filter(([name]) => topic === target || !HEADERS_OF_DEATH.has(name));
  const replayedFrom = `${topic}/${partition}/${offset}`;
  return { topic: target, key, value, headers: { ...Object.fromEntries(kept), 'replayed-from': replayedFrom } };
}

/** The message that a dead letter was, where it stood; one that does not say where counts as the oldest of all. */
function revived(letter: IncomingMessage, topic: string): IncomingMessage {
  const { 'original-partition': partition = '', 'original-offset': offset = '' } = letter.headers;
  const isPlaced = [partition, offset].every((part) => /^\d{1,18}$/.test(part));
  const place = isPlaced ? { partition: Number(partition), offset } : { partition: 0, offset: '0' };
  return { ...replayed(letter, topic), ...place, timestampMs: letter.timestampMs };
}

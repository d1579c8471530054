import type { BusDatabase } from './embedded-bus.ts';
import {
  type BatchHandler,
  deadLetterTopicOf,
  type EventBus,
  type IncomingMessage,
  type LetterPlace,
  type LogReader,
  letterId,
  letterPlace,
  type OutgoingMessage,
  originOf,
  type PartitionSpan,
} from './event-bus.ts';

const GROUP = 'portcullis.transactions.replay';

/** What was decided about a dead letter, and by which user of the operating system; a discard has a reason. */
export interface Decision {
  decision: 'replayed' | 'discarded';
  reason: string | null;
  by: string;
}

/**
 * The storage of which dead letters wait no more: how far those of each partition have been replayed, and what was
 * decided about single ones. It uses the database even with Kafka,
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

  /** Returns what was decided about single dead letters of a topic, by their ids. */
  async decisions(topic: string): Promise<Map<string, Decision>> {
    const rows = await this.#raw<Decision & Pick<LetterPlace, 'partition' | 'offset'>>(
      (text) => text`
        select partition, "offset", decision, reason, decided_by as by from dead_letter_decisions
        where topic = ${this.#topicPrefix + topic}`,
    );
    return new Map(rows.map((row) => [letterId({ topic, ...row }), row]));
  }

  /** Stores a decision, and deletes those about letters that no topic keeps any more. The first decision holds. */
  async decide({ topic, partition, offset }: LetterPlace, { decision, reason, by }: Decision): Promise<void> {
    await this.#raw(
      (text) => text`
        with outdated as (delete from dead_letter_decisions where decided_at < now() - interval '90 days')
        insert into dead_letter_decisions (topic, partition, "offset", decision, reason, decided_by)
        values (${this.#topicPrefix + topic}, ${partition}, ${offset}::bigint, ${decision}, ${reason}, ${by})
        on conflict do nothing`,
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

/** The messages to copy from one topic to another, as of the time of planning; later messages are not included. */
export interface ReplayPlan {
  source: string;
  topic: string;
  spans: readonly PartitionSpan[];
  /** The highest number of messages that are replayed. */
  count: number;
  /** The ids of dead letters in the spans that do not wait: each was replayed by its id, or discarded. */
  decided: ReadonlySet<string>;
  /** Whether it is the plan of one dead letter, chosen by its id. */
  isSingle?: boolean;
}

/**
 * Replays messages of a topic: publishes or applies them again. Consumers tolerate duplicates, and a dead letter may
 * succeed now.
 */
export class Replay {
  readonly #deps;

  constructor(dependencies: {
    bus: Pick<EventBus, 'publish'>;
    reader: LogReader;
    positions: ReplayPositions;
    /**
     * Returns the handler that applies the dead letters of `topic` directly, or undefined if they are to be published to
     * it.
     */
    applying?: ((topic: string) => BatchHandler | undefined) | undefined;
  }) {
    this.#deps = dependencies;
  }

  /**
   * Plans the replay of those dead letters of a topic that wait: they were neither replayed nor discarded. The first of
   * each span waits. With `settles`, the position moves to it, so that the next plan need not pass the letters before.
   */
  async deadLetters(topic: string, { settles = false } = {}): Promise<ReplayPlan> {
    const { reader, positions } = this.#deps;
    const source = deadLetterTopicOf(topic);
    const [after, all] = await Promise.all([positions.of(source), positions.decisions(source)]);
    const isDecided = (partition: number, at: bigint) =>
      all.has(letterId({ topic: source, partition, offset: `${at}` }));
    for (;;) {
      const spans = await reader.spans(source, { after });
      const passed = spans.filter(({ partition, first }) => isDecided(partition, first));
      if (passed.length === 0) {
        const within = [...all.keys()].filter((id) => isWithin(spans, letterPlace(id)));
        return planOf(source, topic, spans, within);
      }
      for (const { partition, first } of passed) {
        let last = first;
        while (isDecided(partition, last + 1n)) last += 1n;
        after.set(partition, last);
        if (settles) await positions.save(source, partition, String(last));
      }
    }
  }

  /** Plans the replay of one dead letter; undefined if its topic does not keep it. */
  async letter({ topic: source, partition, offset }: LetterPlace): Promise<ReplayPlan | undefined> {
    const first = BigInt(offset);
    const spans = await this.#deps.reader.spans(source, { after: new Map() });
    if (!isWithin(spans, { topic: source, partition, offset })) return undefined;
    return { ...planOf(source, originOf(source), [{ partition, first, end: first + 1n, count: 1 }]), isSingle: true };
  }

  /** Returns whether a dead letter waits, and what was decided about it alone. */
  async stateOf(letter: LetterPlace): Promise<{ isWaiting: boolean; decision: Decision | undefined }> {
    const { spans } = await this.deadLetters(originOf(letter.topic));
    const decision = (await this.#deps.positions.decisions(letter.topic)).get(letterId(letter));
    return { isWaiting: !decision && isWithin(spans, letter), decision };
  }

  /** Returns how many dead letters of a topic wait, and the age of the oldest in seconds. */
  async waiting(topic: string): Promise<{ messages: number; oldestSeconds: number }> {
    const { source, spans, count } = await this.deadLetters(topic);
    return { messages: count, oldestSeconds: await this.#deps.reader.oldestSeconds(source, spans) };
  }

  /** Passes the messages of a plan to `handle`, in batches, which may be empty. */
  async read({ source, spans, decided }: ReplayPlan, handle: BatchHandler, signal: AbortSignal): Promise<void> {
    const undecided: BatchHandler = (batch) => handle(batch.filter((message) => !decided.has(letterId(message))));
    if (spans.length > 0) await this.#deps.reader.read({ topic: source, spans, handle: undecided, signal });
  }

  /** Plans the replay of messages published to a topic from `fromMs` to before `toMs`, in milliseconds since 1970. */
  async between(topic: string, fromMs: number, toMs: number): Promise<ReplayPlan> {
    return planOf(topic, topic, await this.#deps.reader.spans(topic, { fromMs, toMs }));
  }

  /**
   * Publishes or applies the planned messages, with their headers and `replayed-from` (topic/partition/offset). The
   * next plan leaves out dead letters that were replayed; after a crash one batch may be repeated. Stops early when
   * `signal` aborts. Of a single letter (`letter`) the position is not moved: the caller keeps the decision.
   * @throws BusUnavailableError when the bus accepts or delivers no messages any more.
   */
  async run(
    plan: ReplayPlan,
    { signal, onReplayed }: { signal: AbortSignal; onReplayed(messages: number): void },
  ): Promise<void> {
    const { bus, positions, applying } = this.#deps;
    const { source, topic, isSingle } = plan;
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
      if (last && source !== topic && !isSingle) await positions.save(source, last.partition, last.offset);
      onReplayed(batch.length);
    };
    await this.read(plan, handle, signal);
  }
}

function isWithin(spans: readonly PartitionSpan[], place: LetterPlace | undefined): boolean {
  return spans.some(({ partition, first, end }) => {
    return place?.partition === partition && first <= BigInt(place.offset) && BigInt(place.offset) < end;
  });
}

function planOf(
  source: string,
  topic: string,
  spans: readonly PartitionSpan[],
  decided: readonly string[] = [],
): ReplayPlan {
  const count = spans.reduce((sum, span) => sum + span.count, 0) - decided.length;
  return { source, topic, spans, count, decided: new Set(decided) };
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

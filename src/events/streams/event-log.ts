import type { Selectable } from 'kysely';
import { Semaphore } from '../../lib/semaphore.ts';
import { backoffMs, pause } from '../../lib/work-loop.ts';
import type { Db } from '../../platform/database/database.ts';
import { isOneOf, type NestedList, nestedList } from '../../platform/database/keyset-list.ts';
import { insertRows, textColumn } from '../../platform/database/row-sets.ts';
import { isOverload } from '../../platform/errors.ts';
import type { Tables } from '../../tables/tables.ts';

type EventRow = Selectable<Tables['transaction_events']>;

/**
 * An event of a tenant's event log: an applied change, with the transaction as it was after that change. The payload is
 * generic, since readers of the log only pass it on.
 */
export interface LoggedEvent<Payload = EventRow['transaction']>
  extends Omit<EventRow, 'node_id' | 'seq' | 'transaction'> {
  /** The sequence number: from 1 in each tenant, in commit order. */
  seq: bigint;
  transaction: Payload;
  /** Whether a read ended with this event because of its size, although there may be more. */
  isCut?: boolean | undefined;
}

const ENVELOPE_BYTES = 256;
const known = new WeakMap<LoggedEvent<unknown>, number>();

/** Returns the approximate size of an event when it is sent, in bytes. It is computed once for all subscribers. */
export function eventBytes(event: LoggedEvent<unknown>): number {
  return known.getOrInsertComputed(event, ({ transaction }) => {
    const json = JSON.stringify(transaction, (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value));
    return ENVELOPE_BYTES + Buffer.byteLength(json);
  });
}

/** An event to append. */
export type NewEvent = Omit<EventRow, 'seq' | 'occurred_at'>;

const READ_COLUMNS = [
  'seq',
  'transaction_id',
  'status',
  'previous_status',
  'correlation_id',
  'traceparent',
  'transaction',
  'occurred_at',
] as const satisfies (keyof EventRow)[];
const APPENDED_COLUMNS = {
  uuid: ['node_id'],
  bigint: ['seq'],
  text: ['transaction_id', 'correlation_id', 'traceparent'],
  smallint: ['status', 'previous_status'],
  jsonb: ['transaction'],
} as const;

function eventOf({ seq, ...event }: Omit<EventRow, 'node_id'>): LoggedEvent {
  return { ...event, seq: BigInt(seq) };
}

/**
 * Appends events to the event logs of their tenants, as the last step of the applying transaction. It locks the
 * tenants' counters in the order of their ids, so that sequence numbers follow commit order and appenders cannot
 * deadlock. On a new timeline the numbers continue after the ones that the server may have lost, which are never
 * reused: a reader behind one of them would miss what is new. Returns the last sequence number of each tenant.
 */
export async function appendEvents(db: Db, events: readonly NewEvent[]): Promise<Map<string, bigint>> {
  if (events.length === 0) return new Map();
  const unscoped = db.unscoped('a batch has events of several nodes');
  const byNode = Map.groupBy(events, ({ node_id }) => node_id);
  const counts = Array.from(byNode, ([nodeId, ofNode]) => ({ nodeId, count: ofNode.length }));
  const counters = await unscoped.raw(
    (sql) => sql<{ node_id: string; seq: string }>`
      insert into node_event_seq as known (node_id, seq, timeline)
      select node_id::uuid, count::bigint, ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer
      from unnest(${textColumn(counts, 'nodeId')}::text[], ${textColumn(counts, 'count')}::text[]) as given (node_id, count)
      order by node_id
      on conflict (node_id) do update set
        seq = excluded.seq
          + case when known.timeline <> excluded.timeline then (known.seq / 4294967296 + 1) * 4294967296 else known.seq end,
        timeline = excluded.timeline
      returning node_id, seq`,
  );
  const last = new Map(counters.map(({ node_id, seq }) => [node_id, BigInt(seq)]));
  const rows = [...byNode].flatMap(([nodeId, ofNode]) =>
    ofNode.map((event, index) => ({
      ...event,
      seq: (last.get(nodeId) ?? 0n) - BigInt(ofNode.length - index - 1),
      transaction: JSON.stringify(event.transaction),
    })),
  );
  await unscoped.raw((sql) => insertRows(sql, 'transaction_events', rows, APPENDED_COLUMNS));
  return last;
}

/** Removes the events of a transaction that moves to another tenant from the log of the one before. */
export async function removeEventsOf(db: Db, transactionId: string): Promise<void> {
  await db
    .unscoped('a transaction moves between nodes')
    .run((k) => k.deleteFrom('transaction_events').where('transaction_id', '=', transactionId));
}

/** Returns the events of each transaction as a nested list, in the order of the log. */
export function eventsByTransaction(db: Db): NestedList<LoggedEvent> {
  return nestedList(db, {
    ownerIds: 'text',
    rows: (k) => k.selectFrom('transaction_events').select(READ_COLUMNS),
    owner: 'transaction_id',
    order: ['seq'],
    show: eventOf,
  });
}

/**
 * Read access to the tenants' event logs. Sequence numbers are given in commit order: after an event has become
 * visible, no event with a lower number appears. A subscriber that has read up to `n` has therefore seen every event up
 * to `n`.
 */
export interface EventLog<Payload = EventRow['transaction']> {
  /**
   * Returns the first `limit` events of a tenant after `afterSeq`, in order. If the first few reach `PAGE_BYTES`,
   * returns only these, and the last of them has `isCut`.
   */
  readEvents(nodeId: string, afterSeq: bigint, limit: number): Promise<LoggedEvent<Payload>[]>;
  /** Returns the last sequence numbers given to events of tenants; a tenant that has had none is left out. */
  headSeqs(nodeIds: readonly string[]): Promise<Map<string, bigint>>;
  /** Returns the sequence number of the oldest event in a tenant's log; undefined if the log is empty. */
  oldestSeq(nodeId: string): Promise<bigint | undefined>;
}

/** The size in bytes, as JSON, at which a page of events ends: 500 long events could take 128 MB. */
export const PAGE_BYTES = 1_048_576;

/** Returns an event log that reads from the database. */
export function databaseEventLog(db: Db): EventLog {
  const page = db.prepareForms((k, { after, limit, most }: { after: string; limit: number; most: number }) =>
    k
      .selectFrom(
        k
          .selectFrom('transaction_events')
          .select(READ_COLUMNS)
          .select((eb) => {
            const size = eb.fn<number>('octet_length', [eb.cast('transaction', 'text')]);
            const bytes = eb.fn.sum<number>(size).over((over) => over.orderBy('seq'));
            return [size.as('size'), bytes.as('bytes')];
          })
          .where('seq', '>', after)
          .orderBy('seq')
          .limit(limit)
          .as('event'),
      )
      .selectAll()
      .where((eb) => eb(eb('bytes', '-', eb.ref('size')), '<', most))
      .orderBy('seq'),
  );
  return {
    async readEvents(nodeId, afterSeq, limit) {
      const rows = await page.run(nodeId, { after: afterSeq.toString(), limit, most: PAGE_BYTES });
      return rows.map(({ size: _, bytes, ...row }) => ({ ...eventOf(row), isCut: Number(bytes) >= PAGE_BYTES }));
    },

    async headSeqs(nodeIds) {
      const rows = await db.unscoped('one poll is of all nodes with subscribers').run((k) =>
        k
          .selectFrom('node_event_seq')
          .select(['node_id', 'seq'])
          .where((eb) => isOneOf(eb, 'node_id', nodeIds)),
      );
      return new Map(rows.map(({ node_id, seq }) => [node_id, BigInt(seq)]));
    },

    async oldestSeq(nodeId) {
      const [row] = await db
        .forNode(nodeId)
        .run((k) => k.selectFrom('transaction_events').select('seq').orderBy('seq').limit(1));
      return row && BigInt(row.seq);
    },
  };
}

const BATCH = 5_000;
const DAY_MS = 24 * 3_600_000;

/**
 * Deletes the events that are older than `retentionDays`, tenant by tenant, from the oldest on. Cursors before the
 * remaining events have then expired.
 */
export async function deleteOldEvents({
  db,
  nowMs,
  retentionDays,
}: {
  db: Db;
  nowMs(): number;
  retentionDays: number;
}): Promise<void> {
  const oldest = new Date(nowMs() - retentionDays * DAY_MS).toISOString();
  const unscoped = db.unscoped('retention of all nodes');
  const nodes = await unscoped.run((k) => k.selectFrom('node_event_seq').select('node_id'));
  for (const { node_id: nodeId } of nodes) {
    for (let deleted = BATCH; deleted === BATCH; ) {
      // A tenant's log is in the order of time, so its old events come first.
      const rows = await db.forNode(nodeId).run((k) =>
        k
          .deleteFrom('transaction_events')
          .where('occurred_at', '<', oldest)
          .where('seq', 'in', (eb) => eb.selectFrom('transaction_events').select('seq').orderBy('seq').limit(BATCH))
          .returning('seq'),
      );
      deleted = rows.length;
    }
  }
}

/** The maximum number of events in one read of the event log. */
export const PAGE_EVENTS = 500;
/**
 * The maximum number of events in the first read of a replay. PostgreSQL computes the size of all of them, even if the
 * first few reach `PAGE_BYTES`.
 */
export const FIRST_EVENTS = 50;

/** Returns whether there may be more events after a page that was read with a limit. */
export function hasMore(page: readonly LoggedEvent<unknown>[], limit = PAGE_EVENTS): boolean {
  return page.length >= limit || page.at(-1)?.isCut === true;
}

const BACKFILLS_AT_ONCE = 8;
const RETRY_MAX_MS = 1_000;
/** How long the reads of one subscriber may be refused because of overload, in milliseconds. */
export const OVERLOAD_MAX_MS = 10_000;

/**
 * Reads the event log and retries with a backoff until a read succeeds. Each method rejects with the reason of its
 * signal once that is aborted, even if the read has succeeded meanwhile.
 */
export class RetryingLog<Payload> {
  readonly #deps;
  readonly #backfills = new Semaphore({ permits: BACKFILLS_AT_ONCE, maxWaiting: Number.POSITIVE_INFINITY });
  #isDown = false;

  constructor(dependencies: {
    log: EventLog<Payload>;
    /** Called once for each outage, with its first error. */
    onError: (error: unknown) => void;
  }) {
    this.#deps = dependencies;
  }

  /** Reads the next page for a tailer. */
  readEvents(nodeId: string, afterSeq: bigint, signal: AbortSignal): Promise<LoggedEvent<Payload>[]> {
    return this.#persist(() => this.#deps.log.readEvents(nodeId, afterSeq, PAGE_EVENTS), signal);
  }

  /**
   * Reads the next page of a replay. All replays share a few permits, at most half of them for one tenant, each held
   * only while a page is read, so that neither a slow subscriber nor a tenant whose reads wait blocks the others.
   */
  backfill(
    nodeId: string,
    afterSeq: bigint,
    signal: AbortSignal,
    limit = PAGE_EVENTS,
  ): Promise<LoggedEvent<Payload>[]> {
    const read = () => this.#deps.log.readEvents(nodeId, afterSeq, limit);
    return this.#persist(() => this.#backfills.run(nodeId, read, signal), signal, OVERLOAD_MAX_MS);
  }

  async headSeq(nodeId: string, signal: AbortSignal): Promise<bigint> {
    return (await this.headSeqs([nodeId], signal, OVERLOAD_MAX_MS)).get(nodeId) ?? 0n;
  }

  headSeqs(nodeIds: readonly string[], signal: AbortSignal, overloadMs?: number): Promise<Map<string, bigint>> {
    return this.#persist(() => this.#deps.log.headSeqs(nodeIds), signal, overloadMs);
  }

  oldestSeq(nodeId: string, signal: AbortSignal): Promise<bigint | undefined> {
    return this.#persist(() => this.#deps.log.oldestSeq(nodeId), signal, OVERLOAD_MAX_MS);
  }

  /** @throws SlowConsumerError when reads have been refused because of overload for `overloadMs`. */
  async #persist<Result>(
    read: () => Promise<Result>,
    signal: AbortSignal,
    overloadMs = Number.POSITIVE_INFINITY,
  ): Promise<Result> {
    const givesUpAtMs = Date.now() + overloadMs;
    for (let failures = 1; ; failures += 1) {
      signal.throwIfAborted();
      try {
        const result = await read();
        this.#isDown = false;
        signal.throwIfAborted();
        return result;
      } catch (error) {
        signal.throwIfAborted();
        if (isOverload(error)) {
          if (Date.now() >= givesUpAtMs) throw new SlowConsumerError();
        } else {
          if (!this.#isDown) this.#deps.onError(error);
          this.#isDown = true;
        }
        await pause(backoffMs(failures, { maxMs: RETRY_MAX_MS }), signal);
      }
    }
  }
}

/**
 * Thrown when the event log cannot continue from a cursor without a gap: the cursor is older than the oldest event, or
 * was never issued.
 */
export class CursorExpiredError extends Error {
  override name = 'CursorExpiredError';

  constructor(after: bigint) {
    super(`the event log no longer has the events after ${after}`);
  }
}

/**
 * Thrown when too many events of a subscriber have not been sent. It may resume with the cursor of the last event that
 * it received.
 */
export class SlowConsumerError extends Error {
  override name = 'SlowConsumerError';

  constructor() {
    super('too many events are unsent');
  }
}

/**
 * Thrown when the process is stopping. The subscriber may resume with the cursor of the last event that it received.
 */
export class StreamStoppedError extends Error {
  override name = 'StreamStoppedError';

  constructor() {
    super('the service is stopping');
  }
}

import { type Expression, type ExpressionBuilder, ExpressionWrapper, type SqlBool, ValueNode } from 'kysely';
import { eventsByTransaction, type LoggedEvent } from '../../events/streams/event-log.ts';
import { type Instant, instantToIsoMillis } from '../../lib/instants.ts';
import type { PageRequest } from '../../lib/keyset.ts';
import type { Db } from '../../platform/database/database.ts';
import {
  isOneOf,
  keysetList,
  type NestedList,
  nestedList,
  type PagedList,
  startingWith,
} from '../../platform/database/keyset-list.ts';
import {
  STATUS,
  type TransactionCollection,
  type TransactionSnapshot,
  type TransactionStatus,
} from '../../tables/transaction-content.ts';
import { snapshotOf } from './join.rules.ts';
import { stateOfRow, type TransactionRow } from './transactions.store.ts';
import { TYPE_COUNTS } from './type-codes.rules.ts';

/** A filter of a transaction list; an undefined member does not filter. */
export interface TransactionFilter {
  collection?: TransactionCollection | undefined;
  status?: TransactionStatus | undefined;
  type?: number | undefined;
  /** The exact id or hash of a transaction. */
  idOrHash?: string | undefined;
  /** The exact error of a transaction. */
  error?: string | undefined;
  /** The beginning of its id or hash. */
  search?: string | undefined;
  /** The instant at or after which a transaction was last updated, by the `updated_at` of its notifications. */
  updatedSince?: Instant | undefined;
  /** The instant before which it was last updated. */
  updatedUntil?: Instant | undefined;
  /** Whether both Done and Error were reported. */
  conflict?: boolean | undefined;
  /** Whether its type code is unknown in its collection. */
  flagged?: boolean | undefined;
}

/** The number up to which the transactions that match a filter are counted. */
export const COUNTED_AT_MOST = 1_000;

/** The number of transactions of a time up to which a page of them sorts all. */
const SORTED_AT_MOST = 20_000;

/** The lengths in seconds of the periods that transactions are counted by. */
const BUCKET_SECONDS = { hour: 3_600n, day: 86_400n };

/** How many transactions of a status were last updated within a period that begins `at` (ISO 8601). */
export interface TransactionStat {
  at: string;
  status: TransactionStatus;
  count: number;
}

/** Returns an expression that is part of the statement's text. */
function literal<Text extends string>(text: Text): ExpressionWrapper<never, never, Text> {
  return new ExpressionWrapper(ValueNode.createImmediate(text));
}

/** How many characters of a hash are in its index. An index takes no text of any length, and a notification has any. */
const INDEXED_HASH = 512;

/** Returns the expression that the index has. */
function hashStart(eb: ExpressionBuilder<{ listed: TransactionRow }, 'listed'>) {
  return eb.fn<string>('left', ['transaction_hash', eb.lit(INDEXED_HASH)]);
}

/** Returns what `hashStart` selects of a text. */
function startOf(text: string): string {
  return [...text.slice(0, 2 * INDEXED_HASH)].slice(0, INDEXED_HASH).join('');
}

function columnsOfInstant({ seconds, nanos }: Instant) {
  return { seconds: seconds.toString(), nanos };
}

/** Reads the transactions of a tenant by keyset, in the order of their registration. */
export class TransactionPages extends keysetList({
  rows: (k) => k.selectFrom('transactions').selectAll(),
  valuesOf: ({
    updatedSince,
    updatedUntil,
    search,
    idOrHash,
    ...otherFilters
  }: TransactionFilter & { isSorted?: boolean }) => ({
    ...otherFilters,
    isDone: otherFilters.status === STATUS.Done,
    since: updatedSince && columnsOfInstant(updatedSince),
    until: updatedUntil && columnsOfInstant(updatedUntil),
    sought: idOrHash === undefined ? undefined : { text: idOrHash, start: startOf(idOrHash) },
    // An index has what begins with a text between it and the same with a character that sorts after all others.
    beginning:
      search === undefined
        ? undefined
        : { start: startOf(search), end: `${startOf(search)}\u{10ffff}`, pattern: startingWith(search) },
  }),
  where: (eb, { collection, status, isDone, type, error, sought, beginning, since, until, conflict, flagged }) => [
    ...(collection === undefined ? [] : [eb('collection', '=', collection)]),
    ...(status === undefined ? [] : [eb('status', '=', status)]),
    // The partial indexes serve only conditions that contain theirs as it is.
    ...(status === undefined || isDone ? [] : [eb('status', '<>', eb.lit(STATUS.Done))]),
    ...(type === undefined ? [] : [eb('type', '=', type)]),
    ...(error === undefined ? [] : [eb('error', '=', error)]),
    // It is true of every transaction. With it, PostgreSQL can combine the partial indexes of the statuses.
    ...(status !== undefined || (collection ?? type) === undefined
      ? []
      : [
          eb.or([
            eb('status', 'is', null),
            ...Object.values(STATUS).map((knownStatus) => eb('status', '=', eb.lit(knownStatus))),
          ]),
        ]),
    ...(sought === undefined
      ? []
      : [
          eb.or([
            eb('id', '=', sought.text),
            eb.and([
              eb(hashStart(eb), '=', sought.start),
              eb('transaction_hash', '=', sought.text),
              eb('transaction_hash', '<>', literal('')),
            ]),
          ]),
        ]),
    ...(beginning === undefined
      ? []
      : [
          eb.or(
            (
              [
                ['id', eb.ref('id')],
                ['transaction_hash', hashStart(eb)],
              ] as const
            ).map(([column, indexedText]) =>
              eb.and([
                eb(indexedText, '>=', beginning.start),
                eb(indexedText, '<', beginning.end),
                eb(column, '<>', literal('')),
                eb(column, 'like', beginning.pattern),
              ]),
            ),
          ),
        ]),
    // The first condition of each adds nothing: PostgreSQL estimates the rows of a range by one column, and not by two.
    ...(since === undefined
      ? []
      : [
          eb('updated_seconds', '>=', since.seconds),
          eb(eb.refTuple('updated_seconds', 'updated_nanos'), '>=', eb.tuple(since.seconds, since.nanos)),
        ]),
    ...(until === undefined
      ? []
      : [
          eb('updated_seconds', '<=', until.seconds),
          eb(eb.refTuple('updated_seconds', 'updated_nanos'), '<', eb.tuple(until.seconds, until.nanos)),
        ]),
    ...eitherWay(conflict, eb.and([eb.ref('done_seen'), eb.ref('error_seen')]), eb.not),
    ...eitherWay(
      flagged,
      eb.or([
        eb('type', '<', eb.lit(1)),
        ...TYPE_COUNTS.map(([of, count]) =>
          eb.and([eb('collection', '=', literal(of)), eb('type', '>', eb.lit(count))]),
        ),
      ]),
      eb.not,
    ),
  ],
  isSkewed: ({ collection, type, beginning, since, until }) =>
    (collection ?? type ?? beginning ?? since ?? until) !== undefined,
  isSorted: ({ isSorted = false }) => isSorted,
  order: ['registered_at', 'id'],
  countOrder: ({ since, until }) => (since ?? until) && 'updated_seconds',
  hasTextIds: true,
  show: shown,
}) {
  readonly #db: Db;
  /** The same list, which counts exactly whatever the filter. */
  readonly exact: PagedList<ShownTransaction, TransactionFilter>;
  /** The events of each transaction as a nested list, in the order of the event log. */
  readonly events: NestedList<LoggedEvent>;
  /** The transactions of each asset as a nested list, newest first. */
  readonly ofAssets: NestedList<ShownTransaction>;

  constructor(db: Db) {
    super(db);
    this.#db = db;
    this.exact = {
      page: (...args) => this.page(...args),
      count: (...args) => super.count(...args),
      keyOf: (row) => this.keyOf(row),
    };
    this.events = eventsByTransaction(db);
    this.ofAssets = nestedList(db, {
      ownerIds: 'uuid',
      rows: (k) => k.selectFrom('transactions').selectAll(),
      owner: 'asset_id',
      order: ['registered_at', 'id'],
      isNewestFirst: true,
      show: shown,
    });
  }

  /**
   * Reads a page. Where few transactions are of the filter's time or begin as it says, only these are read: those at the start
   * or the end of the list may all be others.
   */
  override async page(nodeId: string, filter: TransactionFilter, request: PageRequest) {
    const { updatedSince, updatedUntil, search } = filter;
    const isSorted =
      (updatedSince ?? updatedUntil ?? search) !== undefined &&
      (await this.countUpTo(nodeId, { updatedSince, updatedUntil, search }, SORTED_AT_MOST)) < SORTED_AT_MOST;
    return super.page(nodeId, { ...filter, isSorted }, request);
  }

  /** Counts the transactions that match a filter; Infinity if there are more than `COUNTED_AT_MOST`. */
  override async count(nodeId: string, filter: TransactionFilter): Promise<number> {
    if (Object.values(filter).every((value) => value === undefined)) return super.count(nodeId, filter);
    const counted = await this.countUpTo(nodeId, filter, COUNTED_AT_MOST + 1);
    return counted > COUNTED_AT_MOST ? Number.POSITIVE_INFINITY : counted;
  }

  /**
   * Counts transactions by status and by the period of their last update, from `since` until before `until`. Periods
   * begin at a whole hour or day of UTC; those without transactions are left out.
   */
  async stats(
    nodeId: string,
    { since, until, bucket }: { since: Instant; until: Instant; bucket: keyof typeof BUCKET_SECONDS },
  ): Promise<TransactionStat[]> {
    const length = BUCKET_SECONDS[bucket];
    const start = since.seconds - (((since.seconds % length) + length) % length);
    const [from, to] = [columnsOfInstant(since), columnsOfInstant(until)];
    const rows = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('transactions')
        .select((eb) => [
          eb.ref('status').$notNull().as('status'),
          eb(eb.parens('updated_seconds', '-', `${start}`), '/', `${length}`).as('period'),
          eb.fn.countAll<string>().as('count'),
        ])
        .where((eb) => eb(eb.refTuple('updated_seconds', 'updated_nanos'), '>=', eb.tuple(from.seconds, from.nanos)))
        .where((eb) => eb(eb.refTuple('updated_seconds', 'updated_nanos'), '<', eb.tuple(to.seconds, to.nanos)))
        .groupBy(['period', 'status'])
        .orderBy('period')
        .orderBy('status'),
    );
    return rows.map(({ period, status, count }) => ({
      at: instantToIsoMillis({ seconds: start + BigInt(period ?? 0) * length, nanos: 0 }),
      status,
      count: Number(count),
    }));
  }

  /** Returns the asset ids that transactions were registered with, by the ids of the transactions. */
  async assetIds(nodeId: string, ids: readonly string[]): Promise<Map<string, string>> {
    const rows = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('transactions')
        .select(['id', 'asset_id'])
        .where((eb) => isOneOf(eb, 'id', ids)),
    );
    return new Map(rows.flatMap(({ id, asset_id: assetId }) => (assetId === null ? [] : [[id, assetId]])));
  }

  /**
   * Reads a transaction together with its position in its tenant's event log: it includes all events up to `seq` and
   * none after it. Undefined when the tenant has no such transaction.
   */
  async positioned(nodeId: string, id: string): Promise<{ snapshot: TransactionSnapshot; seq: bigint } | undefined> {
    const [row] = await this.#db
      .forNode(nodeId)
      .run((k) =>
        k
          .selectFrom('transactions')
          .leftJoin('node_event_seq', 'node_event_seq.node_id', 'transactions.node_id')
          .selectAll('transactions')
          .select('node_event_seq.seq')
          .where('transactions.id', '=', id),
      );
    return row && { snapshot: snapshotOf(row.id, stateOfRow(row)), seq: BigInt(row.seq ?? 0) };
  }
}

function shown(row: TransactionRow) {
  return Object.assign(snapshotOf(row.id, stateOfRow(row)), { registered_at: row.registered_at });
}

type ShownTransaction = ReturnType<typeof shown>;

/** Returns the condition or its opposite, whichever is wanted; none if that is undefined. */
function eitherWay(
  wanted: boolean | undefined,
  condition: Expression<SqlBool>,
  not: (condition: Expression<SqlBool>) => Expression<SqlBool>,
): Expression<SqlBool>[] {
  return wanted === undefined ? [] : [wanted ? condition : not(condition)];
}

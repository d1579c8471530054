import type { Selectable } from 'kysely';
import type { Instant } from '../../lib/instants.ts';
import type { Page, PageRequest } from '../../lib/keyset.ts';
import type { Db } from '../../platform/database/database.ts';
import { keysetList, type NestedList, nestedList } from '../../platform/database/keyset-list.ts';
import type { Tables } from '../../tables/tables.ts';
import type { TransactionView } from './transaction-view.ts';
import { snapshotOfRow, type TransactionRow, type TransactionSnapshot } from './transaction-view.ts';
import type { TransactionCollection, TransactionStatus } from './type-codes.rules.ts';

const EVENT_COLUMNS = [
  'seq',
  'transaction_id',
  'status',
  'previous_status',
  'correlation_id',
  'transaction',
  'occurred_at',
] as const;

/** An event of the log as readers are shown it. `transaction` is the transaction as of the event. */
export type TransactionEventRow = Pick<Selectable<Tables['transaction_events']>, (typeof EVENT_COLUMNS)[number]>;

/** Which transactions a list has; a member that is undefined lets all through. */
export interface TransactionFilter {
  collection?: TransactionCollection | undefined;
  status?: TransactionStatus | undefined;
  type?: number | undefined;
  /** Last updated, by the notifications' own clock, at this instant or after it. */
  updatedSince?: Instant | undefined;
}

/** A transaction and its place in the list. */
export interface ListedTransaction extends TransactionView {
  /** When it was registered: PostgreSQL's text in UTC, to the microsecond. */
  registeredAt: string;
}

/** A transaction, and the last number of its node's event log that had been given when it was read. */
interface PositionedTransaction {
  snapshot: TransactionSnapshot;
  seq: bigint;
}

const TransactionList = keysetList({
  rows: (k) => k.selectFrom('transactions').selectAll(),
  given: ({ updatedSince: since, ...same }: TransactionFilter) => ({
    ...same,
    since: since && { seconds: since.seconds.toString(), nanos: since.nanos },
  }),
  where: (eb, { collection, status, type, since }) => [
    ...(collection === undefined ? [] : [eb('collection', '=', collection)]),
    ...(status === undefined ? [] : [eb('status', '=', status)]),
    ...(type === undefined ? [] : [eb('type', '=', type)]),
    ...(since === undefined
      ? []
      : [eb(eb.refTuple('updated_seconds', 'updated_nanos'), '>=', eb.tuple(since.seconds, since.nanos))]),
  ],
  order: ['registered_at', 'id'],
  hasTextIds: true,
});

/** Reads the transactions of a tenant by keyset, in the order of their registration. */
export class TransactionPages {
  readonly #db: Db;
  readonly #list: InstanceType<typeof TransactionList>;

  constructor(db: Db) {
    this.#db = db;
    this.#list = new TransactionList(db);
  }

  /** Reads a page of a tenant's transactions. */
  async page(nodeId: string, filter: TransactionFilter, request: PageRequest): Promise<Page<ListedTransaction>> {
    const { rows, hasMore } = await this.#list.page(nodeId, filter, request);
    return { rows: rows.map(listed), hasMore };
  }

  /** Counts the transactions that the filter lets through. */
  count(nodeId: string, filter: TransactionFilter): Promise<number> {
    return this.#list.count(nodeId, filter);
  }

  /** Reads the transactions with these ids, in no order; ids of other tenants are left out. */
  async byIds(nodeId: string, ids: readonly string[]): Promise<TransactionSnapshot[]> {
    return (await this.#list.byIds(nodeId, ids)).map(snapshotOfRow);
  }

  /** Reads the transaction with this id; undefined where the tenant has none. */
  async find(nodeId: string, id: string): Promise<TransactionSnapshot | undefined> {
    return (await this.byIds(nodeId, [id]))[0];
  }

  /** Reads a transaction as of one moment of its tenant's event log: what is logged after `seq` is not in it yet. */
  async positioned(nodeId: string, id: string): Promise<PositionedTransaction | undefined> {
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
    return row && { snapshot: snapshotOfRow(row), seq: BigInt(row.seq ?? 0) };
  }
}

function listed(row: TransactionRow): ListedTransaction {
  return Object.assign(snapshotOfRow(row), { registeredAt: row.registered_at });
}

/** Reads the events of transactions by keyset, in the order of the log; the sequence number is the key of a page. */
export class TransactionEventPages {
  readonly ofTransactions: NestedList<TransactionEventRow>;

  constructor(db: Db) {
    this.ofTransactions = nestedList(db, {
      owners: 'transactions',
      rows: (k) => k.selectFrom('transaction_events').select(EVENT_COLUMNS),
      owner: 'transaction_id',
      order: ['seq'],
    });
  }
}

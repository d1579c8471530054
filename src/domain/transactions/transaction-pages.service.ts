import type { Selectable } from 'kysely';
import type { Instant } from '../../lib/instants.ts';
import type { Page, PageKey, PageRequest } from '../../lib/keyset.ts';
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

/**
 * An event of the event log, as shown to readers. `transaction` is the state of the transaction right after the event.
 */
export type TransactionEventRow = Pick<Selectable<Tables['transaction_events']>, (typeof EVENT_COLUMNS)[number]>;

/** A filter of a transaction list; an undefined member does not filter. */
export interface TransactionFilter {
  collection?: TransactionCollection | undefined;
  status?: TransactionStatus | undefined;
  type?: number | undefined;
  /** The instant at or after which a transaction was last updated, by the `updated_at` of its notifications. */
  updatedSince?: Instant | undefined;
}

/** A transaction with its sort key in the list. */
export interface ListedTransaction extends TransactionView {
  /** The time of registration: PostgreSQL's text in UTC, to the microsecond. */
  registeredAt: string;
}

/** A transaction, with the last sequence number of its tenant's event log when it was read. */
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

  /** Reads one page of a tenant's transactions. */
  async page(nodeId: string, filter: TransactionFilter, request: PageRequest): Promise<Page<ListedTransaction>> {
    const { rows, hasMore } = await this.#list.page(nodeId, filter, request);
    return { rows: rows.map(listed), hasMore };
  }

  /** Counts the transactions that match the filter. */
  count(nodeId: string, filter: TransactionFilter): Promise<number> {
    return this.#list.count(nodeId, filter);
  }

  /** Returns the sort key of a transaction, for its cursor. */
  keyOf({ registeredAt: at, id }: ListedTransaction): PageKey {
    return { at, id };
  }

  /** Reads the transactions with these ids, in no particular order; ids of other tenants are left out. */
  async byIds(nodeId: string, ids: readonly string[]): Promise<TransactionSnapshot[]> {
    return (await this.#list.byIds(nodeId, ids)).map(snapshotOfRow);
  }

  /** Reads one transaction; undefined when the tenant has none with this id. */
  async find(nodeId: string, id: string): Promise<TransactionSnapshot | undefined> {
    return (await this.byIds(nodeId, [id]))[0];
  }

  /**
   * Reads a transaction together with its position in its tenant's event log: it includes all events up to `seq` and
   * none after it. Undefined when the tenant has no such transaction.
   */
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

/**
 * Reads the events of given transactions by keyset, in the order of the event log; the sort key is the sequence number.
 */
export class TransactionEventPages {
  readonly ofTransactions: NestedList<TransactionEventRow>;

  constructor(db: Db) {
    this.ofTransactions = nestedList(db, {
      ownerIds: 'text',
      rows: (k) => k.selectFrom('transaction_events').select(EVENT_COLUMNS),
      owner: 'transaction_id',
      order: ['seq'],
    });
  }
}

import type { Selectable } from 'kysely';
import type { Instant } from '../../lib/instants.ts';
import type { Db } from '../../platform/database/database.ts';
import { keysetList, type NestedList, nestedList } from '../../platform/database/keyset-list.ts';
import type { Tables } from '../../tables/tables.ts';
import { snapshotOf, stateOfRow, type TransactionRow, type TransactionSnapshot } from './transaction-view.ts';
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
  show: shown,
});

/** Reads the transactions of a tenant by keyset, in the order of their registration. */
export class TransactionPages extends TransactionList {
  readonly #db: Db;
  /** The events of each transaction as a nested list, in the order of the event log. */
  readonly events: NestedList<TransactionEventRow>;

  constructor(db: Db) {
    super(db);
    this.#db = db;
    this.events = nestedList(db, {
      ownerIds: 'text',
      rows: (k) => k.selectFrom('transaction_events').select(EVENT_COLUMNS),
      owner: 'transaction_id',
      order: ['seq'],
    });
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
    return row && { snapshot: snapshotOf(row.id, stateOfRow(row)), seq: BigInt(row.seq ?? 0) };
  }
}

function shown(row: TransactionRow) {
  return Object.assign(snapshotOf(row.id, stateOfRow(row)), { registered_at: row.registered_at });
}

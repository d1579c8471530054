import type { ExpressionBuilder } from 'kysely';
import type { Db } from '../db.ts';
import type { Tables } from '../entities.ts';
import type { Instant } from '../lib/iso-instant.ts';
import { type Page, type PageRequest, pageOf, pageRead } from '../lib/keyset.ts';
import { keysetPage } from '../lib/keyset-query.ts';
import { snapshotOf, stateOfRow, type TransactionRow, type TransactionSnapshot } from './transaction-rows.ts';
import type { TransactionCollection, TransactionStatus } from './type-codes.rules.ts';

/** Which transactions a list has; a member that is undefined lets all through. */
export interface TransactionFilter {
  collection?: TransactionCollection | undefined;
  status?: TransactionStatus | undefined;
  type?: number | undefined;
  /** Last updated, by the notifications' own clock, at this instant or after it. */
  updatedSince?: Instant | undefined;
}

/** A transaction and its place in the list. */
export interface ListedTransaction {
  snapshot: TransactionSnapshot;
  /** When it was registered: PostgreSQL's text in UTC, to the microsecond. */
  registeredAt: string;
}

/** A transaction, and the last number of its node's event log that had been given when it was read. */
export interface PositionedTransaction {
  snapshot: TransactionSnapshot;
  seq: bigint;
}

/** Reads transactions by keyset, in the order of their registration. */
export class TransactionPages {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** A page of a node's transactions. */
  async page(nodeId: string, filter: TransactionFilter, request: PageRequest): Promise<Page<ListedTransaction>> {
    const rows = await this.#db.forNode(nodeId).run((k) => {
      const listedOnes = k
        .selectFrom('transactions')
        .selectAll()
        .where((eb) => eb.and(conditions(eb, filter)));
      return keysetPage(listedOnes, pageRead(request), ['registered_at', 'id']);
    });
    return pageOf(rows.map(listed), request);
  }

  /** How many transactions the filter lets through. */
  async count(nodeId: string, filter: TransactionFilter): Promise<number> {
    const [counted] = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('transactions')
        .select((eb) => eb.fn.countAll<string>().as('total'))
        .where((eb) => eb.and(conditions(eb, filter))),
    );
    return Number(counted?.total ?? 0);
  }

  /** The transactions of these ids, in no order; those of other nodes are not among them. */
  async byIds(nodeId: string, ids: readonly string[]): Promise<TransactionSnapshot[]> {
    const rows = await this.#db
      .forNode(nodeId)
      .run((k) => k.selectFrom('transactions').selectAll().where('id', 'in', ids));
    return rows.map((row) => snapshotOf(row.id, stateOfRow(row)));
  }

  /** A transaction as of one moment of its node's event log: what is logged after `seq` is not in it yet. */
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

function listed(row: TransactionRow): ListedTransaction {
  return { snapshot: snapshotOf(row.id, stateOfRow(row)), registeredAt: row.registered_at };
}

function conditions(eb: ExpressionBuilder<Tables, 'transactions'>, filter: TransactionFilter) {
  const { collection, status, type, updatedSince } = filter;
  return [
    ...(collection === undefined ? [] : [eb('collection', '=', collection)]),
    ...(status === undefined ? [] : [eb('status', '=', status)]),
    ...(type === undefined ? [] : [eb('type', '=', type)]),
    ...(updatedSince === undefined
      ? []
      : [
          eb(
            eb.refTuple('updated_seconds', 'updated_nanos'),
            '>=',
            eb.tuple(updatedSince.seconds.toString(), updatedSince.nanos),
          ),
        ]),
  ];
}

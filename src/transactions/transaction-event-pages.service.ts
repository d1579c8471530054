import type { Db } from '../db.ts';
import { type Page, type PageRequest, pageOf } from '../lib/keyset.ts';

/** A row of the event log as readers are shown it. */
export interface TransactionEventRow {
  /** The number in the node's log, a decimal string. */
  seq: string;
  transaction_id: string;
  status: number;
  previous_status: number | null;
  correlation_id: string;
  /** The transaction as of the event. */
  transaction: Record<string, unknown>;
  /** PostgreSQL's text in UTC. */
  occurred_at: string;
}

/** Reads the events of transactions by keyset, in the order of the log; the page key is the sequence number. */
export class TransactionEventPages {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** The same page of each transaction, in one statement; a transaction without events in it is not in the map. */
  async ofTransactions(
    nodeId: string,
    ids: readonly string[],
    request: PageRequest,
  ): Promise<Map<string, Page<TransactionEventRow>>> {
    const { after, before, backward, size } = request;
    const direction = backward ? 'desc' : 'asc';
    const rows = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('transactions')
        .innerJoinLateral(
          (eb) =>
            eb
              .selectFrom('transaction_events as logged')
              .select([
                'logged.seq',
                'logged.transaction_id',
                'logged.status',
                'logged.previous_status',
                'logged.correlation_id',
                'logged.transaction',
                'logged.occurred_at',
              ])
              .whereRef('logged.transaction_id', '=', 'transactions.id')
              .$if(after !== undefined, (query) => query.where('logged.seq', '>', after?.at ?? ''))
              .$if(before !== undefined, (query) => query.where('logged.seq', '<', before?.at ?? ''))
              .orderBy('logged.seq', direction)
              .limit(size + 1)
              .as('event'),
          (join) => join.onTrue(),
        )
        .selectAll('event')
        .where('transactions.id', 'in', ids)
        .orderBy('event.seq', direction),
    );
    const byTransaction = Map.groupBy(rows, (row) => row.transaction_id);
    return new Map([...byTransaction].map(([id, read]) => [id, pageOf(read, request)]));
  }

  /** How many events each transaction has; one without any is not in the map. */
  async countOfTransactions(nodeId: string, ids: readonly string[]): Promise<Map<string, number>> {
    const rows = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('transaction_events')
        .select(['transaction_id', (eb) => eb.fn.countAll<string>().as('total')])
        .where('transaction_id', 'in', ids)
        .groupBy('transaction_id'),
    );
    return new Map(rows.map(({ transaction_id: id, total }) => [id, Number(total)]));
  }
}

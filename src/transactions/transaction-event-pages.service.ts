import type { Kysely } from 'kysely';
import type { Db } from '../db.ts';
import type { Tables } from '../entities.ts';
import { isOneOf } from '../lib/conditions.ts';
import { type Page, type PageRead, type PageRequest, pageRead, pagesBy } from '../lib/keyset.ts';
import type { FormedQuery } from '../lib/prepared-query.ts';
import type { Scoped } from '../lib/tenant-db.ts';

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

const columns = [
  'seq',
  'transaction_id',
  'status',
  'previous_status',
  'correlation_id',
  'transaction',
  'occurred_at',
] as const;

/** Reads the events of transactions by keyset, in the order of the log; the page key is the sequence number. */
export class TransactionEventPages {
  readonly #ofTransactions: FormedQuery<TransactionEventRow, { ids: readonly string[]; page: PageRead }>;
  readonly #countOfTransactions: FormedQuery<{ transaction_id: string; total: string }, { ids: readonly string[] }>;

  constructor(db: Db) {
    this.#ofTransactions = db.prepareForms(eventsOfTransactions);
    this.#countOfTransactions = db.prepareForms((k, { ids }) =>
      k
        .selectFrom('transaction_events')
        .select(['transaction_id', (eb) => eb.fn.countAll<string>().as('total')])
        .where((eb) => isOneOf(eb, 'transaction_id', ids))
        .groupBy('transaction_id'),
    );
  }

  /** The same page of each transaction, in one statement; a transaction without events in it is not in the map. */
  async ofTransactions(
    nodeId: string,
    ids: readonly string[],
    request: PageRequest,
  ): Promise<Map<string, Page<TransactionEventRow>>> {
    const rows = await this.#ofTransactions.run(nodeId, { ids, page: pageRead(request) });
    return pagesBy(rows, (row) => row.transaction_id, request);
  }

  /** How many events each transaction has; one without any is not in the map. */
  async countOfTransactions(nodeId: string, ids: readonly string[]): Promise<Map<string, number>> {
    const rows = await this.#countOfTransactions.run(nodeId, { ids });
    return new Map(rows.map(({ transaction_id: id, total }) => [id, Number(total)]));
  }
}

function eventsOfTransactions(k: Kysely<Scoped<Tables>>, { ids, page }: { ids: readonly string[]; page: PageRead }) {
  const { after, before, backward, limit } = page;
  const direction = backward ? 'desc' : 'asc';
  return k
    .selectFrom('transactions')
    .innerJoinLateral(
      (eb) =>
        eb
          .selectFrom('transaction_events as logged')
          .select(columns.map((column) => `logged.${column}` as const))
          .whereRef('logged.transaction_id', '=', 'transactions.id')
          .$if(after !== undefined, (query) => query.where('logged.seq', '>', after?.at ?? ''))
          .$if(before !== undefined, (query) => query.where('logged.seq', '<', before?.at ?? ''))
          .orderBy('logged.seq', direction)
          .limit(limit)
          .as('event'),
      (join) => join.onTrue(),
    )
    .select(columns.map((column) => `event.${column}` as const))
    .where((eb) => isOneOf(eb, 'transactions.id', ids))
    .orderBy('event.seq', direction);
}

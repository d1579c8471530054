import type { Selectable } from 'kysely';
import type { Db } from '../../platform/database/database.ts';
import { textArray } from '../../platform/database/sql-state.ts';
import type { Tables } from '../../tables/tables.ts';

export type DueLookup = Pick<Selectable<Tables['transaction_lookups']>, 'id' | 'attempts'>;

/** How many are taken, from the ones that are due now; they are nobody else's until then. */
interface Claim {
  limit: number;
  nowMs: number;
  untilMs: number;
}

/** The ids that notifications wait for and nobody has registered; each call is one statement unless it says otherwise. */
export class LookupStore {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** Notifications of these ids wait: in the transaction that parks them. */
  async add(ids: Iterable<string>): Promise<void> {
    const waiting = [...ids];
    if (waiting.length === 0) return;
    await this.#door().raw(
      (sql) => sql`
        insert into transaction_lookups (id) select id from unnest(${textArray(waiting)}::text[]) as w (id)
        on conflict do nothing`,
    );
  }

  /** The id is registered. */
  async remove(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    await this.#door().raw((sql) => sql`delete from transaction_lookups where id = any (${textArray(ids)}::text[])`);
  }

  /** Takes those that have waited longest, new ones first, and counts the attempt. */
  async claim({ limit, nowMs, untilMs }: Claim): Promise<DueLookup[]> {
    return this.#door().run((k) =>
      k
        // Not as a condition: the planner may run that more than once, and take more than the limit.
        .with(
          (cte) => cte('due').materialized(),
          (due) =>
            due
              .selectFrom('transaction_lookups')
              .select('id')
              .where('due_at', '<=', iso(nowMs))
              .orderBy('due_at')
              .limit(limit)
              .forUpdate()
              .skipLocked(),
        )
        .updateTable('transaction_lookups')
        .from('due')
        .set((eb) => ({ attempts: eb('transaction_lookups.attempts', '+', 1), due_at: iso(untilMs) }))
        .whereRef('transaction_lookups.id', '=', 'due.id')
        .returning(['transaction_lookups.id', 'transaction_lookups.attempts']),
    );
  }

  /** Nobody asks before a time. */
  async postpone(id: string, untilMs: number): Promise<void> {
    await this.#door().run((k) =>
      k
        .updateTable('transaction_lookups')
        .set({ due_at: iso(untilMs) })
        .where('id', '=', id),
    );
  }

  /** Mends what a process of an earlier version has left: it parks and registers without this table. Two statements. */
  async mend(): Promise<void> {
    await this.#door().run((k) =>
      k
        .insertInto('transaction_lookups')
        .columns(['id'])
        .expression((eb) =>
          eb
            .selectFrom('parked_notifications as parked')
            .select('parked.id')
            .distinct()
            .where(({ not, exists, selectFrom }) =>
              not(exists(selectFrom('transactions').select('id').whereRef('transactions.id', '=', 'parked.id'))),
            ),
        )
        .onConflict((conflict) => conflict.doNothing()),
    );
    await this.#door().run((k) =>
      k
        .deleteFrom('transaction_lookups')
        .where(({ exists, selectFrom }) =>
          exists(selectFrom('transactions').select('id').whereRef('transactions.id', '=', 'transaction_lookups.id')),
        ),
    );
  }

  #door() {
    return this.#db.unscoped('nobody knows yet whose the ids are');
  }
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

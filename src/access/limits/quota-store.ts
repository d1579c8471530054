import type { Db } from '../../platform/database/database.ts';

/** The number of requests of a client in a month (`YYYY-MM`, UTC), as far as a process knows it. */
export interface QuotaRow {
  client_id: string;
  node_id: string;
  month: string;
  /** The largest count that the cache or the database has returned. */
  seen: number;
  /** The requests that this process has counted since then without the cache. */
  own: number;
}

/** The time of the last request of a client, in ISO 8601. */
export interface LastUseRow {
  client_id: string;
  node_id: string;
  at: string;
}

/** Stores the counts and last uses of clients in the database, which keeps them when the cache is lost. */
export class QuotaStore {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /**
   * Saves counts and last uses in one transaction. A count becomes the larger of stored and `seen`, plus `own`; a last
   * use never goes back. Returns the stored counts in the order of `quotas`; undefined for a client that was deleted.
   */
  async save(quotas: readonly QuotaRow[], lastUses: readonly LastUseRow[]): Promise<(number | undefined)[]> {
    return this.#db.transaction(async () => {
      if (lastUses.length > 0) await this.#saveLastUses(lastUses);
      return quotas.length > 0 ? this.#saveQuotas(quotas) : [];
    });
  }

  async #saveQuotas(rows: readonly QuotaRow[]): Promise<(number | undefined)[]> {
    const unscoped = this.#db.unscoped('quota counters of all nodes are saved together');
    const json = JSON.stringify(rows);
    // The rows are written in the same order by every process, so that no deadlock arises.
    let saved = await unscoped.raw<{ client_id: string; month: string; used: string }>(
      (sql) => sql`
        insert into client_quotas as saved (client_id, node_id, month, used)
        select client_id, node_id, month, seen
        from json_to_recordset(${json}::json) as t (client_id uuid, node_id uuid, month text, seen bigint)
        where exists (select from clients c where c.id = t.client_id and c.node_id = t.node_id)
        order by client_id, month
        on conflict (client_id, month) do update set used = greatest(saved.used, excluded.used)
        returning client_id, month, used`,
    );
    if (rows.some(({ own }) => own > 0)) {
      const added = await unscoped.raw<(typeof saved)[number]>(
        (sql) => sql`
          update client_quotas saved set used = saved.used + t.own
          from json_to_recordset(${json}::json) as t (client_id uuid, month text, own bigint)
          where saved.client_id = t.client_id and saved.month = t.month and t.own > 0
          returning saved.client_id, saved.month, saved.used`,
      );
      saved = [...saved, ...added];
    }
    const used = new Map(saved.map((row) => [`${row.client_id} ${row.month}`, Number(row.used)]));
    return rows.map(({ client_id, month }) => used.get(`${client_id} ${month}`));
  }

  async #saveLastUses(rows: readonly LastUseRow[]): Promise<void> {
    const json = JSON.stringify(rows);
    await this.#db.unscoped('last uses of clients of all nodes are saved together').raw(
      (sql) => sql`
        update clients set last_used_at = t.at
        from (
          select c.id, u.at
          from json_to_recordset(${json}::json) as u (client_id uuid, node_id uuid, at timestamptz)
          join clients c on c.id = u.client_id and c.node_id = u.node_id
          where c.last_used_at is null or c.last_used_at < u.at
          order by c.id
          for no key update of c
        ) t
        where clients.id = t.id`,
    );
  }
}

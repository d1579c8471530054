import type { Insertable, Selectable } from 'kysely';
import type { Db } from '../../platform/database/database.ts';
import { textArray } from '../../platform/database/sql-state.ts';
import type { Tables } from '../../tables/tables.ts';
import type { MigrationTableRow } from './migration-pages.service.ts';

/** A migration that is done, without what the store adds to it. */
type DoneMigration = Omit<Insertable<Tables['migrations']>, 'node_id' | 'status' | 'created_at' | 'finished_at'>;

/** What is kept of a row of a migration; `index` counts from 1. */
export type RowOutcomeRow = Omit<Selectable<Tables['migration_rows']>, 'migration_id' | 'node_id'>;

/** Records migrations and their rows: each call is one statement, to be run inside of a transaction. */
export class MigrationStore {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** Records a migration that is done, and returns it. */
  async record(nodeId: string, done: DoneMigration, atMs: number): Promise<MigrationTableRow> {
    const at = new Date(atMs).toISOString();
    const values = { ...done, status: 'done' as const, created_at: at, finished_at: at };
    const [migration] = await this.#db
      .forNode(nodeId)
      .run((k) => k.insertInto('migrations').values(values).returningAll());
    if (!migration) throw new Error('a migration is recorded');
    return migration;
  }

  /** Records rows of a migration. */
  async recordRows(nodeId: string, migrationId: string, rows: readonly RowOutcomeRow[]): Promise<void> {
    const column = (name: keyof RowOutcomeRow) =>
      textArray(rows.map((row) => (row[name] === null ? null : String(row[name]))));
    await this.#db.unscoped('sets of rows of one node, which each statement names').raw(
      (sql) => sql`
        insert into migration_rows (migration_id, index, node_id, email, external_id, user_id, status, reason)
        select ${migrationId}::uuid, r.index::integer, ${nodeId}::uuid, r.email, r.external_id, r.user_id::uuid, r.status,
          r.reason
        from unnest(${column('index')}::text[], ${column('email')}::text[], ${column('external_id')}::text[],
          ${column('user_id')}::text[], ${column('status')}::text[], ${column('reason')}::text[])
          as r (index, email, external_id, user_id, status, reason)`,
    );
  }
}

import type { Selectable } from 'kysely';
import { noteUsers } from '../../audit/noted-users.ts';
import type { Db } from '../../platform/database/database.ts';
import { keysetList, type NestedList, nestedList } from '../../platform/database/keyset-list.ts';
import type { Tables } from '../../tables/tables.ts';
import { SHORTENED } from './migration-outcome.rules.ts';

/** The stored outcome of one row of a user migration. */
export type MigrationRowRow = Selectable<Tables['migration_rows']>;

const MigrationList = keysetList({
  rows: (k) => k.selectFrom('migrations').selectAll(),
  order: ['created_at', 'id'],
  isNewestFirst: true,
});

/** Reads the user migrations of a tenant by keyset, newest first. */
export class MigrationPages extends MigrationList {
  readonly #db: Db;
  /** The rows of each user migration as a nested list, in their order. */
  readonly rows: NestedList<MigrationRowRow>;
  /** The skipped and failed ones of them. */
  readonly rejectedRows: NestedList<MigrationRowRow>;

  constructor(db: Db) {
    super(db);
    this.#db = db;
    const list = { ownerIds: 'uuid', owner: 'migration_id', order: ['index'], onRows: noteUsersOf } as const;
    this.rows = nestedList(db, { ...list, rows: (k) => k.selectFrom('migration_rows').selectAll() });
    this.rejectedRows = nestedList(db, {
      ...list,
      rows: (k) => k.selectFrom('migration_rows').selectAll().where('status', '<>', 'created'),
    });
  }

  /** Reads the first failed rows of a user migration, in their order; with `shortened` the first that have a warning. */
  async failures(nodeId: string, id: string, limit: number, shortened = false): Promise<MigrationRowRow[]> {
    const rows = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('migration_rows')
        .selectAll()
        .where('migration_id', '=', id)
        .where((row) => (shortened ? row('external_id', '~', SHORTENED.source) : row('status', '=', 'failed')))
        .orderBy('index')
        .limit(limit),
    );
    noteUsersOf(rows);
    return rows;
  }
}

function noteUsersOf(rows: readonly MigrationRowRow[]): void {
  noteUsers(rows.flatMap(({ noted_users, user_id }) => noted_users ?? user_id ?? []));
}

import type { Selectable } from 'kysely';
import type { Db } from '../db.ts';
import type { Tables } from '../entities.ts';
import { newestFirst, type Page, type PageRequest, pageOf, pageRead, pagesBy } from '../lib/keyset.ts';
import { keysetPage } from '../lib/keyset-query.ts';

/** A migration as the table has it; times are PostgreSQL's text in UTC, to the microsecond. */
export type MigrationTableRow = Selectable<Tables['migrations']>;

/** A row of a migration as the table has it. */
export type MigrationRowRow = Selectable<Tables['migration_rows']>;

/** Reads the migrations of a node by keyset, newest first, and their rows in order. */
export class MigrationPages {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** A page of a node's migrations, newest first. */
  async page(nodeId: string, request: PageRequest): Promise<Page<MigrationTableRow>> {
    const rows = await this.#db
      .forNode(nodeId)
      .run((k) =>
        keysetPage(k.selectFrom('migrations').selectAll(), pageRead(newestFirst(request)), ['created_at', 'id']),
      );
    return pageOf(rows, request);
  }

  /** How many migrations the node has. */
  async count(nodeId: string): Promise<number> {
    const [counted] = await this.#db
      .forNode(nodeId)
      .run((k) => k.selectFrom('migrations').select((eb) => eb.fn.countAll<string>().as('total')));
    return Number(counted?.total ?? 0);
  }

  /** The migration with this id (a UUID); undefined where the node has none. */
  async find(nodeId: string, id: string): Promise<MigrationTableRow | undefined> {
    const [row] = await this.#db
      .forNode(nodeId)
      .run((k) => k.selectFrom('migrations').selectAll().where('id', '=', id));
    return row;
  }

  /** The same page of each migration's rows, in one statement; a migration without rows in it is not in the map. */
  async rowsOf(
    nodeId: string,
    ids: readonly string[],
    request: PageRequest,
  ): Promise<Map<string, Page<MigrationRowRow>>> {
    const { after, before, backward, size } = request;
    const direction = backward ? 'desc' : 'asc';
    const rows = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('migrations')
        .innerJoinLateral(
          (eb) =>
            eb
              .selectFrom('migration_rows as listed')
              .selectAll('listed')
              .whereRef('listed.migration_id', '=', 'migrations.id')
              .$if(after !== undefined, (query) => query.where('listed.index', '>', Number(after?.at)))
              .$if(before !== undefined, (query) => query.where('listed.index', '<', Number(before?.at)))
              .orderBy('listed.index', direction)
              .limit(size + 1)
              .as('row'),
          (join) => join.onTrue(),
        )
        .selectAll('row')
        .where('migrations.id', 'in', ids)
        .orderBy('row.index', direction),
    );
    return pagesBy(rows, (row) => row.migration_id, request);
  }

  /** The first failed rows of a migration, in order. */
  failures(nodeId: string, id: string, limit: number): Promise<MigrationRowRow[]> {
    return this.#db
      .forNode(nodeId)
      .run((k) =>
        k
          .selectFrom('migration_rows')
          .selectAll()
          .where('migration_id', '=', id)
          .where('status', '=', 'failed')
          .orderBy('index')
          .limit(limit),
      );
  }

  /** How many rows each migration has; one without any is not in the map. */
  async countRowsOf(nodeId: string, ids: readonly string[]): Promise<Map<string, number>> {
    const rows = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('migration_rows')
        .select(['migration_id', (eb) => eb.fn.countAll<string>().as('total')])
        .where('migration_id', 'in', ids)
        .groupBy('migration_id'),
    );
    return new Map(rows.map(({ migration_id: id, total }) => [id, Number(total)]));
  }
}

import type { Selectable } from 'kysely';
import type { Db } from '../db.ts';
import type { Tables } from '../entities.ts';
import { type Page, type PageRequest, pageOf, pageRead } from '../lib/keyset.ts';
import { keysetPage } from '../lib/keyset-query.ts';

/** What is shown of a supervisor: everything but the hash of the password. */
export const SUPERVISOR_COLUMNS = ['id', 'node_id', 'username', 'role', 'status', 'created_at', 'updated_at'] as const;

/** A supervisor as the table has one; times are PostgreSQL's text in UTC, to the microsecond. */
export type SupervisorRow = Pick<Selectable<Tables['supervisors']>, (typeof SUPERVISOR_COLUMNS)[number]>;

/** Reads the supervisors of a node by keyset, oldest first. */
export class SupervisorPages {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** A page of a node's supervisors, active or not. */
  async page(nodeId: string, request: PageRequest): Promise<Page<SupervisorRow>> {
    const rows = await this.#db
      .forNode(nodeId)
      .run((k) =>
        keysetPage(k.selectFrom('supervisors').select(SUPERVISOR_COLUMNS), pageRead(request), ['created_at', 'id']),
      );
    return pageOf(rows, request);
  }

  /** How many supervisors the node has. */
  async count(nodeId: string): Promise<number> {
    const [counted] = await this.#db
      .forNode(nodeId)
      .run((k) => k.selectFrom('supervisors').select((eb) => eb.fn.countAll<string>().as('total')));
    return Number(counted?.total ?? 0);
  }
}

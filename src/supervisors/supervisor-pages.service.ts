import type { Selectable } from 'kysely';
import type { Db } from '../db.ts';
import type { Tables } from '../entities.ts';
import { type Page, type PageRequest, pageOf } from '../lib/keyset.ts';

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
    const { after, before, backward, size } = request;
    const direction = backward ? 'desc' : 'asc';
    const rows = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('supervisors')
        .select(SUPERVISOR_COLUMNS)
        .$if(after !== undefined, (query) =>
          query.where((eb) => eb(eb.refTuple('created_at', 'id'), '>', eb.tuple(after?.at ?? '', after?.id ?? ''))),
        )
        .$if(before !== undefined, (query) =>
          query.where((eb) => eb(eb.refTuple('created_at', 'id'), '<', eb.tuple(before?.at ?? '', before?.id ?? ''))),
        )
        .orderBy('created_at', direction)
        .orderBy('id', direction)
        .limit(size + 1),
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

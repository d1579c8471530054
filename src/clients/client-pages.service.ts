import type { Selectable } from 'kysely';
import type { Db } from '../db.ts';
import type { Tables } from '../entities.ts';
import { type Page, type PageRequest, pageOf, pageRead } from '../lib/keyset.ts';
import { keysetPage } from '../lib/keyset-query.ts';

/** A client as the table has it; times are PostgreSQL's text in UTC, to the microsecond. It has no secret. */
export type ClientRow = Selectable<Tables['clients']>;

/** Reads the clients of a node by keyset, oldest first. */
export class ClientPages {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** A page of a node's clients, active or not. */
  async page(nodeId: string, request: PageRequest): Promise<Page<ClientRow>> {
    const rows = await this.#db
      .forNode(nodeId)
      .run((k) => keysetPage(k.selectFrom('clients').selectAll(), pageRead(request), ['created_at', 'id']));
    return pageOf(rows, request);
  }

  /** How many clients the node has. */
  async count(nodeId: string): Promise<number> {
    const [counted] = await this.#db
      .forNode(nodeId)
      .run((k) => k.selectFrom('clients').select((eb) => eb.fn.countAll<string>().as('total')));
    return Number(counted?.total ?? 0);
  }

  /** The client with this id (a UUID); undefined where the node has none. */
  async find(nodeId: string, id: string): Promise<ClientRow | undefined> {
    const [row] = await this.#db.forNode(nodeId).run((k) => k.selectFrom('clients').selectAll().where('id', '=', id));
    return row;
  }
}

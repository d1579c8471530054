import type { ExpressionBuilder, Selectable } from 'kysely';
import type { Db } from '../db.ts';
import type { Tables } from '../entities.ts';
import { containing } from '../lib/conditions.ts';
import { type Page, type PageRequest, pageOf, pageRead } from '../lib/keyset.ts';
import { keysetPage } from '../lib/keyset-query.ts';

/** A user as the table has it; times are PostgreSQL's text in UTC, to the microsecond. */
export type UserRow = Selectable<Tables['users']>;

/** Which users a list has. */
export interface UserFilter {
  /** A part of the name, the surname, the email, the external id or the wallet's address, in either case. */
  search?: string | undefined;
  kycVerified?: boolean | undefined;
}

/** Reads the users of a node by keyset, oldest first. */
export class UserPages {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** A page of a node's users. */
  async page(nodeId: string, filter: UserFilter, request: PageRequest): Promise<Page<UserRow>> {
    const rows = await this.#db.forNode(nodeId).run((k) => {
      const listed = k
        .selectFrom('users')
        .selectAll()
        .where((eb) => eb.and(conditions(eb, filter)));
      return keysetPage(listed, pageRead(request), ['created_at', 'id']);
    });
    return pageOf(rows, request);
  }

  /** How many users the filter lets through. */
  async count(nodeId: string, filter: UserFilter): Promise<number> {
    const [counted] = await this.#db.forNode(nodeId).run((k) =>
      k
        .selectFrom('users')
        .select((eb) => eb.fn.countAll<string>().as('total'))
        .where((eb) => eb.and(conditions(eb, filter))),
    );
    return Number(counted?.total ?? 0);
  }

  /** The user with this id (a UUID); undefined where the node has none. */
  async find(nodeId: string, id: string): Promise<UserRow | undefined> {
    const [row] = await this.#db.forNode(nodeId).run((k) => k.selectFrom('users').selectAll().where('id', '=', id));
    return row;
  }
}

const SEARCHED = ['name', 'surname', 'email', 'external_id', 'address'] as const;

function conditions(eb: ExpressionBuilder<Tables, 'users'>, { search, kycVerified }: UserFilter) {
  const pattern = containing(search ?? '');
  return [
    ...(kycVerified === undefined ? [] : [eb('kyc_verified', '=', kycVerified)]),
    ...(search === undefined ? [] : [eb.or(SEARCHED.map((column) => eb(column, 'ilike', pattern)))]),
  ];
}

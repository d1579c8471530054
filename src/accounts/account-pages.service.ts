import type { ExpressionBuilder } from 'kysely';
import type { Db } from '../db.ts';
import type { Tables } from '../entities.ts';
import { type Page, type PageRequest, pageOf } from '../lib/keyset.ts';
import { keysetPage } from '../lib/keyset-query.ts';
import { accountTotal } from './account-counts.ts';

/** An account as the table has it; times are PostgreSQL's text in UTC, to the microsecond. */
export interface AccountRow {
  id: string;
  name: string;
  node_id: string;
  type: string;
  status: number;
  created_at: string;
  updated_at: string;
  deleted_at: string | null;
}

/** Which accounts a list has; without `includeDeleted` those that are not deleted. */
export interface AccountFilter {
  type?: string | undefined;
  status?: number | undefined;
  /** A part of the name, in either case. */
  search?: string | undefined;
  includeDeleted?: boolean | undefined;
}

const columns = ['id', 'name', 'node_id', 'type', 'status', 'created_at', 'updated_at', 'deleted_at'] as const;

/** Reads accounts by keyset, oldest first: a page costs the same wherever it is. */
export class AccountPages {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /** A page of a node's accounts. */
  async page(nodeId: string, filter: AccountFilter, request: PageRequest): Promise<Page<AccountRow>> {
    const rows = await this.#db.forNode(nodeId).run((k) => {
      const listed = k
        .selectFrom('accounts')
        .select(columns)
        .where((eb) => eb.and(conditions(eb, filter)));
      return keysetPage(listed, request, ['created_at', 'id']);
    });
    return pageOf(rows, request);
  }

  /** How many accounts the filter lets through. */
  async count(nodeId: string, filter: AccountFilter): Promise<number> {
    const { type, status, search, includeDeleted } = filter;
    const isWhole = type === undefined && status === undefined && search === undefined;
    const [counted] = await this.#db.forNode(nodeId).run((k) =>
      isWhole
        ? accountTotal(k, includeDeleted ? 'total' : 'live')
        : k
            .selectFrom('accounts')
            .select((eb) => eb.fn.countAll().as('total'))
            .where((eb) => eb.and(conditions(eb, filter))),
    );
    return Number(counted?.total ?? 0);
  }

  /** The accounts of these ids, deleted ones too, in no order; those of other nodes are not among them. */
  byIds(nodeId: string, ids: readonly string[]): Promise<AccountRow[]> {
    return this.#db.forNode(nodeId).run((k) => k.selectFrom('accounts').select(columns).where('id', 'in', ids));
  }
}

function conditions(eb: ExpressionBuilder<Tables, 'accounts'>, filter: AccountFilter) {
  const { type, status, search, includeDeleted } = filter;
  return [
    ...(includeDeleted ? [] : [eb('deleted_at', 'is', null)]),
    ...(type === undefined ? [] : [eb('type', '=', type)]),
    ...(status === undefined ? [] : [eb('status', '=', status)]),
    ...(search === undefined ? [] : [eb('name', 'ilike', `%${search.replaceAll(/[\\%_]/g, '\\$&')}%`)]),
  ];
}

import type { ExpressionBuilder } from 'kysely';
import type { Db } from '../db.ts';
import type { Tables } from '../entities.ts';
import { containing, isOneOf } from '../lib/conditions.ts';
import { type Page, type PageRead, type PageRequest, pageOf, pageRead } from '../lib/keyset.ts';
import { keysetPage } from '../lib/keyset-query.ts';
import type { FormedQuery } from '../lib/prepared-query.ts';
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
  readonly #page: FormedQuery<AccountRow, { filter: Conditions; page: PageRead }>;
  readonly #count: FormedQuery<{ total: string }, Conditions>;
  readonly #total: FormedQuery<{ total: string | number | bigint }, { includeDeleted: boolean }>;
  readonly #byIds: FormedQuery<AccountRow, { ids: readonly string[] }>;

  constructor(db: Db) {
    this.#page = db.prepareForms((k, { filter, page }) => {
      const listed = k
        .selectFrom('accounts')
        .select(columns)
        .where((eb) => eb.and(conditions(eb, filter)));
      return keysetPage(listed, page, ['created_at', 'id']);
    });
    this.#count = db.prepareForms((k, filter) =>
      k
        .selectFrom('accounts')
        .select((eb) => eb.fn.countAll<string>().as('total'))
        .where((eb) => eb.and(conditions(eb, filter))),
    );
    this.#total = db.prepareForms((k, { includeDeleted }) => accountTotal(k, includeDeleted ? 'total' : 'live'));
    this.#byIds = db.prepareForms((k, { ids }) =>
      k
        .selectFrom('accounts')
        .select(columns)
        .where((eb) => isOneOf(eb, 'id', ids)),
    );
  }

  /** A page of a node's accounts. */
  async page(nodeId: string, filter: AccountFilter, request: PageRequest): Promise<Page<AccountRow>> {
    const rows = await this.#page.run(nodeId, { filter: conditionsOf(filter), page: pageRead(request) });
    return pageOf(rows, request);
  }

  /** How many accounts the filter lets through. */
  async count(nodeId: string, filter: AccountFilter): Promise<number> {
    const { type, status, search, includeDeleted = false } = filter;
    const isWhole = type === undefined && status === undefined && search === undefined;
    const [counted] = isWhole
      ? await this.#total.run(nodeId, { includeDeleted })
      : await this.#count.run(nodeId, conditionsOf(filter));
    return Number(counted?.total ?? 0);
  }

  /** The accounts of these ids, deleted ones too, in no order; those of other nodes are not among them. */
  byIds(nodeId: string, ids: readonly string[]): Promise<AccountRow[]> {
    return this.#byIds.run(nodeId, { ids });
  }
}

/** A filter as its query reads it. */
interface Conditions {
  type: string | undefined;
  status: number | undefined;
  pattern: string | undefined;
  includeDeleted: boolean;
}

function conditionsOf({ type, status, search, includeDeleted = false }: AccountFilter): Conditions {
  return { type, status, pattern: search === undefined ? undefined : containing(search), includeDeleted };
}

function conditions(eb: ExpressionBuilder<Tables, 'accounts'>, filter: Conditions) {
  const { type, status, pattern, includeDeleted } = filter;
  return [
    ...(includeDeleted ? [] : [eb('deleted_at', 'is', null)]),
    ...(type === undefined ? [] : [eb('type', '=', type)]),
    ...(status === undefined ? [] : [eb('status', '=', status)]),
    ...(pattern === undefined ? [] : [eb('name', 'ilike', pattern)]),
  ];
}

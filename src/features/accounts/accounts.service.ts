import type { Kysely } from 'kysely';
import { z } from 'zod';
import { IDS } from '../../lib/example-ids.ts';
import { columnsOf, instant, int, text, uuid, viewOf } from '../../lib/fields.ts';
import type { Db } from '../../platform/database/database.ts';
import { containing, keysetList } from '../../platform/database/keyset-list.ts';
import type { Scoped } from '../../platform/database/tenant-db.ts';
import type { Tables } from '../../tables/tables.ts';
import { accountCounts, type Counted } from './account-counts.store.ts';

/** The fields of an account, on every interface. */
export const account = z.strictObject({
  id: uuid({ description: 'The UUID.', example: 'a7b0c9d8-1e2f-4a3b-8c5d-6e7f8a9b0c1d' }),
  name: text({ description: 'The display name.', example: 'Treasury' }),
  node_id: uuid({ description: 'The tenant (node) that it belongs to.', example: IDS.node_id }),
  type: text({
    description: 'Such as `organisation` or `customer-segregated`; more values may be added.',
    example: 'organisation',
  }),
  status: int({ description: '1 active, 2 suspended, 3 closed; more values may be added.', example: 1 }),
  created_at: instant({ description: 'When it was created.', example: '2026-11-01T08:00:00.000Z' }),
  updated_at: instant({ description: 'When it was last changed.', example: '2026-11-20T16:45:30.250Z' }),
  deleted_at: instant({ description: 'When it was deleted; null if it was not.' }).nullable(),
});

const columns = columnsOf(account);

/** An account as read from the table; times are PostgreSQL's text in UTC, to the microsecond. */
export type AccountRow = z.output<typeof account>;

/** Returns an account as REST and the MCP tools show it. */
export const accountView = viewOf(account);

/**
 * The largest number of rows that a page query skips by OFFSET; later pages begin at a position that the counts store.
 */
const SKIPPED_AT_MOST = 256n;

/** Reads the accounts of a tenant by page number. */
export class Accounts {
  readonly #db: Db;
  readonly #live: PageQueries;
  readonly #all: PageQueries;

  constructor(db: Db) {
    this.#db = db;
    this.#live = pageQueries(db, 'live');
    this.#all = pageQueries(db, 'total');
  }

  /**
   * Returns a page by its number (from 1), oldest account first, with the exact total of accounts. A page past the end
   * is empty. Late pages cost hardly more than early ones.
   */
  async page({
    nodeId,
    page,
    limit,
    includeDeleted,
  }: {
    nodeId: string;
    page: number;
    limit: number;
    includeDeleted: boolean;
  }): Promise<{
    /** The accounts as REST shows them (docs/contract.md, 2.5-01), with ISO 8601 times. */
    data: AccountRow[];
    total: number;
  }> {
    const { counts, first, from } = includeDeleted ? this.#all : this.#live;
    const offset = BigInt(page - 1) * BigInt(limit);
    if (offset <= SKIPPED_AT_MOST) {
      const [total, rows] = await this.#db.together(nodeId, () =>
        Promise.all([counts.total(nodeId), first.run(nodeId, { limit, offset })]),
      );
      return { data: rows.map(accountView), total };
    }
    const position = await counts.positionNear(nodeId, offset);
    if (!position || offset >= BigInt(position.total)) return { data: [], total: position?.total ?? 0 };
    const { at, id, before, total } = position;
    const rows = await from.run(nodeId, { at, id, limit, offset: offset - BigInt(before) });
    return { data: rows.map(accountView), total };
  }
}

interface Skipped {
  limit: number;
  offset: bigint;
}

type PageQueries = ReturnType<typeof pageQueries>;

function pageQueries(db: Db, counted: Counted) {
  const rows = (k: Kysely<Scoped<Tables>>, { limit, offset }: Skipped) =>
    k
      .selectFrom('accounts')
      .select(columns)
      .$if(counted === 'live', (query) => query.where('deleted_at', 'is', null))
      .orderBy('created_at')
      .orderBy('id')
      .limit(limit)
      .offset(offset);
  return {
    counts: accountCounts(db, counted),
    first: db.prepareForms(rows),
    from: db.prepareForms((k, { at, id, ...skipped }: Skipped & { at: string; id: string }) =>
      rows(k, skipped).where((eb) => eb(eb.refTuple('created_at', 'id'), '>=', eb.tuple(at, id))),
    ),
  };
}

/** A filter of an account list; without `includeDeleted`, deleted accounts are left out. */
export interface AccountFilter {
  id?: string | undefined;
  type?: string | undefined;
  status?: number | undefined;
  /** Text that the name must contain, ignoring case. */
  search?: string | undefined;
  includeDeleted?: boolean | undefined;
}

const AccountList = keysetList({
  rows: (k) => k.selectFrom('accounts').select(columns),
  valuesOf: ({ search, includeDeleted = false, ...otherFilters }: AccountFilter) => ({
    ...otherFilters,
    pattern: search === undefined ? undefined : containing(search),
    includeDeleted,
  }),
  where: (eb, { id, type, status, pattern, includeDeleted }) => [
    ...(id === undefined ? [] : [eb('id', '=', id)]),
    ...(includeDeleted ? [] : [eb('deleted_at', 'is', null)]),
    ...(type === undefined ? [] : [eb('type', '=', type)]),
    ...(status === undefined ? [] : [eb('status', '=', status)]),
    ...(pattern === undefined ? [] : [eb('name', 'ilike', pattern)]),
  ],
  order: ['created_at', 'id'],
});

/** Reads the accounts of a tenant by keyset, oldest first. A lookup by id also finds deleted accounts. */
export class AccountPages extends AccountList {
  readonly #counts: Record<Counted, ReturnType<typeof accountCounts>>;

  constructor(db: Db) {
    super(db);
    this.#counts = { live: accountCounts(db, 'live'), total: accountCounts(db, 'total') };
  }

  /**
   * Counts the accounts that match the filter. The number of all accounts of a tenant is computed without reading them.
   */
  override async count(nodeId: string, filter: AccountFilter): Promise<number> {
    const { includeDeleted = false, ...narrowing } = filter;
    if (Object.values(narrowing).some((value) => value !== undefined)) return super.count(nodeId, filter);
    return this.#counts[includeDeleted ? 'total' : 'live'].total(nodeId);
  }
}

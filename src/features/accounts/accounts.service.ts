import { z } from 'zod';
import { IDS } from '../../lib/example-ids.ts';
import { columnsOf, instant, int, text, uuid, viewOf } from '../../lib/fields.ts';
import type { Db, ScopedKysely } from '../../platform/database/database.ts';
import { containing, keysetList } from '../../platform/database/keyset-list.ts';

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
  const rows = (k: ScopedKysely, { limit, offset }: Skipped) =>
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

/** Reads the accounts of a tenant by keyset, oldest first. A lookup by id also finds deleted accounts. */
export class AccountPages extends keysetList({
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
}) {
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

/** Selects the accounts to count: `live` are those that are not deleted, `total` are all. */
type Counted = 'live' | 'total';

/**
 * Returns what counts a tenant's accounts and finds the position of a row number, at a cost that hardly grows with the
 * number of accounts. Both results are exact for the snapshot of the statement that reads
 * them.
 */
function accountCounts(db: Db, counted: Counted) {
  const totalQuery = db.prepareForms((k) =>
    k
      .selectFrom(
        k
          .selectFrom('account_superblocks')
          .select(`${counted} as count`)
          .unionAll(k.selectFrom('account_changes').select(`${counted} as count`))
          .as('counts'),
      )
      .select((eb) => eb.fn.sum('count').as('total')),
  );
  // Finds the superblock, and within it the block, that contains a row number. `before` is the number of rows before the
  // block: the counts of the preceding blocks, plus the preceding changes that no block has counted yet.
  const positionQuery = db.prepareForms((k, { offset }: { offset: number }) =>
    k
      .with('superblock_place', (w) =>
        w
          .selectFrom('account_superblocks')
          .select((eb) => ['start_at as at', 'start_id as id', `${counted} as count`, eb.lit<number>(0).as('kind')])
          .unionAll(
            w
              .selectFrom('account_changes')
              .select((eb) => ['at', 'id', `${counted} as count`, eb.lit<number>(1).as('kind')]),
          ),
      )
      .with('superblock_sum', (w) =>
        w.selectFrom('superblock_place').select((eb) => [
          'at',
          'id',
          'kind',
          eb(
            eb.fn.sum<number>('count').over((over) => over.orderBy('at').orderBy('id').orderBy('kind')),
            '-',
            eb.ref('count'),
          ).as('before'),
          eb.fn.sum('count').over().as('total'),
          eb.fn
            .agg<string | null>('lead', ['at'])
            .over((over) => over.partitionBy('kind').orderBy('at').orderBy('id'))
            .as('end_at'),
          eb.fn
            .agg<string | null>('lead', ['id'])
            .over((over) => over.partitionBy('kind').orderBy('at').orderBy('id'))
            .as('end_id'),
        ]),
      )
      .with('superblock', (w) =>
        w
          .selectFrom('superblock_sum')
          .select((eb) => [
            'at',
            'id',
            'before',
            'total',
            eb.fn.coalesce('end_at', eb.val('infinity')).as('end_at'),
            eb.fn.coalesce('end_id', eb.val('ffffffff-ffff-ffff-ffff-ffffffffffff')).as('end_id'),
          ])
          .where('kind', '=', 0)
          .where('before', '<=', offset)
          .orderBy('at', 'desc')
          .orderBy('id', 'desc')
          .limit(1),
      )
      .with('block_place', (w) =>
        w
          .selectFrom('superblock as s')
          .innerJoin('account_blocks as b', (join) =>
            join
              .on((eb) => eb(eb.refTuple('b.start_at', 'b.start_id'), '>=', eb.refTuple('s.at', 's.id')))
              .on((eb) => eb(eb.refTuple('b.start_at', 'b.start_id'), '<', eb.refTuple('s.end_at', 's.end_id'))),
          )
          .select((eb) => [
            'b.start_at as at',
            'b.start_id as id',
            `b.${counted} as count`,
            eb.lit<number>(0).as('kind'),
          ])
          .unionAll(
            w
              .selectFrom('superblock as s')
              .innerJoin('account_changes as c', (join) =>
                join
                  .on((eb) => eb(eb.refTuple('c.at', 'c.id'), '>=', eb.refTuple('s.at', 's.id')))
                  .on((eb) => eb(eb.refTuple('c.at', 'c.id'), '<', eb.refTuple('s.end_at', 's.end_id'))),
              )
              .select((eb) => ['c.at as at', 'c.id as id', `c.${counted} as count`, eb.lit<number>(1).as('kind')]),
          ),
      )
      .with('block_sum', (w) =>
        w.selectFrom('block_place').select((eb) => [
          'at',
          'id',
          'kind',
          eb(
            eb.fn.sum<number>('count').over((over) => over.orderBy('at').orderBy('id').orderBy('kind')),
            '-',
            eb.ref('count'),
          ).as('before'),
        ]),
      )
      .selectFrom('block_sum as b')
      .innerJoin('superblock as s', (join) => join.onTrue())
      .select((eb) => ['b.at', 'b.id', 's.total', eb('b.before', '+', eb.ref('s.before')).as('before')])
      .where('b.kind', '=', 0)
      .where((eb) => eb(eb('b.before', '+', eb.ref('s.before')), '<=', offset))
      .orderBy('b.at', 'desc')
      .orderBy('b.id', 'desc')
      .limit(1),
  );
  return {
    async total(nodeId: string): Promise<number> {
      const [row] = await totalQuery.run(nodeId, {});
      return Number(row?.total ?? 0);
    },

    /**
     * Returns a position a few rows before the row number `offset`: its sort key `at` and `id`, the number of rows
     * `before` it, and the `total` of the tenant's accounts. Undefined when the tenant has never had an account.
     */
    async positionNear(nodeId: string, offset: bigint) {
      const [row] = await positionQuery.run(nodeId, { offset: Number(offset) });
      return row && { total: Number(row.total), at: row.at, id: row.id, before: Number(row.before) };
    },
  };
}

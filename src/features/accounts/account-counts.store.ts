import type { Kysely } from 'kysely';
import type { Db } from '../../platform/database/database.ts';
import type { Scoped } from '../../platform/database/tenant-db.ts';
import type { Tables } from '../../tables/tables.ts';

/** Selects the accounts to count: `live` are those that are not deleted, `total` are all. */
export type Counted = 'live' | 'total';

/**
 * Returns what counts a tenant's accounts and finds the position of a row number, at a cost that hardly grows with the
 * number of accounts. Both results are exact for the snapshot of the statement that reads
 * them.
 */
export function accountCounts(db: Db, counted: Counted) {
  const totalQuery = db.prepareForms((k) => accountTotal(k, counted));
  const positionQuery = placeQuery(db, counted);
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

/** Builds the query that returns a tenant's number of accounts. */
function accountTotal(k: Kysely<Scoped<Tables>>, counted: Counted) {
  return k
    .selectFrom(
      k
        .selectFrom('account_superblocks')
        .select(`${counted} as count`)
        .unionAll(k.selectFrom('account_changes').select(`${counted} as count`))
        .as('counts'),
    )
    .select((eb) => eb.fn.sum('count').as('total'));
}

/**
 * Prepares the query that finds the superblock, and within it the block, that contains a row number. `before` is the
 * number of rows before the block: the counts of the preceding blocks, plus the preceding changes that have not been
 * added to a block's count yet.
 */
function placeQuery(db: Db, counted: Counted) {
  return db.prepareForms((k, { offset }: { offset: number }) =>
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
}

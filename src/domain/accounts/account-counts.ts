import type { Kysely } from 'kysely';
import type { Db } from '../../platform/database/database.ts';
import type { PreparedQuery } from '../../platform/database/prepared-query.ts';
import type { Scoped } from '../../platform/database/tenant-db.ts';
import type { Tables } from '../../tables/tables.ts';

/** Which accounts are counted: those that are not deleted, or all. */
export type Counted = 'live' | 'total';

/** Where a row of a list stands: at or after this account, with `before` rows before that. */
interface AccountPlace {
  total: number;
  at: string;
  id: string;
  before: number;
}

interface PlaceRow {
  total: string | number | bigint | null;
  at: string;
  id: string;
  before: string | number | bigint;
}

/**
 * How many accounts a node has, and where in the list a row is, at a cost that hardly grows with their number (decisions:
 * counts of accounts). Both are exact: they are of the statement's own snapshot.
 */
export class AccountCounts {
  readonly #total: PreparedQuery<{ total: string | number | bigint | null }, string>;
  readonly #place: PreparedQuery<PlaceRow, 'offset'>;

  constructor(db: Db, counted: Counted) {
    this.#total = db.prepare((k) => accountTotal(k, counted));
    this.#place = placeQuery(db, counted);
  }

  async total(nodeId: string): Promise<number> {
    const [row] = await this.#total.run(nodeId, {});
    return Number(row?.total ?? 0);
  }

  /** A place from which the row at `offset` is not far; undefined where the node has never had an account. */
  async place(nodeId: string, offset: bigint): Promise<AccountPlace | undefined> {
    const [row] = await this.#place.run(nodeId, { offset: offset.toString() });
    return row && { total: Number(row.total), at: row.at, id: row.id, before: Number(row.before) };
  }
}

/** The query for how many accounts a node has. */
export function accountTotal(k: Kysely<Scoped<Tables>>, counted: Counted) {
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
 * The superblock with the row, then the block in it. `before` counts the rows before a block's start: those of the
 * blocks before it, and the changes before it that are not in a block's count yet.
 */
function placeQuery(db: Db, counted: Counted) {
  return db.prepare((k, value: <Value>(name: 'offset') => Value) =>
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
          .where('before', '<=', value<number>('offset'))
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
      .where((eb) => eb(eb('b.before', '+', eb.ref('s.before')), '<=', value<number>('offset')))
      .orderBy('b.at', 'desc')
      .orderBy('b.id', 'desc')
      .limit(1),
  );
}

import type {
  Expression,
  ExpressionBuilder,
  ReferenceExpression,
  SelectQueryBuilder,
  SqlBool,
  StringReference,
} from 'kysely';
import type { PageKey, PageRead } from '../../lib/keyset.ts';

/** The pattern of `like` for texts that have this one as a part. */
export function containing(part: string): string {
  return `%${part.replaceAll(/[\\%_]/g, '\\$&')}%`;
}

/** Whether a column has one of the values: one parameter however many they are, so that the statement stays the same. */
export function isOneOf<DB, TB extends keyof DB>(
  eb: ExpressionBuilder<DB, TB>,
  column: ReferenceExpression<DB, TB>,
  values: readonly string[],
): Expression<SqlBool> {
  return eb(column, '=', eb.fn.any(eb.val(values)) as never);
}

/**
 * Restricts a query to a page, and orders it in the direction of the request. `at` and `id` are the columns of the list's
 * order, both given as text; a list whose `at` tells its rows apart has no `id`.
 */
export function keysetPage<DB, TB extends keyof DB, Row>(
  query: SelectQueryBuilder<DB, TB, Row>,
  { after, before, backward, limit }: PageRead,
  [at, id]: readonly [at: StringReference<DB, TB>, id?: StringReference<DB, TB> | undefined],
): SelectQueryBuilder<DB, TB, Row> {
  const direction = backward ? 'desc' : 'asc';
  // The columns' types are those of the caller's tables: here nobody knows that they are texts.
  const beyond = (operator: '>' | '<', key: PageKey) => (q: typeof query) =>
    q.where((eb) =>
      id === undefined
        ? eb(at, operator, key.at as never)
        : eb(eb.refTuple(at, id), operator, eb.tuple(key.at, key.id) as never),
    );
  return query
    .$call(after === undefined ? (q) => q : beyond('>', after))
    .$call(before === undefined ? (q) => q : beyond('<', before))
    .orderBy(at, direction)
    .$call((q) => (id === undefined ? q : q.orderBy(id, direction)))
    .limit(limit);
}

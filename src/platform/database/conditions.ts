import type {
  Expression,
  ExpressionBuilder,
  ReferenceExpression,
  SelectQueryBuilder,
  SqlBool,
  StringReference,
} from 'kysely';
import type { PageKey, PageRequest } from '../../lib/keyset.ts';

/** Returns the `like` pattern for texts that contain `part`, with its `\`, `%` and `_` escaped. */
export function containing(part: string): string {
  return `%${startingWith(part)}`;
}

/** Returns the `like` pattern for texts that start with `part`. */
export function startingWith(part: string): string {
  return `${part.replaceAll(/[\\%_]/g, '\\$&')}%`;
}

/**
 * Returns the condition that a column has one of the values. They are a single array parameter, so that the statement's
 * text does not depend on their number.
 */
export function isOneOf<DB, TB extends keyof DB>(
  eb: ExpressionBuilder<DB, TB>,
  column: ReferenceExpression<DB, TB>,
  values: readonly string[],
): Expression<SqlBool> {
  return eb(column, '=', eb.fn.any(eb.val(values)) as never);
}

/**
 * Restricts a query to the rows of a request, and sorts it in the direction in which the page is read. `at` and `id` name the
 * columns of the sort key; `id` is left out where `at` alone is unique.
 */
export function keysetPage<DB, TB extends keyof DB, Row>(
  query: SelectQueryBuilder<DB, TB, Row>,
  { after, before, backward, size }: PageRequest,
  [at, id]: readonly [at: StringReference<DB, TB>, id?: StringReference<DB, TB> | undefined],
): SelectQueryBuilder<DB, TB, Row> {
  const direction = backward ? 'desc' : 'asc';
  // The casts are needed because the types of a generic table's columns are unknown here.
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
    .limit(size);
}

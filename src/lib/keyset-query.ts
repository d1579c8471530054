import type { SelectQueryBuilder, StringReference } from 'kysely';
import type { PageKey, PageRead } from './keyset.ts';

/**
 * The part of a query that a page asks for, in the direction of the request. `at` and `id` are the columns of the list's order, both given as text.
 */
export function keysetPage<DB, TB extends keyof DB, Row>(
  query: SelectQueryBuilder<DB, TB, Row>,
  { after, before, backward, limit }: PageRead,
  [at, id]: readonly [at: StringReference<DB, TB>, id: StringReference<DB, TB>],
): SelectQueryBuilder<DB, TB, Row> {
  const direction = backward ? 'desc' : 'asc';
  // The columns' types are those of the caller's tables: here nobody knows that they are texts.
  const beyond = (operator: '>' | '<', key: PageKey) => (q: typeof query) =>
    q.where((eb) => eb(eb.refTuple(at, id), operator, eb.tuple(key.at, key.id) as never));
  return query
    .$call(after === undefined ? (q) => q : beyond('>', after))
    .$call(before === undefined ? (q) => q : beyond('<', before))
    .orderBy(at, direction)
    .orderBy(id, direction)
    .limit(limit);
}

import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ScopedKysely } from '../../src/platform/database/database.ts';
import type { Database } from '../../src/platform/database/open-database.ts';
import { embeddedDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';
import { seedTwoNodes } from '../support/tenancy/two-nodes.ts';

interface Asked {
  name: string | undefined;
  ids: string[] | undefined;
  deleted: boolean | null;
  order: { descending: boolean };
  limit: number;
}

function accounts(k: ScopedKysely, { name, ids, deleted, order, limit }: Asked) {
  return k
    .selectFrom('accounts')
    .select(['id', 'name', 'node_id', 'created_at'])
    .$if(name !== undefined, (query) => query.where('name', 'like', name ?? ''))
    .$if(ids !== undefined, (query) => query.where('id', '=', (eb) => eb.fn.any(eb.val(ids ?? []))))
    .$if(deleted !== null, (query) => query.where('deleted_at', deleted ? 'is not' : 'is', null))
    .orderBy('id', order.descending ? 'desc' : 'asc')
    .limit(limit);
}

/** Whatever is asked, a prepared query gives the rows that Kysely gives where it builds and compiles it anew. */
async function givesTheSameRows(opened: Promise<Database>): Promise<void> {
  await using database = await opened;
  const { mine, other } = await seedTwoNodes(database.db);
  const prepared = database.db.prepareForms(accounts);
  const ids = fc.subarray([...mine.accountIds, ...other.accountIds]);
  const asked: fc.Arbitrary<Asked> = fc.record({
    name: fc.option(fc.constantFrom('%', 'a%', '%1', "'"), { nil: undefined }),
    ids: fc.option(ids, { nil: undefined }),
    deleted: fc.option(fc.boolean()),
    order: fc.record({ descending: fc.boolean() }, { noNullPrototype: true }),
    limit: fc.integer({ min: 0, max: 9 }),
  });
  let rows = 0;
  await fc.assert(
    fc.asyncProperty(asked, fc.constantFrom(mine.nodeId, other.nodeId), async (given, nodeId) => {
      const own = await prepared.run(nodeId, given);
      expect(own).toEqual(await database.db.forNode(nodeId).run((k) => accounts(k, given)));
      rows += own.length;
    }),
    { numRuns: 150 },
  );
  expect(rows).toBeGreaterThan(0);
}

it('D4-01: a prepared query returns the same rows as Kysely on the embedded database', () =>
  givesTheSameRows(embeddedDatabase()));

describeReal('postgres', 'on PostgreSQL', () => {
  it('D4-01: a prepared query returns the same rows as Kysely', () => givesTheSameRows(realDatabase()));
});

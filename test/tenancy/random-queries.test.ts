import fc from 'fast-check';
import type { Kysely } from 'kysely';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import type { Database } from '../../src/platform/database/database.ts';
import { scratchDatabase } from '../support/harness/databases.ts';
import { QueryWriter, randomCondition, randomQuery } from '../support/tenancy/random-query.ts';
import {
  allRows,
  type Query,
  seedTwoNodes,
  type TwoNodes,
  throughTheDoor,
  withoutTheOther,
} from '../support/tenancy/two-nodes.ts';

const RUNS = inject('isThorough') ? { reads: 150, writes: 75 } : { reads: 40, writes: 20 };

type Untyped = Kysely<Record<string, Record<string, string>>>;

let database: Database;
let nodes: TwoNodes;

beforeAll(async () => {
  database = await scratchDatabase();
  nodes = await seedTwoNodes(database.db);
});

afterAll(() => database[Symbol.asyncDispose]());

function untyped(build: (k: Untyped) => { execute(): Promise<object[]> }): Query {
  return (k) => build(k as unknown as Untyped);
}

/** The tables that a random write changes, with what it sets. */
const targets = fc.constantFrom(
  { table: 'users', column: 'name' },
  { table: 'assets', column: 'symbol' },
  { table: 'wallet_networks', column: undefined },
);

it('D4-01: any query shows what it would if no other node had rows', async () => {
  await fc.assert(
    fc.asyncProperty(randomQuery, async (query) => {
      const select = untyped((k) => new QueryWriter(k).select(query));
      const seen = await throughTheDoor(database.db, nodes, select);
      expect(seen.rows).toEqual((await withoutTheOther(database.db, nodes, select)).rows);
    }),
    { numRuns: RUNS.reads },
  );
});

it('D4-01: any update or delete changes what it would if no other node had rows', async () => {
  const before = await allRows(database.db, nodes);
  const write = fc.record({
    target: targets,
    isDelete: fc.boolean(),
    source: fc.constantFrom('accounts', 'wallets', 'networks'),
    condition: randomCondition,
  });
  await fc.assert(
    fc.asyncProperty(write, async ({ target, isDelete, source, condition }) => {
      const { table, column } = target;
      const query = untyped((k) => {
        const writer = new QueryWriter(k);
        const scopes = [writer.scope(table), writer.scope(source)] as const;
        const [to, from] = scopes;
        if (isDelete || column === undefined) {
          return k
            .deleteFrom(to.name)
            .using(from.name)
            .where((eb) => writer.condition(eb, condition, scopes))
            .returningAll(to.alias);
        }
        return k
          .updateTable(to.name)
          .from(from.name)
          .set({ [column]: 'changed' })
          .where((eb) => writer.condition(eb, condition, scopes))
          .returningAll(to.alias);
      });
      const left = await throughTheDoor(database.db, nodes, query);
      const alone = await withoutTheOther(database.db, nodes, query);
      expect({ rows: left.rows, mine: left.mine }).toEqual({ rows: alone.rows, mine: alone.mine });
      expect(left.other).toEqual(before.other);
    }),
    { numRuns: RUNS.writes },
  );
});

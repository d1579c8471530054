import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type { Kysely } from 'kysely';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { beforeTests } from '../support/harness/before-tests.ts';
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

/** Builders that random queries do not draw, by what they read. */
const reads: Record<string, Query> = {
  'an alias that is the name of another table': (k) => k.selectFrom('users as accounts').select('accounts.email'),
  'a lateral join': (k) =>
    k
      .selectFrom('networks as n')
      .leftJoinLateral(
        (eb) => eb.selectFrom('assets').select('assets.id as asset').whereRef('network_id', '=', 'n.id').as('x'),
        (join) => join.onTrue(),
      )
      .select(['n.name', 'x.asset']),
  'a lateral join to the elements of an array': (k) =>
    k
      .selectFrom((eb) =>
        eb
          .fn<{ value: string }>('json_array_elements_text', [
            eb.cast<string>(eb.val('["account 0", "account 1"]'), 'json'),
          ])
          .as('wanted'),
      )
      .innerJoinLateral(
        (eb) => eb.selectFrom('accounts').select('accounts.id').whereRef('accounts.name', '=', 'wanted.value').as('x'),
        (join) => join.onTrue(),
      )
      .select(['wanted.value', 'x.id']),
  'a subquery in select': (k) =>
    k
      .selectFrom('networks as n')
      .select(['n.name', (eb) => eb.selectFrom('users').select(eb.fn.countAll<string>().as('n')).as('users')]),
  'group by, having and an aggregate with a filter': (k) =>
    k
      .selectFrom('wallets')
      .select(['chain_id', (eb) => eb.fn.count<string>('id').filterWhere('id', 'is not', null).as('wallets')])
      .groupBy('chain_id')
      .having((eb) => eb.fn.count('id'), '>', 0),
  'a window': (k) => k.selectFrom('users').select(['id', (eb) => eb.fn.countAll<string>().over().as('users')]),
  'a row lock': (k) => k.selectFrom('users').select('id').forUpdate(),
  'common tables, one on another': (k) =>
    k
      .with('one', (q) => q.selectFrom('users').select('id'))
      .with('two', (q) => q.selectFrom('one').innerJoin('users as u', 'u.id', 'one.id').select('u.email'))
      .selectFrom('two')
      .selectAll(),
  'a recursive common table': (k) =>
    k
      .withRecursive('reached(id)', (q) =>
        q
          .selectFrom('accounts')
          .select('id')
          .union(
            q
              .selectFrom('reached')
              .innerJoin('wallets as w', 'w.account_id', 'reached.id')
              .select('w.account_id as id'),
          ),
      )
      .selectFrom('reached')
      .selectAll(),
};

/** And those that write. */
const writes: Record<string, Query> = {
  'an update with a top-level or': (k) =>
    k
      .updateTable('users')
      .set('name', 'x')
      .where((eb) => eb('address', '=', '0x0').or('address', '=', '0x1')),
  'an update from a join': (k) =>
    k
      .updateTable('users as u')
      .from('networks as n')
      .innerJoin('assets as s', 's.network_id', 'n.id')
      .set((eb) => ({ name: eb.ref('s.name') }))
      .where('n.name', '=', 'network 0')
      .returning(['u.id', 's.id as asset']),
  'an update by a subquery': (k) =>
    k.updateTable('users').set((eb) => ({ name: eb.selectFrom('accounts').select(eb.fn.max('name').as('name')) })),
  'a delete in a common table': (k) =>
    k
      .with('gone', (q) => q.deleteFrom('users').returning('id'))
      .selectFrom('gone')
      .selectAll(),
};

const database = beforeTests(scratchDatabase);
let nodes: TwoNodes;

beforeAll(async () => {
  nodes = await seedTwoNodes(database.db);
});

describe('queries through the tenant-scoped database handle', () => {
  it.each(Object.entries(reads))(
    'D4-01: %s returns the rows it would return if no other node existed',
    async (_name, query) => {
      const { db } = database;
      const seen = await throughTheDoor(db, nodes, query);
      expect(seen.rows.length).toBeGreaterThan(0);
      expect(seen.rows).toEqual((await withoutTheOther(db, nodes, query)).rows);
    },
  );

  it.each(Object.entries(writes))(
    'D4-01: %s changes the rows it would change if no other node existed',
    async (_name, query) => {
      const { db } = database;
      const before = await allRows(db, nodes);
      const left = await throughTheDoor(db, nodes, query);
      const alone = await withoutTheOther(db, nodes, query);
      expect(left.rows).toEqual(alone.rows);
      expect(left.mine).toEqual(alone.mine);
      expect(left.mine).not.toEqual(before.mine);
      expect(left.other).toEqual(before.other);
    },
  );

  it('D4-01: inserted rows belong to the node, whether node_id is given or not', async () => {
    const rows = [
      { id: randomUUID(), address: '0xa' },
      { id: randomUUID(), address: '0xb', name: 'named' },
    ];
    const { nodeId } = nodes.mine;
    for (const values of [rows[0], rows, rows.map((row) => ({ ...row, node_id: nodeId }))]) {
      const seen = await throughTheDoor(database.db, nodes, (k) =>
        k
          .insertInto('users')
          .values(values ?? [])
          .returning('node_id'),
      );
      expect(new Set(seen.rows)).toEqual(new Set([JSON.stringify({ node_id: nodeId })]));
    }
  });

  it('D4-01: a conflict with a row of another node changes nothing', async () => {
    const { mine, other } = nodes;
    const before = await allRows(database.db, nodes);
    const upsert =
      (id: string): Query =>
      (k) =>
        k
          .insertInto('users')
          .values({ id, name: 'new', address: '0xnew' })
          .onConflict((conflict) =>
            conflict
              .column('id')
              .doUpdateSet({ name: 'taken over' })
              .where((eb) => eb.or([eb('users.name', '=', ''), eb('users.name', '=', 'never')])),
          )
          .returning(['id', 'name']);
    const onOther = await throughTheDoor(database.db, nodes, upsert(other.userIds[0] ?? ''));
    expect(onOther).toEqual({ rows: [], ...before });
    const onMine = await throughTheDoor(database.db, nodes, upsert(mine.userIds[0] ?? ''));
    expect(onMine.rows).toEqual([JSON.stringify({ id: mine.userIds[0], name: 'taken over' })]);
  });
});

const RUNS = inject('isThorough') ? { reads: 150, writes: 75 } : { reads: 40, writes: 20 };

type Untyped = Kysely<Record<string, Record<string, string>>>;

function untyped(build: (k: Untyped) => { execute(): Promise<object[]> }): Query {
  return (k) => build(k as unknown as Untyped);
}

/** The tables that a random write changes, with what it sets. */
const targets = fc.constantFrom(
  { table: 'users', column: 'name' },
  { table: 'assets', column: 'symbol' },
  { table: 'wallet_networks', column: undefined },
);

it('D4-01: any query returns the rows it would return if no other node existed', async () => {
  await fc.assert(
    fc.asyncProperty(randomQuery, async (query) => {
      const select = untyped((k) => new QueryWriter(k).select(query));
      const seen = await throughTheDoor(database.db, nodes, select);
      expect(seen.rows).toEqual((await withoutTheOther(database.db, nodes, select)).rows);
    }),
    { numRuns: RUNS.reads },
  );
});

it('D4-01: any update or delete changes the rows it would change if no other node existed', async () => {
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

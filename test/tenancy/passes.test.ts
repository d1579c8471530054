import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/platform/database/database.ts';
import { scratchDatabase } from '../support/harness/databases.ts';
import { reads, writes } from '../support/tenancy/passing-queries.ts';
import {
  allRows,
  type Query,
  seedTwoNodes,
  type TwoNodes,
  throughTheDoor,
  withoutTheOther,
} from '../support/tenancy/two-nodes.ts';

let database: Database;
let nodes: TwoNodes;

beforeAll(async () => {
  database = await scratchDatabase();
  nodes = await seedTwoNodes(database.db);
});

afterAll(() => database[Symbol.asyncDispose]());

describe("what passes the tenant's door", () => {
  it.each(Object.entries(reads))('D4-01: %s shows what it would if no other node had rows', async (_name, query) => {
    const { db } = database;
    const seen = await throughTheDoor(db, nodes, query);
    expect(seen.rows.length).toBeGreaterThan(0);
    expect(seen.rows).toEqual((await withoutTheOther(db, nodes, query)).rows);
  });

  it.each(Object.entries(writes))('D4-01: %s changes what it would if no other node had rows', async (_name, query) => {
    const { db } = database;
    const before = await allRows(db, nodes);
    const left = await throughTheDoor(db, nodes, query);
    const alone = await withoutTheOther(db, nodes, query);
    expect(left.rows).toEqual(alone.rows);
    expect(left.mine).toEqual(alone.mine);
    expect(left.mine).not.toEqual(before.mine);
    expect(left.other).toEqual(before.other);
  });

  it('D4-01: inserted rows belong to the node, whether it is named or not', async () => {
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

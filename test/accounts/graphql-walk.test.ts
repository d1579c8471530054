import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect, inject, it } from 'vitest';
import type { Database } from '../../src/platform/database/open-database.ts';
import { NODE, startFixtureOn } from '../support/graphql/fixture.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { embeddedDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeEmbedded } from '../support/harness/in-turn.ts';
import { describeReal } from '../support/services/real.ts';

const PAGE = `query ($first: Int, $last: Int, $after: String, $before: String, $filter: AccountFilter) {
  accounts(first: $first, last: $last, after: $after, before: $before, filter: $filter) {
    totalCount
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    edges { cursor node { id } }
  }
}`;

interface Connection {
  totalCount: number;
  pageInfo: { hasNextPage: boolean; hasPreviousPage: boolean; startCursor: string | null; endCursor: string | null };
  edges: { cursor: string; node: { id: string } }[];
}

function walkSuite(open: () => Promise<Database>): void {
  const database = beforeTests(open);
  const fixture = beforeTests(() => startFixtureOn(database));

  async function page(variables: Record<string, unknown>): Promise<Connection> {
    const { json } = await fixture.query(PAGE, { variables: { ...variables, filter: { includeDeleted: true } } });
    return json.data.accounts;
  }

  /** Adds accounts some microseconds after a moment, many at the same one; gives their ids. */
  async function add(microseconds: readonly number[]): Promise<string[]> {
    const rows = microseconds.map((us) => {
      const at = `2026-01-01T00:00:00.00${String(us).padStart(4, '0')}Z`;
      const deleted_at = us % 3 === 0 ? at : null;
      return {
        ...{ id: randomUUID(), node_id: NODE, name: 'A', type: 't', status: 1 },
        ...{ created_at: at, updated_at: at, deleted_at },
      };
    });
    if (rows.length > 0) await database.db.unscoped('test').run((k) => k.insertInto('accounts').values(rows));
    return rows.map(({ id }) => id);
  }

  async function listed(): Promise<string[]> {
    const rows = await database.db
      .forNode(NODE)
      .run((k) => k.selectFrom('accounts').select('id').orderBy('created_at').orderBy('id'));
    return rows.map(({ id }) => id);
  }

  /** Deletes an account, whichever it is, seen or not. */
  async function remove(choice: number): Promise<string[]> {
    const all = await listed();
    const id = all[choice % all.length];
    if (id === undefined) return [];
    await database.db.unscoped('test').run((k) => k.deleteFrom('accounts').where('id', '=', id));
    return [id];
  }

  const places = fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 1, maxLength: 60 });
  const walks = fc.record({
    places,
    /** What is inserted and what is deleted after each page, anywhere in the list. */
    meanwhile: fc.array(
      fc.record({ adds: fc.array(fc.integer({ min: 0, max: 30 }), { maxLength: 3 }), deletes: fc.nat() }),
      {
        maxLength: 12,
      },
    ),
    size: fc.integer({ min: 1, max: 100 }),
    isBackward: fc.boolean(),
  });

  it('DG-02 DG-12: paging in either direction, with any page size, returns each row once while rows are added and removed', async () => {
    await fc.assert(
      fc.asyncProperty(walks, async ({ places: first, meanwhile, size, isBackward }) => {
        await database.db.unscoped('test').raw((sql) => sql`delete from accounts`);
        const before = await add(first);
        const seen: string[] = [];
        const removed: string[] = [];
        let count = before.length;
        let step = 0;
        for (let cursor: string | null = null, more = true; more; step += 1) {
          const at = isBackward ? { last: size, before: cursor } : { first: size, after: cursor };
          const { edges, pageInfo, totalCount }: Connection = await page(at);
          expect(totalCount).toBe(count);
          const ids = edges.map(({ node }) => node.id);
          if (isBackward) seen.unshift(...ids);
          else seen.push(...ids);
          expect(edges.at(0)?.cursor ?? null).toBe(pageInfo.startCursor);
          expect(edges.at(-1)?.cursor ?? null).toBe(pageInfo.endCursor);
          cursor = isBackward ? pageInfo.startCursor : pageInfo.endCursor;
          more = isBackward ? pageInfo.hasPreviousPage : pageInfo.hasNextPage;
          const { adds = [], deletes } = meanwhile[step] ?? {};
          const gone = deletes === undefined ? [] : await remove(deletes);
          removed.push(...gone);
          count += (await add(adds)).length - gone.length;
        }
        // None twice, none of those that were there left out, and all in the order of the list.
        expect(new Set(seen).size).toBe(seen.length);
        expect(before.filter((id) => !seen.includes(id) && !removed.includes(id))).toEqual([]);
        const list = await listed();
        expect(seen.filter((id) => !removed.includes(id))).toEqual(list.filter((id) => seen.includes(id)));
        // The last page says that it is the last, even where it is full.
        const pages = Math.max(1, Math.ceil(list.length / size));
        if (meanwhile.length === 0) expect([seen, step]).toEqual([list, pages]);
      }),
      {
        numRuns: inject('isThorough') ? 25 : 8,
        examples: [
          [{ places: [0, 1], meanwhile: [], size: 2, isBackward: false }],
          [{ places: [0, 1], meanwhile: [], size: 2, isBackward: true }],
        ],
      },
    );
  });

  it.each([
    [{}, 15],
    [{ includeDeleted: true }, 23],
    [{ includeDeleted: null }, 15],
    [{ type: 't' }, 15],
    [{ type: 'other' }, 0],
    [{ status: 1, includeDeleted: true }, 23],
    [{ search: 'a', includeDeleted: true }, 23],
    [{ search: '%' }, 0],
    [{ search: '_' }, 0],
    [{ type: null, status: null, search: null }, 15],
  ])('DG-02: totalCount for the filter %j is exact', async (filter, expected) => {
    await database.db.unscoped('test').raw((sql) => sql`delete from accounts`);
    await add(Array.from({ length: 23 }, (_, us) => us));
    const { json } = await fixture.query(PAGE, { variables: { filter } });
    expect(json.data.accounts.totalCount).toBe(expected);
  });

  it('DG-01: a filter that cannot be stored is an error that names the argument', async () => {
    const { json } = await fixture.query(PAGE, { variables: { filter: { search: '\0' } } });
    expect(json.errors[0].extensions).toMatchObject({
      code: 'BAD_USER_INPUT',
      issues: [{ path: ['filter', 'search'] }],
    });
    expect(fixture.faults).toEqual([]);
  });
}

describeEmbedded('paging through accounts on the embedded database', () => walkSuite(embeddedDatabase));
describeReal('postgres', 'paging through accounts on PostgreSQL', () => walkSuite(realDatabase));

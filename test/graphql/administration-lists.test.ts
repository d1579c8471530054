import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ClientsDocument, SupervisorsDocument } from './generated/graphql.ts';
import { NODE, OTHER_NODE, type Stand, startStand } from './stand.ts';

let stand: Stand;
const ids: string[] = [];
const names: string[] = [];

beforeAll(async () => {
  stand = await startStand();
  for (const node_id of [NODE, OTHER_NODE]) {
    for (let index = 0; index < 25; index += 1) {
      const [id, created_at] = [randomUUID(), `2026-01-01T00:00:00.0000${10 + index}Z`];
      const door = stand.database.db.unscoped('a test sets its rows');
      await door.run((k) =>
        k.insertInto('clients').values({ id, node_id, name: 'Trader', grant_types: [], scopes: [], created_at }),
      );
      const username = `user-${index}`;
      await door.run((k) =>
        k.insertInto('supervisors').values({
          id,
          node_id,
          username,
          password_hash: '',
          role: 'viewer',
          created_at,
          status: index % 2 === 0 ? 'active' : 'disabled',
        }),
      );
      if (node_id === NODE) ids.push(id);
      if (node_id === NODE) names.push(username);
    }
  }
});
afterAll(() => stand[Symbol.asyncDispose]());

async function statementsOf(work: () => Promise<unknown>): Promise<number> {
  const run = vi.spyOn(stand.database.db, 'forNode');
  await work();
  const { length } = run.mock.calls;
  run.mockRestore();
  return length;
}

interface Found {
  found: string[];
  hasNextPage: boolean;
  endCursor?: string | null;
}

/** What is on all pages, one after the other. */
async function walk(page: (after: { after?: string }) => Promise<Found>): Promise<string[]> {
  const { found, hasNextPage, endCursor } = await page({});
  const all = [...found];
  for (let more = hasNextPage, after = endCursor; more; ) {
    const next = await page(after ? { after } : {});
    all.push(...next.found);
    more = next.hasNextPage;
    after = next.endCursor;
  }
  return all;
}

describe('the lists of clients and of supervisors', () => {
  it('DG-02: have 20 by default, oldest first to the microsecond, and the exact total', async () => {
    const { clients } = await stand.run(ClientsDocument, {});
    expect(clients.edges.map(({ node }) => node.id)).toEqual(ids.slice(0, 20));
    expect(clients.totalCount).toBe(25);
    const { supervisors } = await stand.run(SupervisorsDocument, {});
    expect(supervisors.edges.map(({ node }) => node.username)).toEqual(names.slice(0, 20));
    expect(supervisors.totalCount).toBe(25);
  });

  it.each([1, 7, 100])('DG-02: pages of %i walk the whole lists', async (first) => {
    const clients = await walk(async (after) => {
      const { clients: page } = await stand.run(ClientsDocument, { first, ...after });
      return { ...page.pageInfo, found: page.edges.map(({ node }) => node.id) };
    });
    expect(clients).toEqual(ids);
    const people = await walk(async (after) => {
      const { supervisors: page } = await stand.run(SupervisorsDocument, { first, ...after });
      return { ...page.pageInfo, found: page.edges.map(({ node }) => node.username) };
    });
    expect(people).toEqual(names);
  });

  it.each(['clients', 'supervisors'])('DG-02: %s backwards, from a cursor of the same list alone', async (field) => {
    const list = (args: string) =>
      stand.query(`{ ${field}(${args}) { pageInfo { startCursor hasPreviousPage } edges { node { id } } } }`);
    const { pageInfo, edges } = (await list('last: 5')).json.data[field];
    expect(edges.map(({ node }: { node: { id: string } }) => node.id)).toEqual(ids.slice(20));
    expect(pageInfo.hasPreviousPage).toBe(true);
    const before = (await list(`last: 5, before: "${pageInfo.startCursor}"`)).json.data[field];
    expect(before.edges.map(({ node }: { node: { id: string } }) => node.id)).toEqual(ids.slice(15, 20));
    const other = field === 'clients' ? 'supervisors' : 'clients';
    const { json } = await stand.query(`{ ${other}(before: "${pageInfo.startCursor}") { totalCount } }`);
    expect(json.errors[0].extensions).toMatchObject({ code: 'BAD_USER_INPUT', issues: [{ path: ['before'] }] });
  });

  it('DG-02: take the same number of statements, however many rows there are', async () => {
    const clients = (first: number) => statementsOf(() => stand.run(ClientsDocument, { first }));
    const supervisors = (first: number) => statementsOf(() => stand.run(SupervisorsDocument, { first }));
    expect([await clients(1), await clients(25)]).toEqual([2, 2]);
    // One more for all the locks.
    expect([await supervisors(1), await supervisors(25)]).toEqual([3, 3]);
  });
});

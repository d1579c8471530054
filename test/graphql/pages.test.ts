import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/platform/database/database.ts';
import { type Fixture, NODE, OTHER_NODE, startFixtureOn } from '../support/graphql/fixture.ts';
import { embeddedDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';

const PAGE = `query Page($first: Int, $after: String) {
  accounts(first: $first, after: $after) {
    pageInfo { endCursor }
    edges { cursor node { id } }
  }
}`;

describe('pages on the embedded database', () => pagesSuite(embeddedDatabase));
describeReal('postgres', 'pages on PostgreSQL', () => pagesSuite(realDatabase));

function pagesSuite(open: () => Promise<Database>): void {
  let database: Database;
  let fixture: Fixture;
  let ids: string[];

  beforeAll(async () => {
    database = await open();
    fixture = await startFixtureOn(database);
    ids = await fixture.addAccounts(25);
    await fixture.addAccounts(2, { deleted: true });
    await fixture.addAccounts(3, { nodeId: OTHER_NODE });
  });

  afterAll(async () => {
    await fixture[Symbol.asyncDispose]();
    await database[Symbol.asyncDispose]();
  });

  async function page(variables: Record<string, unknown>, token = fixture.token) {
    const { json } = await fixture.query(PAGE, { variables, token });
    const { accounts } = json.data ?? {};
    return { json, accounts, ids: accounts?.edges.map((edge: { node: { id: string } }) => edge.node.id) };
  }

  it('DG-12: rows within one microsecond are neither skipped nor repeated', async () => {
    const nodeToken = fixture.newToken({ nodeId: OTHER_NODE });
    const close = await fixture.addAccounts(6, {
      nodeId: OTHER_NODE,
      at: (index) => `2020-01-01T00:00:00.12345${Math.floor(index / 2)}Z`,
    });
    const walked: string[] = [];
    for (let after: string | null = null, left = 6; left > 0; left -= 1) {
      const { accounts, ids: found } = await page({ first: 1, after }, nodeToken);
      walked.push(...found);
      after = accounts.pageInfo.endCursor;
    }
    expect(walked).toEqual(close);
  });

  it('DG-12: a cursor of another node, of another list, or with a changed byte gets the same error', async () => {
    const { accounts } = await page({ first: 1 });
    const cursor: string = accounts.edges[0].cursor;
    const other = await page({ after: cursor }, fixture.newToken({ nodeId: OTHER_NODE }));
    const { message } = other.json.errors[0];
    expect(message).toBe('after: is not a cursor of this list');
    const elsewhere = await fixture.query('query ($after: String) { transactions(after: $after) { totalCount } }', {
      variables: { after: cursor },
    });
    expect(elsewhere.json.errors[0].message).toBe(message);
    const bytes = Buffer.from(cursor, 'base64url');
    for (let index = 0; index < bytes.length; index += 1) {
      const forged = Buffer.from(bytes);
      forged.writeUInt8((bytes[index] ?? 0) ^ 1, index);
      const { json } = await page({ after: forged.toString('base64url') });
      expect(json.errors[0].message).toBe(message);
    }
  });

  it('DG-12: the next page continues after the last row of the previous one while rows are added before it', async () => {
    const { accounts } = await page({ first: 3 });
    await fixture.addAccounts(2, { nodeId: NODE, at: () => '2019-05-05T00:00:00Z' });
    const { ids: next } = await page({ first: 3, after: accounts.pageInfo.endCursor });
    expect(next).toEqual(ids.slice(3, 6));
  });
}

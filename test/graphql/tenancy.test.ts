import { beforeAll, describe, expect, it } from 'vitest';
import { OTHER_NODE, useFixture } from '../support/graphql/fixture.ts';
import { openSocket } from '../support/graphql/sockets.ts';
import { AccountDocument, AccountsDocument } from './generated/graphql.ts';

const fixture = useFixture();
let own: string;
let foreign: string;
const migration = 'a1910000-0000-4000-8000-000000000001';

beforeAll(async () => {
  [own = ''] = await fixture.addAccounts(1);
  [foreign = ''] = await fixture.addAccounts(1, { nodeId: OTHER_NODE });
  await fixture.addWallets(foreign, 2, OTHER_NODE);
  await fixture.register('foreign', OTHER_NODE);
  await fixture.notify('foreign', 1);
  await fixture.database.db.unscoped('a test sets its rows').raw(
    (sql) => sql`insert into migrations (id, node_id, status, created_by, created_at)
      values (${migration}, ${OTHER_NODE}, 'done', 'x', now())`,
  );
});

const MISSING = 'ffffffff-0000-4000-8000-00000000000f';

describe('objects of another node', () => {
  it.each([
    ['account', () => [foreign, MISSING, 'no-uuid', '']],
    ['transaction', () => ['foreign', 'missing', MISSING, '']],
  ])('D4-01: %s: an id of another node is null, with the same bytes as an unknown id', async (field, ids) => {
    const answers = ids().map((id) =>
      fixture.query(`query ($id: ID!) { ${field}(id: $id) { id } }`, { variables: { id } }),
    );
    const texts = (await Promise.all(answers)).map(({ status, text }) => `${status} ${text}`);
    expect(new Set(texts)).toEqual(new Set([`200 {"data":{"${field}":null}}`]));
  });

  it.each([
    ['transaction', 'id', () => ['foreign', 'missing', MISSING]],
    ['migrationProgress', 'done', () => [migration, MISSING, 'no-uuid']],
  ])(
    'D4-01: subscription %s: an id of another node gets NOT_FOUND with the same bytes as an unknown id, over both transports',
    async (field, name, ids) => {
      const document = `subscription ($id: ID!) { ${field}(id: $id) { ${name} } }`;
      using socket = await openSocket(fixture, fixture.token);
      const [sse, ws] = [new Set<string>(), new Set<string>()];
      for (const id of ids()) {
        const headers = { accept: 'text/event-stream' };
        sse.add((await fixture.query(document, { variables: { id }, headers })).text);
        ws.add((await socket.answerTo(document, { id })).text);
      }
      expect([sse.size, ws.size]).toEqual([1, 1]);
      for (const text of [...sse, ...ws]) expect(text).toContain('"code":"NOT_FOUND"');
      using own = await openSocket(fixture, fixture.newToken({ nodeId: OTHER_NODE }));
      expect((await own.answerTo(document, { id: ids()[0] })).type).toBe('next');
    },
  );

  it('D4-01: are in no list and no total', async () => {
    const { json } = await fixture.query(`{
      accounts(filter: {includeDeleted: true}) { totalCount edges { node { id wallets { totalCount } } } }
      transactions { totalCount edges { node { id } } }
    }`);
    expect(json.data).toEqual({
      accounts: { totalCount: 1, edges: [{ node: { id: own, wallets: { totalCount: 0 } } }] },
      transactions: { totalCount: 0, edges: [] },
    });
  });

  it('D4-01: are returned to their own node', async () => {
    const token = fixture.newToken({ nodeId: OTHER_NODE });
    const { account } = await fixture.run(AccountDocument, { id: foreign.toUpperCase() }, { token });
    expect(account).toMatchObject({ id: foreign, wallets: { totalCount: 2 } });
  });
});

describe('filters', () => {
  it.each([
    ['the name, in either case', { search: 'ACCOUNT 0' }, 1],
    ['a wildcard, which stands for itself', { search: '%' }, 0],
    ['an underscore, which stands for itself', { search: 'Account_0' }, 0],
    ['a type', { type: 'organisation' }, 1],
    ['a status', { status: 2 }, 0],
    ['nulls, which count as absent', { type: null, status: null, search: null, includeDeleted: null }, 1],
  ])('DG-01: accounts are filtered by %s', async (_name, filter, total) => {
    expect((await fixture.run(AccountsDocument, { filter })).accounts.totalCount).toBe(total);
  });

  it.each([
    ['accounts(filter: {search: "\\u0000"}) { totalCount }', ['filter', 'search']],
    ['transaction(id: "\\u0000") { id }', ['id']],
  ])('DG-01: a string that cannot be stored is an error that names the argument: %s', async (selection, path) => {
    const { json } = await fixture.query(`{ ${selection} }`);
    expect(json.errors[0].extensions).toMatchObject({ code: 'BAD_USER_INPUT', issues: [{ path }] });
    expect(fixture.faults).toEqual([]);
  });

  it('DG-01: transactions are filtered by collection, status, type and time, with lists of values', async () => {
    for (const id of ['a', 'b']) await fixture.register(id);
    await fixture.notify('a', 3, { updated_at: '2026-05-01T12:00:00.5+02:00' });
    const total = async (filter: string) =>
      (await fixture.query(`{ transactions(filter: ${filter}) { totalCount } }`)).json.data.transactions.totalCount;
    expect(await total('{}')).toBe(2);
    expect(await total('{collection: USER_TRANSACTIONS}')).toBe(2);
    expect(await total('{collection: OTC_TRANSACTIONS}')).toBe(0);
    expect(await total('{status: DONE}')).toBe(1);
    expect(await total('{type: 1, status: ERROR}')).toBe(0);
    expect(await total('{updatedSince: "2026-05-01T10:00:00.5Z"}')).toBe(1);
    expect(await total('{updatedSince: "2026-05-01T10:00:00.500001Z"}')).toBe(0);
  });
});

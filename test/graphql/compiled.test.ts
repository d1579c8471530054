import fc from 'fast-check';
import { execute, parse } from 'graphql';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { PERMISSIONS } from '../../src/access/identity/permissions.rules.ts';
import { areVariablesGood, fragmentsOf } from '../../src/api/graphql/execution/documents.ts';
import { graphqlSchema } from '../../src/app/graphql-schema.ts';
import { UserPages } from '../../src/features/users/users.service.ts';
import { CompiledOperations } from '../../src/lib/fast/compiled-operations.ts';
import { type Fixture, NODE, OTHER_NODE, startFixture } from '../support/graphql/fixture.ts';
import { MAGIC } from '../support/graphql/planted-document.ts';
import { type RandomDocument, randomDocument } from '../support/graphql/random-document.ts';
import { embeddedDatabase } from '../support/harness/databases.ts';

const UNKNOWN = 'ffffffff-0000-4000-8000-000000000009';
const RUNS_UNTIL_COMPILED = 3;
const DOCUMENTS = inject('isThorough') ? 60 : 8;

let fixture: Fixture;
let ids: string[];

beforeAll(async () => {
  // Of two errors that end the same answer, the one that comes first is told. An embedded database answers in the order in
  // which it was asked, so it is the same one each time.
  fixture = await startFixture({}, await embeddedDatabase());
  const accounts = await fixture.addAccounts(4);
  const [deleted = ''] = await fixture.addAccounts(1, { deleted: true });
  const [foreign = ''] = await fixture.addAccounts(1, { nodeId: OTHER_NODE });
  const wallets: string[] = [];
  for (const account of accounts.slice(0, 3)) wallets.push(...(await fixture.addWallets(account, 3)));
  for (const id of ['t1', 't2', 't3']) await fixture.register(id);
  await fixture.notify('t1', 1);
  await fixture.notify('t1', 3);
  ids = [...accounts.slice(0, 2), ...wallets.slice(0, 2), 't1', deleted, foreign, UNKNOWN];
});

afterAll(() => fixture[Symbol.asyncDispose]());

/** The answers to the same operation, of graphql's own executor and of compiled code. */
async function answersTo({ query, variables }: RandomDocument, token = fixture.token): Promise<[string, string]> {
  const texts: string[] = [];
  // The correlation id is the same for all.
  for (let run = 0; run < RUNS_UNTIL_COMPILED; run++)
    texts.push((await fixture.query(query, { variables, token })).text);
  return [texts[0] ?? '', texts.at(-1) ?? ''];
}

describe('a frequent query', () => {
  it('DG-01: gets the same bytes from compiled code, whatever it requests', async () => {
    await fc.assert(
      fc.asyncProperty(randomDocument(ids), async (document) => {
        const [own, compiled] = await answersTo(document);
        expect(compiled).toBe(own);
      }),
      { numRuns: DOCUMENTS },
    );
  });

  it('DG-04: gets the same errors from compiled code if permissions are missing', async () => {
    const token = fixture.newToken({ permissions: PERMISSIONS.filter((name) => name.startsWith('accounts')) });
    await fc.assert(
      fc.asyncProperty(randomDocument(ids), async (document) => {
        const [own, compiled] = await answersTo(document, token);
        expect(compiled).toBe(own);
      }),
      { numRuns: DOCUMENTS / 2 },
    );
  });

  it.each([
    ['an invalid variable', 'query ($n: Int) { accounts(first: $n) { totalCount } }', { n: 'x' }],
    ['an invalid page size', 'query ($f: AccountFilter) { accounts(first: 0, filter: $f) { totalCount } }', { f: [] }],
    ['a missing id', 'query ($id: ID!) { account(id: $id) { name } }', {}],
    ['a forged cursor', '{ accounts(after: "x") { totalCount } }', {}],
    ['a literal with a variable in it', 'query ($s: Int) { accounts(filter: {status: $s}) { totalCount } }', { s: 1 }],
    ['directives', 'query ($b: Boolean!) { me { nodeId @skip(if: $b) subject @include(if: $b) } }', { b: true }],
    ['the schema', '{ __type(name: "Account") { fields { name } } me { __typename } }', {}],
    ['a default', 'query ($n: Int = 2) { accounts(first: $n) { edges { node { name } } } }', {}],
    ['null', 'query ($n: Int, $f: AccountFilter) { accounts(first: $n, filter: $f) { totalCount } }', { f: null }],
  ])('DG-01: gets the same bytes with %s', async (_name, query, variables) => {
    const [own, compiled] = await answersTo({ query, variables });
    expect(compiled).toBe(own);
  });

  it('DG-05: an error in its execution is masked with its location, and the query is not executed twice', async () => {
    const query = '{\n  me { nodeId }\n  users { totalCount }\n}';
    const [own] = await answersTo({ query, variables: {} });
    expect(JSON.parse(own)).toHaveProperty('data.users.totalCount');
    const failing = vi.spyOn(UserPages.prototype, 'page').mockImplementation(() => {
      throw new Error('select secret from vault');
    });
    const { json } = await fixture.query(query);
    expect(failing).toHaveBeenCalledTimes(1);
    failing.mockRestore();
    expect(json).toEqual({
      data: null,
      errors: [
        {
          message: 'internal error',
          path: ['users'],
          locations: [{ line: 3, column: 3 }],
          extensions: { code: 'INTERNAL_SERVER_ERROR', correlationId: 'none' },
        },
      ],
    });
  });
});

describe('compilation', () => {
  const schema = graphqlSchema();
  const ME = '{ me { nodeId } }';
  const contextValue = { principal: { nodeId: NODE, permissions: new Set(PERMISSIONS) } };

  async function referencesOf(text: string, runs: number): Promise<number> {
    const reference = vi.fn(execute);
    const operations = new CompiledOperations({ reference, areVariablesGood, fragmentsOf });
    const document = parse(text);
    for (let run = 0; run < runs; run++) await operations.run({ schema, document, contextValue });
    return reference.mock.calls.length;
  }

  it.each([
    ['a query at its third request', ME],
    [
      'with whole numbers, null and variables',
      'query ($n: Int = 3) { a: accounts(first: 1, after: null) { totalCount } b: accounts(last: $n) { totalCount } }',
    ],
    ['with __typename and fragments', '{ me { ...F } } fragment F on Viewer { __typename nodeId }'],
  ])('applies to %s', async (_name, text) => {
    expect(await referencesOf(text, 5)).toBe(2);
  });

  it('is limited by the total number of fields, and keeps the most recent queries', async () => {
    const reference = vi.fn(execute);
    const operations = new CompiledOperations({ reference, areVariablesGood, fragmentsOf });
    const wide = (name: string) => {
      const fields = Array.from({ length: 139 }, (_, n) => `${name}${n}: nodeId`).join(' ');
      return parse(`{ me { ${fields} } }`);
    };
    // 140 fields each, where 3,000 are kept.
    const documents = Array.from({ length: 24 }, (_, n) => wide(`d${n}x`));
    const ask = async (asked: (typeof documents)[number] | undefined) => {
      if (asked) await operations.run({ schema, document: asked, contextValue });
    };
    for (const document of documents) {
      for (let run = 0; run < 3; run++) await ask(document);
      await ask(documents[0]);
    }
    reference.mockClear();
    await ask(documents[0]);
    await ask(documents.at(-1));
    expect(reference).not.toHaveBeenCalled();
    await ask(documents[1]);
    expect(reference).toHaveBeenCalledTimes(1);
  });

  it.each([
    ['a mutation', 'mutation { eraseUser(id: "x") { __typename } }'],
    ['directives', '{ me { nodeId @include(if: true) } }'],
    ["the schema's own fields", '{ __schema { queryType { name } } }'],
    ['a variable inside of a literal', 'query ($s: Int) { accounts(filter: {status: $s}) { totalCount } }'],
    ['hundreds of fields', `{ ${Array.from({ length: 80 }, (_, n) => `f${n}: me { nodeId }`).join(' ')} }`],
    ['a string', '{ account(id: "x") { name } }'],
    [
      'a string that a compiler would take for code',
      `{ account(id: ${JSON.stringify(`${MAGIC}globalThis.pwned = 1`)}) { name } }`,
    ],
    ['a string within an object', `{ accounts(filter: {search: ${JSON.stringify(`${MAGIC}1`)}}) { totalCount } }`],
    ['a string default of a missing variable', 'query ($s: ID! = "x") { account(id: $s) { name } }'],
    ['a fraction', '{ accounts(first: 1.5) { totalCount } }'],
    ['a number that is not an Int', 'query ($d: Decimal = 1) { me { nodeId } }'],
    ['an object', '{ accounts(filter: {}) { totalCount } }'],
    ['a list', 'query ($s: [Int!] = [1]) { me { nodeId } }'],
    ['an alias that means something to JavaScript', '{ me { __proto__: subject nodeId } }'],
    [
      'a variable that means something to JavaScript',
      'query ($__proto__: Int) { accounts(first: $__proto__) { totalCount } }',
    ],
    [
      'a variable that a compiler takes for code',
      `query ($${MAGIC}x: Int) { accounts(first: $${MAGIC}x) { totalCount } }`,
    ],
    ['a long name, of which code would be full', `{ ${'a'.repeat(65)}: me { nodeId } }`],
    ['names that make one of two places', '{ a: me { x_y: nodeId } a_x: me { y: nodeId } }'],
  ])('is never applied to %s', async (_name, text) => {
    expect(await referencesOf(text, 4)).toBe(4);
  });
});

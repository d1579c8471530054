import { getIntrospectionQuery } from 'graphql';
import { describe, expect, it } from 'vitest';
import { useFixture } from '../support/graphql/fixture.ts';

const fixture = useFixture();

/** account → wallets → edges → node → account …: four levels a turn, with `leaf` on the last. */
function nested(depth: number): string {
  const turn = ['wallets(first: 1)', 'edges', 'node', 'account'];
  const path = ['account(id: "x")', ...Array.from({ length: depth - 2 }, (_, index) => turn[index % turn.length])];
  return `{ ${path.join(' { ')} { __typename }${' }'.repeat(path.length)}`;
}

/** Fragments that each go four levels deeper and spread the next. */
function chain(length: number): string {
  const turn = (index: number) => (index < length - 1 ? `...F${index + 1}` : '__typename');
  return Array.from(
    { length },
    (_, index) =>
      `fragment F${index} on Account { wallets(first: 1) { edges { node { account { ${turn(index)} } } } } }`,
  ).join(' ');
}

function aliases(count: number, field: string): string {
  return Array.from({ length: count }, (_, index) => `a${index}: ${field}`).join(' ');
}

const MANY_TOKENS = `{ me { ${'nodeId '.repeat(1_000)} } }`;
const COSTLY = '{ accounts(first: 100) { edges { node { wallets(first: 100) { edges { node { id } } } } } } }';

describe('limits', () => {
  it.each([
    ['depth', nested(16), /depth is 16; at most 15/],
    ['depth through fragments', `{ account(id: "x") { ...F0 } } ${chain(4)}`, /depth is 18; at most 15/],
    ['aliases', `{ ${aliases(31, 'me { nodeId }')} }`, /31 aliases; at most 30/],
    ['aliases of __typename', `{ ${aliases(31, '__typename')} }`, /31 aliases; at most 30/],
    ['directives', `{ ${Array(10).fill('me @include(if: true) { nodeId }').join(' ')} }`, /10 directives; at most 9/],
    [
      'directives through fragments',
      '{ me { ...F ...F ...F ...F ...F } } fragment F on Viewer @a { nodeId @include(if: true) }',
      /10 directives; at most 9/,
    ],
    ['one field in one selection', `{ ${'... { me { nodeId } } '.repeat(31)} }`, /occurs 31 times in one selection/],
    ['comments', `{ ${'#\n'.repeat(1_001)} me { nodeId } }`, /more than 1000 comments/],
    ['introspection', `{ ${aliases(6, '__type(name: "Query") { name }')} }`, /6 introspection fields; at most 5/],
    [
      'aliases through fragments',
      `{ me { ...F } b: me { ...F } } fragment F on Viewer { ${aliases(15, 'nodeId')} }`,
      /31 aliases/,
    ],
    ['tokens', MANY_TOKENS, /1000 .*tokens/],
    ['cost', COSTLY, /cost is \d+; at most 5000/],
    ['the cost of totalCount', `{ ${aliases(25, 'accounts(first: 0) { totalCount }')} }`, /cost is 5025; at most 5000/],
    [
      'the cost of totalCount through fragments',
      `{ ${aliases(25, 'accounts(first: 0) { ...F }')} } fragment F on AccountConnection { ... { totalCount } }`,
      /cost is 5025; at most 5000/,
    ],
    ['first', '{ accounts(first: 101) { totalCount } }', /first or last is 101/],
    [
      'last, nested',
      '{ accounts(first: 1) { edges { node { wallets(last: 101) { totalCount } } } } }',
      /first or last is 101/,
    ],
  ])('DG-06: %s over its limit gets a 400 that names it', async (_name, document, message) => {
    for (const accept of ['application/json', 'application/graphql-response+json', 'text/event-stream']) {
      const { status, json } = await fixture.query(document, { headers: { accept } });
      expect(status).toBe(400);
      expect(json.errors[0]).toMatchObject({
        message: expect.stringMatching(message),
        extensions: { code: 'LIMIT_EXCEEDED' },
      });
    }
  });

  it('DG-06: cost and page sizes count variables, given or by default', async () => {
    const document = `query ($n: Int, $m: Int = 100) {
      accounts(first: $n) { edges { node { wallets(first: $m) { edges { node { id } } } } } } }`;
    expect((await fixture.query(document, { variables: { n: 1 } })).status).toBe(200);
    expect((await fixture.query(document, { variables: { n: 100 } })).json.errors[0].message).toMatch(/cost is/);
    expect((await fixture.query(document, { variables: { n: 101, m: 1 } })).json.errors[0].message).toMatch(
      /last is 101/,
    );
    expect((await fixture.query(document, { variables: { n: 100, m: 1 } })).status).toBe(200);
  });

  it('DG-06: only the executed operation is measured, also if it is a subscription', async () => {
    const both = `query Costly ${COSTLY} query Cheap { me { nodeId } }`;
    expect((await fixture.query(both, { operationName: 'Cheap' })).status).toBe(200);
    expect((await fixture.query(both, { operationName: 'Costly' })).status).toBe(400);
    const live = 'subscription { transaction(id: "x") { events(first: 101) { totalCount } } }';
    expect((await fixture.query(live, { headers: { accept: 'text/event-stream' } })).status).toBe(400);
  });

  it('DG-06: an object in variables has at most 1,000 members', async () => {
    const document = 'query ($i: PreviewWalletRuleInput!) { previewWalletRule(input: $i) { fires } }';
    const send = async (i: unknown) => (await fixture.query(document, { variables: { i } })).text;
    const wide = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`m${index}`, 1]));
    expect(await send(wide(1_000))).toContain('PreviewWalletRuleInput');
    expect(await send(wide(1_001))).toContain('an object with 1001 members; at most 1000');
  });

  it.each([
    ['depth 15', nested(15)],
    ['30 aliases', `{ ${aliases(30, '__typename')} }`],
    ['9 directives', `query ($a: Boolean = true) { ${Array(9).fill('me @include(if: $a) { nodeId }').join(' ')} }`],
    ['30 times one field', `{ ${'... { me { nodeId } } '.repeat(15)} ${'me { nodeId } '.repeat(15)} }`],
    ['1,000 comments', `{ ${'# [\n'.repeat(1_000)} me { nodeId } }`],
    [
      'an exact count below a list, which is one for all of the list',
      '{ accounts(first: 100) { totalCount edges { node { wallets(first: 1) { totalCount } } } } }',
    ],
    ['24 exact counts', `{ ${aliases(24, 'accounts(first: 0) { totalCount }')} }`],
    ['5 fields of introspection', `{ ${aliases(5, '__type(name: "Query") { name }')} }`],
    ['the usual introspection', getIntrospectionQuery({ descriptions: true, inputValueDeprecation: true })],
  ])('DG-06: %s is within the limits', async (_name, document) => {
    expect((await fixture.query(document)).json.errors).toBeUndefined();
  });

  it('DG-06: the costs of a batch are summed: operations past the limit are rejected, cached documents too', async () => {
    const send = async (counts: number[]) => {
      const batch = counts.map((count) => ({ query: `{ ${aliases(count, 'accounts(first: 0) { totalCount }')} }` }));
      const { json } = await fixture.post(batch);
      return json.map(({ errors }: { errors?: { message: string }[] }) => errors?.[0]?.message ?? 'ok');
    };
    const over = 'the cost of the batch is 6030; at most 5000 is allowed';
    expect(await send([10, 10, 10, 2])).toEqual(['ok', 'ok', over, 'ok']);
    expect(await send([10, 10, 10, 2])).toEqual(['ok', 'ok', over, 'ok']);
    expect(await send([24])).toEqual(['ok']);
  });

  it('DG-06: a batch of 10 is answered in order, and one of 11 gets a 400 that names the limit', async () => {
    const send = (count: number) =>
      fixture.post(Array.from({ length: count }, (_, index) => ({ query: `{ a${index}: __typename }` })));
    const ten = await send(10);
    expect(ten.json.map(({ data }: { data: object }) => Object.keys(data)[0])).toEqual(
      Array.from({ length: 10 }, (_, index) => `a${index}`),
    );
    const eleven = await send(11);
    expect(eleven.status).toBe(400);
    expect(eleven.json.errors[0].message).toMatch(/batch has 11 operations; at most 10/);
  });
});

describe('a GET', () => {
  it('DG-06: only reads, and never changes anything', async () => {
    const headers = { authorization: `Bearer ${fixture.token}` };
    const read = await fixture.fetch({ headers }, `?query=${encodeURIComponent('{ me { subject } }')}`);
    expect(read.json).toEqual({ data: { me: { subject: 'somebody' } } });
    const mutation =
      'mutation { registerTransaction(input: {id: "g", collection: OTC_TRANSACTIONS, type: 1}) { __typename } }';
    const change = await fixture.fetch({ headers }, `?query=${encodeURIComponent(mutation)}`);
    expect(change.status).toBe(405);
    expect(change.headers.get('allow')).toBe('POST');
    expect((await fixture.query('{ transaction(id: "g") { id } }')).json.data.transaction).toBeNull();
  });
});

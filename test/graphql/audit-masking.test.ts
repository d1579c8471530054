import { parse, print } from 'graphql';
import { describe, expect, it } from 'vitest';
import { SECRET, startAuditFixture } from '../support/graphql/audit-fixture.ts';
import { beforeTests } from '../support/harness/before-tests.ts';

const SET = 'mutation { setSupervisorPassword(id: "7", password: "***") }';
const IN = 'mutation ($in: SupervisorInput!) { createSupervisor(input: $in) }';

const fixture = beforeTests(startAuditFixture);

interface Operation {
  query: string;
  variables?: Record<string, unknown> | undefined;
}

/** What the record of an operation shows: its request, null if that is invalid, and its answer. */
async function shown(operation: Operation): Promise<{ request: string | null; response: string }> {
  fixture.records.length = 0;
  await fixture.post(operation);
  const [record] = fixture.records;
  return { request: record?.request_body ?? null, response: record?.response_body ?? '' };
}

/** The request that the record of a valid operation shows. */
async function shownRequest(operation: Operation): Promise<Operation> {
  return JSON.parse((await shown(operation)).request ?? '');
}

/** Puts the secret where `***` stands. */
function withSecret<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value).replaceAll('***', SECRET));
}

describe('the recorded document of a valid operation', () => {
  it.each([
    ['an argument', SET],
    ['an input field', 'mutation { createSupervisor(input: {name: "Ada", password: "***"}) }'],
    [
      'an input field, deep in lists',
      'mutation { createSupervisors(inputs: [{name: "a", password: "***", contact: {city: "Bern", apiToken: "***", keys: [{label: "l", clientSecret: "***"}]}}]) }',
    ],
    [
      "a variable's default",
      'mutation ($p: String! = "***", $i: ID! = "7") { setSupervisorPassword(id: $i, password: $p) }',
    ],
    ['the default of an input object', IN.replace('!)', '! = {name: "Ada", password: "***"})')],
    [
      'the default of a variable with the name of a secret',
      'query ($password: String = "***") { clients(name: $password) { id } }',
    ],
    [
      'an object under a masked name',
      '{ check(settings: {label: "kept", secret: "***"}) }',
      `{ check(settings: {label: "kept", secret: {label: "gone", clientSecret: "${SECRET}"}}) }`,
    ],
    ['a search', '{ check(search: "***", settings: {label: "kept", search: "***"}) }'],
    ['a block string', SET, SET.replace('"***"', `"""\n  ${SECRET}\n  """`)],
    ['a string of escapes', SET, SET.replace('***', '\\u005AQ-\\u{68}unter2')],
    [
      'an operation that was commented out',
      '{ clients(name: "kept") { id } }',
      `{ clients(name: "kept") { id } # password: "${SECRET}"\n}`,
    ],
    ['JSON in a string', '{ clients(name: "{\\"password\\":\\"***\\"}") { id } }'],
    [
      'a description',
      '"***" query { clients(name: "kept") { id } }',
      `"uses password=${SECRET}" query { clients(name: "kept") { id } }`,
    ],
  ])(
    'D2-21: shows no secret in %s, and everything else except comments',
    async (_place, expected, query = withSecret(expected)) => {
      expect((await shownRequest({ query })).query).toBe(print(parse(expected)));
    },
  );

  it.each([
    '{ clients(name: "password") { id name } }',
    '{ client(id: "1") { token: name } }',
    'mutation ($x: String!) { setSupervisorPassword(id: "7", password: $x) }',
    '{ things { __typename ... on Created { clientSecret } } }',
    'query { clients(name: """{"kept": 1}""") { id } }',
  ])('D2-21: without a secret is unchanged: %s', async (query) => {
    expect((await shownRequest({ query, variables: { x: 'x', query: 'x' } })).query).toBe(query);
  });
});

describe('the recorded variables of a valid operation', () => {
  it.each<[way: string, query: string, expected: Record<string, unknown>, variables?: Record<string, unknown>]>([
    [
      'by another name',
      'mutation ($p: String!, $id: ID!) { setSupervisorPassword(id: $id, password: $p) }',
      { p: '***', id: '7' },
    ],
    [
      'as a member of a literal',
      'mutation ($p: String!, $n: String!) { createSupervisor(input: {name: $n, password: $p}) }',
      { p: '***', n: 'Ada' },
    ],
    [
      'as members of an input object, at any depth',
      'mutation ($in: [SupervisorInput!]!) { createSupervisors(inputs: $in) }',
      {
        in: [{ name: 'Ada', password: '***', contact: { city: 'Bern', keys: [{ label: 'l', clientSecret: '***' }] } }],
      },
    ],
    [
      'through a fragment',
      'query ($t: String, $s: String) { ...F clients(name: $s) { id } } fragment F on Query { check(token: $t) }',
      { t: '***', s: 'kept' },
    ],
    [
      'below an object with a masked name',
      'query ($k: Key, $l: String) { check(settings: {label: $l, secret: $k}) }',
      { k: '***', l: 'kept' },
      { k: { label: SECRET, clientSecret: SECRET }, l: 'kept' },
    ],
    [
      'that is searched for',
      'query ($q: String, $s: Settings) { a: check(search: $q) b: check(settings: $s) }',
      { q: '***', s: { label: 'kept', search: '***' } },
    ],
  ])(
    'D2-21: shows no secret %s, and everything else',
    async (_way, query, expected, variables = withSecret(expected)) => {
      expect(await shownRequest({ query, variables })).toEqual({ query, variables: expected });
    },
  );

  it('D2-21: inside a literal with a masked name are masked with it', async () => {
    const query = 'query ($v: String!) { check(settings: {label: "kept", secret: {label: $v, clientSecret: $v}}) }';
    expect(await shownRequest({ query, variables: { v: SECRET } })).toEqual({
      query: print(parse('query ($v: String!) { check(settings: {label: "kept", secret: "***"}) }')),
      variables: { v: '***' },
    });
  });
});

describe('the recorded response of a valid operation', () => {
  const made = (selection: string) => `mutation { createClient(name: "n") { ${selection} } }`;
  it.each<[place: string, query: string, expected: object]>([
    ['an alias', made('x: clientSecret client { name }'), { createClient: { x: '***', client: { name: 'Ada' } } }],
    [
      'an alias that has another meaning elsewhere',
      made('id: clientSecret client { id name: id }'),
      { createClient: { id: '***', client: { id: '***', name: '1' } } },
    ],
    [
      'a fragment within a fragment, below an alias',
      'mutation { made: createClient(name: "n") { ...A } } fragment A on Created { ...B client { id } } fragment B on Created { x: clientSecret }',
      { made: { x: '***', client: { id: '1' } } },
    ],
    [
      'a member of a union in a list',
      '{ things { __typename ... on Client { id name } ... on Created { x: clientSecret client { name } } } }',
      {
        things: [
          { __typename: 'Client', id: '1', name: 'Ada' },
          { __typename: 'Created', x: '***', client: { name: 'Ada' } },
        ],
      },
    ],
    [
      'an object with the name of a secret',
      '{ client(id: "1") { s: secret { since } owner { secret { since } id } } }',
      { client: { s: '***', owner: { secret: '***', id: '1' } } },
    ],
    [
      'fields that are merged',
      'mutation { a: createClient(name: "n") { client { id } } a: createClient(name: "n") { ...F } } fragment F on Created { client { s: secret { since } } }',
      { a: { client: { id: '1', s: '***' } } },
    ],
  ])('D2-21: shows no secret under %s, and every other field', async (_place, query, expected) => {
    expect(JSON.parse((await shown({ query })).response)).toEqual({ data: expected });
  });
});

describe('the record of an invalid operation', () => {
  it.each<[fault: string, query: string, variables?: Record<string, unknown>]>([
    ['an unknown member', IN, { in: { name: 'Ada', pasword: SECRET } }],
    ['a string instead of an object', IN, { in: SECRET }],
    [
      'a list instead of a string',
      'mutation ($p: String!) { setSupervisorPassword(id: "7", password: $p) }',
      { p: [SECRET, `${SECRET}\n"'\u0007`] },
    ],
    [
      'a number instead of a string',
      'mutation ($password: String!) { setSupervisorPassword(id: "7", password: $password) }',
      { password: 47_114_711 },
    ],
    ['an unknown argument', `mutation { setSupervisorPassword(id: "7", pasword: "${SECRET}") }`],
    ['an additional member', `mutation { createSupervisor(input: {name: "a", password: "${SECRET}", x: 1}) }`],
    [
      'members of other names',
      `mutation { createSupervisor(input: {nme: "a", pasword: """one\n  ${SECRET}\ntwo""", contact: {city: "${'long '.repeat(30)}"}}) }`,
    ],
    ['a value without quotes', SET.replace('"***"', 'ZQhunter2')],
    ['a list', SET.replace('"***"', '[ZQhunter2, 1]')],
    ['words without quotes', SET.replace('"***"', 'correct ZQhunter2')],
    ['an additional string', SET.replace('"***"', `"a" "${SECRET}" """${SECRET}"""`)],
    ['other quotes', SET.replace('"***"', "'ZQhunter2'")],
    ['a string without its end', SET.replace('"***"', `"ab${SECRET}`)],
  ])('D2-21: with %s has no secret in its request or its error, which still has a location', async (...given) => {
    const [, query, variables] = given;
    const { request, response } = await shown({ query, variables });
    expect(request).toBeNull();
    expect(response).not.toMatch(/ZQ|hunter|4711/);
    expect(response).toContain('"locations"');
  });
});

describe('the recorded error of a valid operation', () => {
  it.each([
    ['a literal', { query: `{ missing { id } check(token: "${SECRET}") }` }, '***'],
    [
      'a variable',
      { query: 'query ($t: String) { missing { id } check(token: $t) }', variables: { t: SECRET } },
      '***',
    ],
    ['nothing', { query: '{ missing { id } }' }, 'internal error'],
  ])('D2-21: has its code, and its message if nothing in the record is masked: %s', async (_place, params, message) => {
    const { response } = await shown(params);
    const extensions = { code: 'INTERNAL_SERVER_ERROR' };
    expect(JSON.parse(response)).toMatchObject({ data: null, errors: [{ message, extensions }] });
  });
});

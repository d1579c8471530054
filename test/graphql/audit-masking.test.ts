import { getVariableValues, parse, print, validate } from 'graphql';
import { describe, expect, it } from 'vitest';
import { maskBody } from '../../src/audit/mask.ts';
import { maskedNames, shown, shownRequest } from '../support/graphql/audit-records.ts';
import { SECRET, schema } from '../support/graphql/audit-stand.ts';

const SET = 'mutation { setSupervisorPassword(id: "7", password: "***") }';
const IN = 'mutation ($in: SupervisorInput!) { createSupervisor(input: $in) }';

/** Puts the secret where `***` stands. */
function withSecret<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value).replaceAll('***', SECRET));
}

describe('the document of a valid operation', () => {
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
      'query ($password: String = "***") { clients(search: $password) { id } }',
    ],
    [
      'an object under a masked name',
      '{ check(settings: {label: "kept", secret: "***"}) }',
      `{ check(settings: {label: "kept", secret: {label: "gone", clientSecret: "${SECRET}"}}) }`,
    ],
    ['a block string', SET, SET.replace('"***"', `"""\n  ${SECRET}\n  """`)],
    ['a string of escapes', SET, SET.replace('***', '\\u005AQ-\\u{68}unter2')],
    [
      'an operation that was commented out',
      '{ clients(search: "kept") { id } }',
      `{ clients(search: "kept") { id } # password: "${SECRET}"\n}`,
    ],
    ['JSON in a string', '{ clients(search: "{\\"password\\":\\"***\\"}") { id } }'],
    [
      'a description',
      '"***" query { clients(search: "kept") { id } }',
      `"uses password=${SECRET}" query { clients(search: "kept") { id } }`,
    ],
  ])('D2-21: shows no secret in %s, and all else but comments', (_place, expected, query = withSecret(expected)) => {
    expect(shownRequest({ query }).query).toBe(print(parse(expected)));
  });

  it.each([
    '{ clients(search: "password") { id name } }',
    '{ client(id: "1") { token: name } }',
    'mutation ($x: String!) { setSupervisorPassword(id: "7", password: $x) }',
    '{ things { __typename ... on Created { clientSecret } } }',
    'query { clients(search: """{"kept": 1}""") { id } }',
  ])('D2-21: without a secret stays as it was: %s', (query) => {
    expect(shownRequest({ query, variables: { x: 'x', query: 'x' } }).query).toBe(query);
  });
});

describe('the variables of a valid operation', () => {
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
      'query ($t: String, $s: String) { ...F clients(search: $s) { id } } fragment F on Query { check(token: $t) }',
      { t: '***', s: 'kept' },
    ],
    [
      'below an object with a masked name',
      'query ($k: Key, $l: String) { check(settings: {label: $l, secret: $k}) }',
      { k: '***', l: 'kept' },
      { k: { label: SECRET, clientSecret: SECRET }, l: 'kept' },
    ],
  ])('D2-21: shows no secret %s, and all else', (_way, query, expected, variables = withSecret(expected)) => {
    expect(shownRequest({ query, variables })).toEqual({ query, variables: expected });
  });

  it('D2-21: that are nested too deeply to be masked are left out, and the document stays', () => {
    const nested: unknown = JSON.parse(`${'['.repeat(15_000)}"${SECRET}"${']'.repeat(15_000)}`);
    const query = '{ clients(search: "kept") { id } }';
    expect(shownRequest({ query, variables: { nested } })).toEqual({ query });
  });

  it('D2-21: inside a literal that has a masked name are hidden with it', () => {
    const query = 'query ($v: String!) { check(settings: {label: "kept", secret: {label: $v, clientSecret: $v}}) }';
    expect(shownRequest({ query, variables: { v: SECRET } })).toEqual({
      query: print(parse('query ($v: String!) { check(settings: {label: "kept", secret: "***"}) }')),
      variables: { v: '***' },
    });
  });
});

describe('the answer of a valid operation', () => {
  const made = (selection: string) => `mutation { createClient(name: "n") { ${selection} } }`;
  it.each<[place: string, query: string, expected: object, data?: object]>([
    ['an alias', made('x: clientSecret client { name }'), { createClient: { x: '***', client: { name: 'Ada' } } }],
    [
      'an alias that has another meaning elsewhere',
      made('id: clientSecret client { id name: id }'),
      { createClient: { id: '***', client: { id: '***', name: '1' } } },
      { createClient: { id: SECRET, client: { id: '1', name: '1' } } },
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
      { client: { s: { since: SECRET }, owner: { secret: { since: SECRET }, id: '1' } } },
    ],
    [
      'fields that are merged',
      'mutation { a: createClient(name: "n") { client { id } } a: createClient(name: "n") { ...F } } fragment F on Created { client { s: secret { since } } }',
      { a: { client: { id: '1', s: '***' } } },
      { a: { client: { id: '1', s: { since: SECRET } } } },
    ],
  ])(
    'D2-21: shows no secret under %s, and all else that is called otherwise',
    (_place, query, expected, data = withSecret(expected)) => {
      expect(validate(schema, parse(query))).toEqual([]);
      expect(JSON.parse(shown({ query }, { data }).response)).toEqual({ data: expected });
    },
  );

  it('D2-21: takes no exponential time for nested spreads', () => {
    const levels = Array.from(
      { length: 40 },
      (_, n) => `fragment F${n} on Client { a: owner { ...F${n + 1} } b: owner { ...F${n + 1} } }`,
    );
    const query = `{ client(id: "1") { ...F0 } } ${levels.join(' ')} fragment F40 on Client { x: secret { since } }`;
    expect(shown({ query }, { data: { client: { a: { b: { id: '1' } } } } }).response).toContain('"id":"1"');
  });
});

describe('an operation that is not valid', () => {
  it.each<[fault: string, query: string, variables?: Record<string, unknown>]>([
    ['an unknown member', IN, { in: { name: 'Ada', pasword: SECRET } }],
    ['a string in the place of an object', IN, { in: SECRET }],
    [
      'a list in the place of a string',
      'mutation ($p: String!) { setSupervisorPassword(id: "7", password: $p) }',
      { p: [SECRET, `${SECRET}\n"'\u0007`] },
    ],
    [
      'a number in the place of a string',
      'mutation ($password: String!) { setSupervisorPassword(id: "7", password: $password) }',
      { password: 47_114_711 },
    ],
    ['an unknown argument', `mutation { setSupervisorPassword(id: "7", pasword: "${SECRET}") }`],
    ['a member too many', `mutation { createSupervisor(input: {name: "a", password: "${SECRET}", x: 1}) }`],
    [
      'members of other names',
      `mutation { createSupervisor(input: {nme: "a", pasword: """one\n  ${SECRET}\ntwo""", contact: {city: "${'long '.repeat(30)}"}}) }`,
    ],
    ['a value without quotes', SET.replace('"***"', 'ZQhunter2')],
    ['a list', SET.replace('"***"', '[ZQhunter2, 1]')],
    ['words without quotes', SET.replace('"***"', 'correct ZQhunter2')],
    ['a string too many', SET.replace('"***"', `"a" "${SECRET}" """${SECRET}"""`)],
    ['other quotes', SET.replace('"***"', "'ZQhunter2'")],
    ['a string without its end', SET.replace('"***"', `"ab${SECRET}`)],
    ['nothing', ''],
  ])('D2-21: with %s shows it neither in its request nor in an error, whose place it tells', (...given) => {
    const [, query, variables] = given;
    const errors = faultsOf(query, variables);
    expect(errors).not.toEqual([]);
    const { request, response } = shown({ query, ...(variables && { variables }) }, { errors });
    expect(request).toBeNull();
    expect(response).not.toMatch(/ZQ|hunter|4711/);
    expect(response).toContain('"locations"');
  });

  it('D2-21: shows what kind of error it was', () => {
    const error = { message: `Cannot query field "${SECRET}".`, path: ['a'], extensions: { code: 'A_CODE' } };
    const { response } = shown({ query: '{ acounts(s: "a") { id } }' }, { errors: [error] });
    expect(JSON.parse(response)).toEqual({ errors: [{ ...error, message: '***' }] });
  });
});

describe('an error of a valid operation', () => {
  const error = { message: `it was ${SECRET}`, extensions: { code: 'A_CODE' } };
  it.each([
    ['a literal', { query: `{ check(token: "${SECRET}") }` }, '***'],
    ['a variable', { query: 'query ($t: String) { check(token: $t) }', variables: { t: SECRET } }, '***'],
    ['a member of a variable', { query: IN, variables: { in: { name: 'Ada', password: SECRET } } }, '***'],
    ['nothing', { query: '{ clients(search: "x") { id } }' }, error.message],
  ])('D2-21: shows its code, and its message where the record masks nothing: %s', (_place, params, message) => {
    const { response } = shown(params, { data: null, errors: [error] });
    expect(JSON.parse(response)).toEqual({ data: null, errors: [{ ...error, message }] });
  });
});

describe('a record that is cut', () => {
  it('D2-09 D2-21: shows no part of a secret, wherever it is cut', () => {
    const query = 'mutation ($p: String!) { createClient(name: $p) { x: clientSecret } }';
    const names = maskedNames({ query, variables: { p: 'kept' } });
    const body = Buffer.from(JSON.stringify({ data: { createClient: { x: SECRET } } }));
    for (let length = 0; length < body.length; length += 1) {
      const cut = { maxBytes: length, truncated: false, names };
      expect(maskBody('application/json', body, cut) ?? '').not.toMatch(/[ZQ]/);
      const kept = { maxBytes: 1_000, truncated: true, names };
      expect(maskBody('application/json', body.subarray(0, length), kept) ?? '').not.toMatch(/[ZQ]/);
    }
  });
});

/** The errors of a document, or of the variables that it is given. */
function faultsOf(query: string, variables?: Record<string, unknown>): readonly unknown[] {
  try {
    const document = parse(query);
    const errors = validate(schema, document);
    const [operation] = document.definitions;
    if (errors.length > 0 || operation?.kind !== 'OperationDefinition') return errors;
    return getVariableValues(schema, operation.variableDefinitions ?? [], variables ?? {}).errors ?? [];
  } catch (error) {
    return [JSON.parse(JSON.stringify(error))];
  }
}

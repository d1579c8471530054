import { getVariableValues, parse, print, validate } from 'graphql';
import { describe, expect, it } from 'vitest';
import { maskBody } from '../../src/audit/mask.ts';
import { maskedNames, shown, shownRequest } from '../support/graphql/audit-records.ts';
import { SECRET, schema } from '../support/graphql/audit-stand.ts';

const SET = 'setSupervisorPassword';

describe('the document of a valid operation', () => {
  it.each([
    [
      'an argument',
      `mutation { ${SET}(id: "7", password: "${SECRET}") }`,
      `mutation { ${SET}(id: "7", password: "***") }`,
    ],
    [
      'an input field',
      `mutation { createSupervisor(input: {name: "Ada", password: "${SECRET}"}) }`,
      'mutation { createSupervisor(input: {name: "Ada", password: "***"}) }',
    ],
    [
      'an input field, deep in lists',
      `mutation { createSupervisors(inputs: [{name: "a", password: "${SECRET}", contact: {city: "Bern", apiToken: "${SECRET}", keys: [{label: "l", clientSecret: "${SECRET}"}]}}]) }`,
      'mutation { createSupervisors(inputs: [{name: "a", password: "***", contact: {city: "Bern", apiToken: "***", keys: [{label: "l", clientSecret: "***"}]}}]) }',
    ],
    [
      'an object under a masked name',
      `{ check(settings: {label: "kept", secret: {label: "gone", clientSecret: "${SECRET}"}}) }`,
      '{ check(settings: {label: "kept", secret: "***"}) }',
    ],
    [
      'a block string',
      `mutation { ${SET}(id: "7", password: """\n  ${SECRET}\n  """) }`,
      `mutation { ${SET}(id: "7", password: "***") }`,
    ],
    [
      'a string of escapes',
      `mutation { ${SET}(id: "7", password: "\\u005AQ-\\u{68}unter2") }`,
      `mutation { ${SET}(id: "7", password: "***") }`,
    ],
    [
      "a variable's default",
      `mutation ($p: String! = "${SECRET}", $i: ID! = "7") { ${SET}(id: $i, password: $p) }`,
      `mutation ($p: String! = "***", $i: ID! = "7") { ${SET}(id: $i, password: $p) }`,
    ],
    [
      'the default of an input object',
      `mutation ($in: SupervisorInput! = {name: "Ada", password: "${SECRET}"}) { createSupervisor(input: $in) }`,
      'mutation ($in: SupervisorInput! = {name: "Ada", password: "***"}) { createSupervisor(input: $in) }',
    ],
    [
      'the default of a variable with the name of a secret',
      `query ($password: String = "${SECRET}") { clients(search: $password) { id } }`,
      'query ($password: String = "***") { clients(search: $password) { id } }',
    ],
    [
      'an operation that was commented out',
      `{ clients(search: "kept") { id } # password: "${SECRET}"\n}`,
      '{ clients(search: "kept") { id } }',
    ],
    [
      'JSON in a string',
      `{ clients(search: "{\\"password\\":\\"${SECRET}\\"}") { id } }`,
      '{ clients(search: "{\\"password\\":\\"***\\"}") { id } }',
    ],
    [
      'a description',
      `"uses password=${SECRET}" query { clients(search: "kept") { id } }`,
      '"***" query { clients(search: "kept") { id } }',
    ],
  ])('D2-21: shows no secret in %s, and all else but comments', (_place, query, expected) => {
    expect(shownRequest({ query }).query).toBe(print(parse(expected)));
  });

  it.each([
    '{ clients(search: "password") { id name } }',
    '{ client(id: "1") { token: name } }',
    'mutation ($query: String!) { setSupervisorPassword(id: "7", password: $query) }',
    'mutation ($x: String!) { setSupervisorPassword(id: "7", password: $x) }',
    '{ things { __typename ... on Created { clientSecret } } }',
    'query { clients(search: """{"kept": 1}""") { id } }',
  ])('D2-21: without a secret stays as it was: %s', (query) => {
    expect(shownRequest({ query, variables: { x: 'x', query: 'x' } }).query).toBe(query);
  });
});

describe('the variables of a valid operation', () => {
  it.each([
    [
      'by another name',
      `mutation ($p: String!, $id: ID!) { ${SET}(id: $id, password: $p) }`,
      { p: SECRET, id: '7' },
      { p: '***', id: '7' },
    ],
    [
      'as a member of a literal',
      'mutation ($p: String!, $n: String!) { createSupervisor(input: {name: $n, password: $p}) }',
      { p: SECRET, n: 'Ada' },
      { p: '***', n: 'Ada' },
    ],
    [
      'as members of an input object, at any depth',
      'mutation ($in: [SupervisorInput!]!) { createSupervisors(inputs: $in) }',
      {
        in: [
          { name: 'Ada', password: SECRET, contact: { city: 'Bern', keys: [{ label: 'l', clientSecret: SECRET }] } },
        ],
      },
      {
        in: [{ name: 'Ada', password: '***', contact: { city: 'Bern', keys: [{ label: 'l', clientSecret: '***' }] } }],
      },
    ],
    [
      'below an object with a masked name',
      'query ($k: Key, $l: String) { check(settings: {label: $l, secret: $k}) }',
      { k: { label: SECRET, clientSecret: SECRET }, l: 'kept' },
      { k: '***', l: 'kept' },
    ],
    [
      'through a fragment',
      'query ($t: String, $s: String) { ...F clients(search: $s) { id } } fragment F on Query { check(token: $t) }',
      { t: SECRET, s: 'kept' },
      { t: '***', s: 'kept' },
    ],
  ])('D2-21: shows no secret %s, and all else', (_way, query, variables, expected) => {
    expect(shownRequest({ query, variables })).toEqual({ query, variables: expected });
  });
});

describe('variables that are nested too deeply to be masked', () => {
  it('D2-21: are left out, and the document stays', () => {
    const nested: unknown = JSON.parse(`${'['.repeat(15_000)}"${SECRET}"${']'.repeat(15_000)}`);
    const query = '{ clients(search: "kept") { id } }';
    expect(shownRequest({ query, variables: { nested } })).toEqual({ query });
  });
});

describe('a variable inside a literal', () => {
  it('D2-21: that has a masked name is hidden with it', () => {
    const query = 'query ($v: String!) { check(settings: {label: "kept", secret: {label: $v, clientSecret: $v}}) }';
    expect(shownRequest({ query, variables: { v: SECRET } })).toEqual({
      query: print(parse('query ($v: String!) { check(settings: {label: "kept", secret: "***"}) }')),
      variables: { v: '***' },
    });
  });
});

describe('the answer of a valid operation', () => {
  const client = { id: '1', name: 'Ada' };
  it.each([
    [
      'an alias',
      'mutation { createClient(name: "n") { x: clientSecret client { name } } }',
      { createClient: { x: SECRET, client: { name: 'Ada' } } },
      { createClient: { x: '***', client: { name: 'Ada' } } },
    ],
    [
      'an alias that has another meaning elsewhere',
      'mutation { createClient(name: "n") { id: clientSecret client { id name: id } } }',
      { createClient: { id: SECRET, client: { id: '1', name: '1' } } },
      { createClient: { id: '***', client: { id: '***', name: '1' } } },
    ],
    [
      'a fragment within a fragment, below an alias',
      'mutation { made: createClient(name: "n") { ...A } } fragment A on Created { ...B client { id } } fragment B on Created { x: clientSecret }',
      { made: { x: SECRET, client: { id: '1' } } },
      { made: { x: '***', client: { id: '1' } } },
    ],
    [
      'a member of a union in a list',
      '{ things { __typename ... on Client { id name } ... on Created { x: clientSecret client { name } } } }',
      {
        things: [
          { __typename: 'Client', ...client },
          { __typename: 'Created', x: SECRET, client: { name: 'Ada' } },
        ],
      },
      {
        things: [
          { __typename: 'Client', ...client },
          { __typename: 'Created', x: '***', client: { name: 'Ada' } },
        ],
      },
    ],
    [
      'an object with the name of a secret',
      '{ client(id: "1") { s: secret { since } owner { secret { since } id } } }',
      { client: { s: { since: SECRET }, owner: { secret: { since: SECRET }, id: '1' } } },
      { client: { s: '***', owner: { secret: '***', id: '1' } } },
    ],
    [
      'fields that are merged',
      'mutation { a: createClient(name: "n") { client { id } } a: createClient(name: "n") { ...F } } fragment F on Created { client { s: secret { since } } }',
      { a: { client: { id: '1', s: { since: SECRET } } } },
      { a: { client: { id: '1', s: '***' } } },
    ],
  ])('D2-21: shows no secret under %s, and all else that is called otherwise', (_place, query, data, expected) => {
    expect(validate(schema, parse(query))).toEqual([]);
    expect(JSON.parse(shown({ query }, { data }).response)).toEqual({ data: expected });
  });

  it('D2-21: takes no exponential time for nested spreads', () => {
    const levels = Array.from(
      { length: 40 },
      (_, n) => `fragment F${n} on Client { a: owner { ...F${n + 1} } b: owner { ...F${n + 1} } }`,
    );
    const query = `{ client(id: "1") { ...F0 } } ${levels.join(' ')} fragment F40 on Client { x: secret { since } }`;
    const document = parse(query);
    expect(document.definitions).toHaveLength(42);
    expect(shown({ query }, { data: { client: { a: { b: { id: '1' } } } } }).response).toContain('"id":"1"');
  });
});

describe('an operation that is not valid', () => {
  it.each([
    ['an unknown name', `mutation { ${SET}(id: "7", pasword: "${SECRET}") }`],
    ['a syntax error', `mutation { ${SET}(id: "7" "${SECRET}" """${SECRET}""" `],
    ['a value without quotes', `mutation { ${SET}(password: ZQ hunter2, id: "7") }`],
    ['no tokens', `mutation { ${SET}(password: "ab${SECRET}) }`],
    ['nothing', ''],
  ])('D2-21: with %s is recorded as its length alone', (_fault, query) => {
    expect(shown({ query, operationName: 'Name', variables: { a: 'b' } }).request).toBeNull();
  });

  it.each([
    [
      'an input object',
      'mutation ($in: SupervisorInput!) { createSupervisor(input: $in) }',
      { in: { name: 'Ada', pasword: SECRET } },
    ],
    ['a string in its place', 'mutation ($in: SupervisorInput!) { createSupervisor(input: $in) }', { in: SECRET }],
    ['a list', `mutation ($p: String!) { ${SET}(id: "7", password: $p) }`, { p: [SECRET, `${SECRET}\n"'\u0007`] }],
    ['a number', `mutation ($password: String!) { ${SET}(id: "7", password: $password) }`, { password: 47_114_711 }],
  ])(
    'D2-21: whose variables do not hold (%s) shows them neither in its request nor in the error',
    (_fault, query, variables) => {
      const operation = parse(query).definitions[0];
      const given = operation?.kind === 'OperationDefinition' ? operation.variableDefinitions : undefined;
      const { errors = [] } = getVariableValues(schema, given ?? [], variables);
      expect(JSON.stringify(errors)).toMatch(/ZQ|4711/);
      const { request, response } = shown({ query, variables }, { errors });
      expect(request).toBeNull();
      expect(response).not.toMatch(/ZQ|hunter|4711/);
      expect(response).toContain('"locations"');
    },
  );

  it.each([
    `mutation { createSupervisor(input: {name: "a", password: "${SECRET}", x: 1}) }`,
    `mutation { createSupervisor(input: {nme: "a", pasword: """one\n  ${SECRET}\ntwo""", contact: {city: "${'long '.repeat(30)}"}}) }`,
    'mutation { setSupervisorPassword(id: "7", password: ZQhunter2) }',
    'mutation { setSupervisorPassword(id: "7", password: [ZQhunter2, 1]) }',
    'mutation { setSupervisorPassword(id: "7", password: correct ZQhunter2 }',
    `mutation { setSupervisorPassword(id: "7", password: "a" "${SECRET}") }`,
    'mutation { setSupervisorPassword(id: "7", password: \'ZQhunter2\') }',
  ])('D2-21: whose document does not hold shows it in no error: %s', (query) => {
    const errors = faultsOf(query);
    expect(errors).not.toEqual([]);
    const { request, response } = shown({ query }, { errors });
    expect(request).toBeNull();
    expect(response).not.toMatch(/ZQ|hunter/);
    expect(response).toContain('"locations"');
  });

  it('D2-21: shows what kind of error it was', () => {
    const error = { message: `Cannot query field "${SECRET}".`, path: ['a'], extensions: { code: 'A_CODE' } };
    const { response } = shown({ query: '{ acounts(s: "a") { id } }' }, { errors: [error] });
    expect(JSON.parse(response)).toEqual({ errors: [{ ...error, message: '***' }] });
  });
});

describe('an error of a valid operation', () => {
  const errors = [{ message: `it was ${SECRET}`, extensions: { code: 'A_CODE' } }];
  it.each([
    ['a literal', { query: `{ check(token: "${SECRET}") }` }],
    ['a variable', { query: 'query ($t: String) { check(token: $t) }', variables: { t: SECRET } }],
    [
      'a member of a variable',
      {
        query: 'mutation ($in: SupervisorInput!) { createSupervisor(input: $in) }',
        variables: { in: { name: 'Ada', password: SECRET } },
      },
    ],
  ])('D2-21: shows its code alone where the record masks %s', (_place, params) => {
    const { response } = shown(params, { data: null, errors });
    expect(JSON.parse(response)).toEqual({ data: null, errors: [{ ...errors[0], message: '***' }] });
  });

  it('D2-21: is shown where the record masks nothing', () => {
    const answer = { data: null, errors: [{ message: 'why', extensions: { code: 'A_CODE' } }] };
    const { response } = shown({ query: '{ clients(search: "x") { id } }' }, answer);
    expect(JSON.parse(response)).toEqual(answer);
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

function faultsOf(query: string): readonly object[] {
  try {
    return validate(schema, parse(query)).map((error) => error.toJSON());
  } catch (error) {
    return [JSON.parse(JSON.stringify(error))];
  }
}

import { describe, expect, it } from 'vitest';
import { withoutValues } from '../../src/api/graphql/execution/error-masking.ts';
import { useFixture } from '../support/graphql/fixture.ts';
import { openSocket } from '../support/graphql/sockets.ts';

const SECRET = 'ZQhunter2';
const ANY_OF_IT = /ZQ|hunter|4711/;
const CREATE = 'mutation ($i: SupervisorInput!) { createSupervisor(input: $i) { __typename } }';
const literal = (input: string) => `mutation { createSupervisor(input: ${input}) { __typename } }`;
const given = (i: unknown) => ({ query: CREATE, variables: { i } });
const GOOD = { username: 'u', role: 'viewer' };
const STATUS = 'mutation ($s: ClientStatus!) { setClientStatus(id: "7", status: $s) { __typename } }';
const LIMIT =
  'mutation ($n: Int) { createClient(input: {name: "a", grantTypes: [], scopes: [], monthlyLimit: $n}) { __typename } }';
const PAGE = 'query ($n: Int) { accounts(first: $n) { totalCount } }';

type Fault = [name: string, operation: { query: string; variables?: Record<string, unknown> }, told: string];

/** Values in wrong places, and what their errors still tell. */
const FAULTS: Fault[] = [
  ['a list instead of an object', given([{ ...GOOD, password: SECRET }]), 'to be an object.'],
  ['a string instead of an object', given(SECRET), 'Variable "$i" has invalid value: Expected value of'],
  ['a member that is missing', given({ username: 'u', password: SECRET }), '"role" is required in it.'],
  ['a member that is misspelt', given({ ...GOOD, pasword: SECRET }), 'not to include unknown field "pasword"'],
  [
    'an object for a string',
    given({ ...GOOD, password: { [SECRET]: SECRET } }),
    'at .password: String cannot represent',
  ],
  [
    'a list for a string',
    given({ ...GOOD, password: [`${SECRET}\n", found: x? Found: ${SECRET}`] }),
    'a non string value.',
  ],
  ['a number for a string', given({ ...GOOD, password: 47_114_711 }), 'String cannot represent a non string value.'],
  ['a value for an enum', { query: STATUS, variables: { s: SECRET } }, 'does not exist in "ClientStatus" enum.'],
  [
    'a quoting value for an enum',
    { query: STATUS, variables: { s: `" does not exist in "X" enum ${SECRET}` } },
    'The value does not',
  ],
  ['an object for an enum', { query: STATUS, variables: { s: { a: SECRET } } }, 'cannot represent non-string value.'],
  ['a string for a number', { query: PAGE, variables: { n: SECRET } }, 'Int cannot represent non-integer value.'],
  ['a large number', { query: LIMIT, variables: { n: 47_114_711_471_147 } }, 'non 32-bit signed integer value.'],
  ['an object for an id', { query: '{ account(id: {a: "ZQhunter2"}) { id } }' }, 'non-string and non-integer value.'],
  [
    'a literal with an additional member',
    { query: literal(`{username: "u", role: "r", password: "${SECRET}", x: 1}`) },
    'unknown field "x"',
  ],
  [
    'a literal with a misspelt member',
    { query: literal(`{username: "u", role: "r", pasword: """one\n ${SECRET}"""}`) },
    'Did you mean "password"?',
  ],
  ['a list as a literal', { query: literal(`[{password: "${SECRET}"}, "${SECRET}"]`) }, 'to be an object.'],
  [
    'a name as a literal',
    { query: literal(`{username: "u", role: "r", password: ${SECRET}}`) },
    'String cannot represent a non string value.',
  ],
  [
    'a list of names as a literal',
    { query: literal(`{username: "u", role: "r", password: [${SECRET}, 4711]}`) },
    'String cannot represent',
  ],
  [
    'a default',
    { query: `query ($n: Int = "${SECRET}") { accounts(first: $n) { totalCount } }` },
    'Int cannot represent non-integer value.',
  ],
  [
    'a string as an enum literal',
    { query: `mutation { setClientStatus(id: "7", status: "${SECRET}") { __typename } }` },
    'cannot represent non-enum value.',
  ],
  [
    'a name as an enum literal',
    { query: `mutation { setClientStatus(id: "7", status: ${SECRET}) { __typename } }` },
    'The value does not exist in "ClientStatus" enum.',
  ],
  [
    'a string after a string',
    { query: literal(`{password: "a" "${SECRET}"}`) },
    'Syntax Error: Expected Name, found String.',
  ],
  ['a block string after a string', { query: literal(`{password: "a" """${SECRET}"""}`) }, 'found BlockString.'],
  [
    'words without quotes',
    { query: literal(`{password: correct horse ${SECRET}}`) },
    'Syntax Error: Expected ":", found Name.',
  ],
  [
    'a broken escape',
    { query: literal('{password: "\\uZQhunter2"}') },
    'Syntax Error: Invalid Unicode escape sequence.',
  ],
];

const fixture = useFixture();

describe('the error of an invalid value', () => {
  it.each(FAULTS)('D2-21: repeats no value over HTTP, and says what is wrong: %s', async (_name, operation, told) => {
    const { status, text } = await fixture.query(operation.query, operation);
    expect(status).toBe(400);
    expect(text).not.toMatch(ANY_OF_IT);
    expect(text).toContain(JSON.stringify(told).slice(1, -1));
    expect(text).toContain('"locations"');
  });

  it('D2-21: repeats no value in a batch', async () => {
    const { status, text, json } = await fixture.post(FAULTS.slice(0, 10).map(([, operation]) => operation));
    expect([status, json.every(({ errors }: { errors?: unknown }) => errors !== undefined)]).toEqual([200, true]);
    expect(text).not.toMatch(ANY_OF_IT);
  });

  it('D2-21: repeats no value over a socket', async () => {
    using socket = await openSocket(fixture, fixture.token);
    for (const [name, operation] of FAULTS) {
      const { text } = await socket.answerTo(operation.query, operation.variables);
      expect(text, name).toContain('"message"');
      expect(text, name).not.toMatch(ANY_OF_IT);
    }
  });

  const UPDATES = 'subscription ($f: TransactionFilter) { transactionUpdates(filter: $f) { cursor } }';
  it.each([
    ['a member', { f: { x: SECRET } }],
    ['a status', { f: { status: SECRET } }],
    ['a number', { f: { type: SECRET } }],
    ['a time', { f: { updatedSince: SECRET } }],
  ])('D2-21: repeats no value of a subscription: %s', async (_name, variables) => {
    const { text } = await fixture.query(UPDATES, { variables, headers: { accept: 'text/event-stream' } });
    expect(text).toContain('"errors"');
    expect(text).not.toMatch(ANY_OF_IT);
  });

  it('D2-21: repeats an unknown operation name only if it is a valid name', async () => {
    const operations = 'query a { me { nodeId } } query b { me { nodeId } }';
    const { text } = await fixture.query(operations, { operationName: `it is "${SECRET}".` });
    expect(text).toContain('"errors"');
    expect(text).not.toMatch(ANY_OF_IT);
  });
});

describe('an error message', () => {
  it.each([
    'Cannot query field "acounts" on type "Query". Did you mean "accounts"?',
    'Syntax Error: Expected Name, found "}".',
    'Syntax Error: Unexpected single quote character (\'), did you mean to use a double quote (")?',
    'Variable "$i" has invalid value at .name: Expected value of non-null type "String!" not to be null.',
    'Unknown operation named "b".',
    'the token has expired',
  ])('D2-21: without a value is unchanged: %s', (message) => {
    expect(withoutValues(message)).toBe(message);
  });
});

import { type Attack, type HttpRequest, httpGroup, post, raw, times } from './attack.ts';

const SEARCH = 'query ($s: String) { accounts(filter: { search: $s }) { totalCount } }';
const USERS =
  'mutation ($u: [MigrateUserInput!]!) { migrateUsers(users: $u) { __typename ... on ValidationError { issues { path message } } } }';
const CLIENT = `mutation ($i: ClientInput!) { createClient(input: $i) { __typename ... on ValidationError { issues { path message } } } }`;
const CHEAP = 'query ($a: Int) { accounts(first: $a) { you } }';
const UNKNOWN = /Cannot query field/;
/** An operation whose variables are JSON as it stands. */
function given(query: string, variables: string, behind = ''): () => HttpRequest {
  return () => raw(`{"query":${JSON.stringify(query)},"variables":${variables}${behind}}`);
}

const repeated = (count: number, piece: string) => Array(count).fill(piece).join(',');
/** Four members of a list that is given count as an object that is asked for. */
const COST = /the cost is \d+, at most 5000 is allowed/;
const list = (count: number, piece: string) => `[${repeated(count, piece)}]`;
const client = (more: string) => `{"i":{"name":"x","grantTypes":["CLIENT_CREDENTIALS"],"scopes":[]${more}}}`;

export const VARIABLES_ATTACKS: readonly Attack[] = [
  ...httpGroup('variables', [
    [
      'a string of a megabyte',
      'a pattern as long',
      post(SEARCH, { variables: { s: 'x'.repeat(1_000_000) } }),
      200,
      /must have at most 1000 characters/,
    ],
    [
      'a string of a megabyte in the place of a number',
      'a message as long',
      post(CHEAP, { variables: { a: 'x'.repeat(1_000_000) } }),
      400,
      UNKNOWN,
    ],
    [
      'a string of a megabyte in the place of a number of a good operation',
      'a message as long',
      post('query ($a: Int) { accounts(first: $a) { totalCount } }', { variables: { a: 'x'.repeat(1_000_000) } }),
      400,
      /\$a/,
    ],
    [
      'a list of 19,000 strings',
      'an issue for each',
      given(CLIENT, client(`,"allowedIps":${list(19_000, '"x"')}`)),
      200,
      /ValidationError/,
    ],
    [
      'a list of 19,000 different strings',
      'an issue for each',
      given(CLIENT, client(`,"allowedIps":[${times(19_000, (at) => `"${at}"`, ',')}]`)),
      200,
      /ValidationError/,
    ],
    [
      'a list of 19,000 numbers in the place of strings',
      'an error for each',
      given(CLIENT, client(`,"allowedIps":${list(19_000, '1')}`)),
      400,
      /String cannot represent|Too many errors/,
    ],
    [
      'a list of 19,000 unknown names of an enum',
      'a suggestion for each',
      given(CLIENT, `{"i":{"name":"x","grantTypes":${list(19_000, '"PASSWORT"')},"scopes":[]}}`),
      400,
      /GrantType/,
    ],
    [
      'a list of 19,000 empty objects',
      'an error for each',
      given(USERS, `{"u":${list(19_000, '{}')}}`),
      400,
      /walletAddress/,
    ],
    [
      'a list of 19,000 users without a value',
      'an issue for each',
      given(USERS, `{"u":${list(19_000, '{"walletAddress":""}')}}`),
      200,
      /ValidationError/,
    ],
    [
      'a list of 19,000 nulls',
      'an error for each',
      given(USERS, `{"u":${list(19_000, 'null')}}`),
      400,
      /not to be null/,
    ],
    ['a list of 300,000 empty objects', 'an error for each', given(USERS, `{"u":${list(300_000, '{}')}}`), 400, COST],
    [
      'lists of 150,000 members within a list',
      'an error for each',
      given(USERS, `{"u":${list(50_000, '[1,1]')}}`),
      400,
      COST,
    ],
    [
      'an object of 50,000 members',
      'a suggestion for each',
      given(USERS, `{"u":[{${times(50_000, (at) => `"email${at}":1`, ',')}}]}`),
      400,
      /object of 50000 members, at most 1000/,
    ],
    [
      '50,000 that are not declared',
      'a crash',
      given('{ you }', `{${times(50_000, (at) => `"v${at}":"x${at}"`, ',')}}`),
      400,
      /object of 50000 members, at most 1000/,
    ],
    [
      'declared as many as tokens go, and not used',
      'an error for each',
      post(`query (${times(240, (at) => `$a${at}: Int`)}) { you }`),
      400,
      /is never used/,
    ],
    [
      'used as many as tokens go, and not declared',
      'an error for each',
      post(`{ me { nodeId } ${times(90, (at) => `f${at}(first: $a${at}) { you }`)} }`),
      400,
      /is not defined/,
    ],
    [
      'with defaults as many as tokens go',
      'a conversion for each',
      post(`query (${times(160, (at) => `$a${at}: Int = 1`)}) { accounts(first: $a0) { totalCount } }`),
      400,
      /is never used/,
    ],
    [
      'one declared many times',
      'an error for each',
      post(`query (${'$a: Int '.repeat(240)}) { accounts(first: $a) { totalCount } }`),
      400,
      /There can be only one variable/,
    ],
    ['that are a list', 'a crash', given('{ me { nodeId } }', '[1]'), 400, /[Vv]ariables/],
    ['that are a string', 'a crash', given('{ me { nodeId } }', '"x"'), 400, /[Vv]ariables/],
    [
      '__proto__ as a name',
      'members of every object',
      given(
        'query ($a: Int) { accounts(first: $a) { totalCount } }',
        '{"__proto__":{"a":101},"constructor":{"prototype":{"a":101}}}',
      ),
      200,
      /"totalCount"/,
    ],
    [
      '__proto__ as a declared name',
      'members of every object',
      given('query ($__proto__: Int) { accounts(first: $__proto__) { totalCount } }', '{"__proto__":101}'),
      400,
      /first or last is 101|__proto__/,
    ],
    [
      'constructor as a declared name',
      'a function as a value',
      given('query ($constructor: Int) { accounts(first: $constructor) { edges { node { you } } } }', '{}'),
      400,
      UNKNOWN,
    ],
    [
      '__proto__ within an input',
      'members of every object',
      given(USERS, '{"u":[{"__proto__":{"walletAddress":"0x1"}}]}'),
      400,
      /MigrateUserInput|walletAddress/,
    ],
    [
      'one that is named twice',
      'a value that is not measured',
      given('query ($a: Int) { accounts(first: $a) { totalCount } }', '{"a":1,"a":101}'),
      400,
      /must have each member once/,
    ],
    [
      'named twice themselves',
      'values that are not measured',
      given('query ($a: Int) { accounts(first: $a) { totalCount } }', '{"a":1}', ',"variables":{"a":101}'),
      400,
      /must have variables once/,
    ],
    [
      'lone surrogates and zeros',
      'a text that no database takes',
      given(SEARCH, '{"s":"\\ud800\\u0000"}'),
      200,
      /"errors"/,
    ],
  ]),
];

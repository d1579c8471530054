import { type Attack, get, type HttpRequest, httpGroup, post, raw, times } from './attack.ts';

const SEARCH = 'query ($s: String) { accounts(filter: { search: $s }) { totalCount } }';
const USERS =
  'mutation ($u: [MigrateUserInput!]!) { migrateUsers(users: $u) { __typename ... on ValidationError { issues { path message } } } }';
const CLIENT = `mutation ($i: ClientInput!) { createClient(input: $i) { __typename ... on ValidationError { issues { path message } } } }`;
const PREVIEW = `query ($i: PreviewWalletRuleInput!) { previewWalletRule(input: $i) { fires } }`;
const CHEAP = 'query ($a: Int) { accounts(first: $a) { you } }';
const UNKNOWN = /Cannot query field/;
const ID = 'aaaaaaaa-0000-4000-8000-000000000001';
const NESTED = /more than 100 levels within each other/;
const DIGITS = '9'.repeat(100_000);

/** An operation whose variables are JSON as it stands. */
function given(query: string, variables: string, behind = ''): () => HttpRequest {
  return () => raw(`{"query":${JSON.stringify(query)},"variables":${variables}${behind}}`);
}

const repeated = (count: number, piece: string) => Array(count).fill(piece).join(',');
const list = (count: number, piece: string) => `[${repeated(count, piece)}]`;
const deep = (levels: number, inner = '1') => `${'['.repeat(levels)}${inner}${']'.repeat(levels)}`;
const deepObject = (levels: number, key = 'a') => `${`{"${key}":`.repeat(levels)}1${'}'.repeat(levels)}`;
const client = (more: string) => `{"i":{"name":"x","grantTypes":["CLIENT_CREDENTIALS"],"scopes":[]${more}}}`;
const balance = (value: string) => `{"field":"balance","networkCurrencyId":"${ID}","value":${value}}`;
const rule = (logic: string) =>
  `{"i":{"balances":[],"rule":{"name":"x","type":"auto-transfer","networkId":"${ID}","networkCurrencyId":"${ID}","autoTransferRule":{"type":"x","amount":1,"targetWalletId":"${ID}","ruleLogic":${logic}}}}}`;
const ruleLiteral = (logic: string) =>
  `{ previewWalletRule(input: { balances: [], rule: { name: "x", type: "auto-transfer", networkId: "${ID}", networkCurrencyId: "${ID}", autoTransferRule: { type: "x", amount: 1, targetWalletId: "${ID}", ruleLogic: ${logic} } } }) { fires } }`;

export const VALUE_ATTACKS: readonly Attack[] = [
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
      'a list of 100,000 strings',
      'an issue for each',
      given(CLIENT, client(`,"allowedIps":${list(100_000, '"x"')}`)),
      200,
      /ValidationError/,
    ],
    [
      'a list of 100,000 different strings',
      'an issue for each',
      given(CLIENT, client(`,"allowedIps":[${times(100_000, (at) => `"${at}"`, ',')}]`)),
      200,
      /ValidationError/,
    ],
    [
      'a list of 100,000 numbers in the place of strings',
      'an error for each',
      given(CLIENT, client(`,"allowedIps":${list(100_000, '1')}`)),
      400,
      /String cannot represent|Too many errors/,
    ],
    [
      'a list of 100,000 unknown names of an enum',
      'a suggestion for each',
      given(CLIENT, `{"i":{"name":"x","grantTypes":${list(50_000, '"PASSWORT"')},"scopes":[]}}`),
      400,
      /GrantType/,
    ],
    [
      'a list of 300,000 empty objects',
      'an error for each',
      given(USERS, `{"u":${list(300_000, '{}')}}`),
      400,
      /walletAddress/,
    ],
    [
      'a list of 40,000 users without a value',
      'an issue for each',
      given(USERS, `{"u":${list(40_000, '{"walletAddress":""}')}}`),
      200,
      /ValidationError/,
    ],
    [
      'a list of 100,000 nulls',
      'an error for each',
      given(USERS, `{"u":${list(100_000, 'null')}}`),
      400,
      /not to be null/,
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
      /first or last is 101/,
    ],
    [
      'named twice themselves',
      'values that are not measured',
      given('query ($a: Int) { accounts(first: $a) { totalCount } }', '{"a":1}', ',"variables":{"a":101}'),
      400,
      /first or last is 101/,
    ],
    [
      'lone surrogates and zeros',
      'a text that no database takes',
      given(SEARCH, '{"s":"\\ud800\\u0000"}'),
      200,
      /"errors"/,
    ],
  ]),
  ...httpGroup('numbers', [
    [
      'of 100,000 digits as an Int',
      'a conversion of quadratic time',
      given(CHEAP.replace('you', 'totalCount'), `{"a":${DIGITS}}`),
      400,
      /\$a/,
    ],
    [
      'of 100,000 digits as a Decimal',
      'a conversion of quadratic time',
      given(PREVIEW, `{"i":{"ruleId":"${ID}","balances":[${balance(DIGITS)}]}}`),
      200,
      /significant digits/,
    ],
    [
      'of 100,000 zeros behind the point',
      'a conversion of quadratic time',
      given(PREVIEW, `{"i":{"ruleId":"${ID}","balances":[${balance(`1.${'0'.repeat(100_000)}1`)}]}}`),
      200,
      /significant digits/,
    ],
    [
      'of an exponent of a million as a Decimal',
      'a million digits',
      given(PREVIEW, `{"i":{"ruleId":"${ID}","balances":[${balance('1e999999')}]}}`),
      200,
      /significant digits/,
    ],
    [
      'of an exponent of a million as a Decimal in a string',
      'a million digits',
      given(PREVIEW, `{"i":{"ruleId":"${ID}","balances":[${balance('"1e-999999"')}]}}`),
      200,
      /significant digits/,
    ],
    [
      'of an exponent of a million as a literal',
      'a million digits',
      post(ruleLiteral('{ field: "x", op: "gt", value: 1e999999 }')),
      200,
      /significant digits|must/,
    ],
    [
      'a list of 50,000 that a double would change',
      'a conversion for each',
      given(PREVIEW, `{"i":{"ruleId":"${ID}","balances":[],"transfers":${list(45_000, '12345678901234567890')}}}`),
      400,
      /TransferInput/,
    ],
    [
      'a list of 9,000 that a double would change',
      'a conversion for each',
      given(PREVIEW, `{"i":{"ruleId":"${ID}","balances":${list(9_000, balance('9'.repeat(20)))}}}`),
      200,
      /must have at most 1000 balances/,
    ],
  ]),
  ...httpGroup('nesting', [
    ['10,000 lists in the body', 'a stack overflow', () => raw(deep(10_000)), 400, NESTED],
    ['500,000 lists in the body', 'a stack overflow', () => raw(deep(500_000)), 400, NESTED],
    ['10,000 objects in the body', 'a stack overflow', () => raw(deepObject(10_000)), 400, NESTED],
    ['10,000 lists in variables', 'a stack overflow', given('{ you }', `{"a":${deep(10_000)}}`), 400, NESTED],
    [
      '10,000 lists in variables of a good operation',
      'a stack overflow',
      given(SEARCH, `{"s":${deep(10_000)}}`),
      400,
      NESTED,
    ],
    [
      '100,000 objects in extensions',
      'a stack overflow',
      given('{ you }', '{}', `,"extensions":${deepObject(100_000)}`),
      400,
      NESTED,
    ],
    ['10,000 lists in a list of an input', 'a stack overflow', given(USERS, `{"u":${deep(10_000)}}`), 400, NESTED],
    ['90 lists in a JSON scalar', 'a stack overflow', given(PREVIEW, rule(deep(90))), 200, /ruleLogic/],
    ['10,000 lists in a JSON scalar', 'a stack overflow', given(PREVIEW, rule(deep(10_000))), 400, NESTED],
    [
      '10,000 groups in a rule',
      'a stack overflow',
      given(PREVIEW, rule(`${'{"not":'.repeat(10_000)}{}${'}'.repeat(10_000)}`)),
      400,
      NESTED,
    ],
    [
      'a rule of 50,000 conditions',
      'an issue for each',
      given(PREVIEW, rule(`{"and":${list(50_000, '{}')}}`)),
      200,
      /ruleLogic|conditions/,
    ],
    [
      'groups in a rule as many as tokens go',
      'a stack overflow',
      post(ruleLiteral(`${'{not: '.repeat(190)}{}${'}'.repeat(190)}`)),
      200,
      /ruleLogic|nested|deep/,
    ],
    [
      'lists in a JSON literal as many as tokens go',
      'a stack overflow',
      post(ruleLiteral(deep(440))),
      200,
      /ruleLogic|nested|deep/,
    ],
    [
      '__proto__ in a JSON scalar',
      'members of every object',
      given(PREVIEW, rule('{"__proto__":{"and":[]}}')),
      200,
      /ruleLogic/,
    ],
    [
      'documents within strings within documents',
      'a parse for each',
      given(
        '{ you }',
        `{"a":${JSON.stringify(Array.from({ length: 12 }).reduce<string>((text) => JSON.stringify({ a: text }), '{}'))}}`,
      ),
      400,
      UNKNOWN,
    ],
  ]),
  ...httpGroup('texts', [
    [
      'a search of nothing but wildcards',
      'a pattern of exponential time',
      post(SEARCH, { variables: { s: '%_'.repeat(5_000) } }),
      200,
      /must have at most 1000 characters/,
    ],
    [
      'a search of half a megabyte of wildcards',
      'a pattern of exponential time',
      post('query ($s: String) { users(filter: { search: $s }) { totalCount } }', {
        variables: { s: '%_'.repeat(250_000) },
      }),
      200,
      /must have at most 1000 characters/,
    ],
    [
      'a search of backslashes',
      'a pattern without its end',
      post(SEARCH, { variables: { s: '\\'.repeat(999) } }),
      200,
      /"totalCount":0/,
    ],
    [
      'a path of the audit of wildcards',
      'a pattern of exponential time',
      post('query ($s: String) { auditRecords(filter: { path: $s }) { totalCount } }', {
        variables: { s: '%_'.repeat(5_000) },
      }),
      200,
      /"totalCount":0/,
    ],
    [
      'a cursor of a megabyte',
      'a signature of a megabyte',
      post('query ($c: String) { accounts(after: $c) { totalCount edges { cursor } } }', {
        variables: { c: 'A'.repeat(1_000_000) },
      }),
      200,
      /cursor/,
    ],
    [
      'a forged cursor',
      'rows of others',
      post('{ accounts(after: "AAAAAAAAAAAyMDI2LTAxLTAxfHg") { edges { cursor } } }'),
      200,
      /cursor/,
    ],
    [
      'a cursor that is no base64',
      'a crash',
      post('{ accounts(after: "%00\\u0000") { edges { cursor } } }'),
      200,
      /cursor/,
    ],
    [
      'a cursor of events that is no number',
      'a crash',
      post('subscription { transactionUpdates(after: "1e999999") { cursor } }', {
        headers: { accept: 'text/event-stream' },
      }),
      200,
      /cursor|CURSOR/,
    ],
    [
      'a cursor of events of 100,000 digits',
      'a conversion of quadratic time',
      post('subscription ($c: String) { transactionUpdates(after: $c) { cursor } }', {
        variables: { c: DIGITS },
        headers: { accept: 'text/event-stream' },
      }),
      200,
      /cursor|CURSOR/,
    ],
    [
      'an id of a megabyte',
      'a conversion as long',
      post('query ($i: ID!) { account(id: $i) { id } }', { variables: { i: 'x'.repeat(1_000_000) } }),
      200,
      /"account":null/,
    ],
    [
      'a time of a megabyte',
      'a parser of exponential time',
      post('query ($t: DateTime) { transactions(filter: { updatedSince: $t }) { totalCount } }', {
        variables: { t: `2026-01-01T00:00:00.${'0'.repeat(1_000_000)}Z` },
      }),
      200,
      /"totalCount":0/,
    ],
    [
      'extensions of a megabyte',
      'a copy of them',
      post('{ you }', { extensions: { a: 'x'.repeat(1_000_000) } }),
      400,
      UNKNOWN,
    ],
    [
      'extensions for stored operations',
      'an operation that nobody stored',
      post('', { extensions: { persistedQuery: { version: 1, sha256Hash: '0'.repeat(64) } } }),
      400,
      /Syntax Error: Unexpected <EOF>/,
    ],
    [
      'a GET whose variables are deep',
      'a stack overflow',
      get({ query: '{ you }', variables: deep(5_000) }),
      400,
      /variables/,
    ],
  ]),
];

import { type Attack, get, type HttpRequest, httpGroup, post, raw } from './attack.ts';

const SEARCH = 'query ($s: String) { accounts(filter: { search: $s }) { totalCount } }';
const USERS =
  'mutation ($u: [MigrateUserInput!]!) { migrateUsers(users: $u) { __typename ... on ValidationError { issues { path message } } } }';
const PREVIEW = `query ($i: PreviewWalletRuleInput!) { previewWalletRule(input: $i) { fires } }`;
const CHEAP = 'query ($a: Int) { accounts(first: $a) { you } }';
const UNKNOWN = /Cannot query field/;
const ID = 'aaaaaaaa-0000-4000-8000-000000000001';
const TRANSFER = `{"amount":1,"at":"2026-11-21T10:00:00Z","networkCurrencyId":"${ID}"}`;
const NESTED = /more than 20000 levels within each other/;
const DIGITS = '9'.repeat(100_000);

/** An operation whose variables are JSON as it stands. */
function given(query: string, variables: string, behind = ''): () => HttpRequest {
  return () => raw(`{"query":${JSON.stringify(query)},"variables":${variables}${behind}}`);
}

const repeated = (count: number, piece: string) => Array(count).fill(piece).join(',');
const list = (count: number, piece: string) => `[${repeated(count, piece)}]`;
const deep = (levels: number, inner = '1') => `${'['.repeat(levels)}${inner}${']'.repeat(levels)}`;
const deepObject = (levels: number, key = 'a') => `${`{"${key}":`.repeat(levels)}1${'}'.repeat(levels)}`;
const balance = (value: string) => `{"field":"balance","networkCurrencyId":"${ID}","value":${value}}`;
const rule = (logic: string) =>
  `{"i":{"balances":[],"rule":{"name":"x","type":"auto-transfer","networkId":"${ID}","networkCurrencyId":"${ID}","autoTransferRule":{"type":"x","amount":1,"targetWalletId":"${ID}","ruleLogic":${logic}}}}}`;
const ruleLiteral = (logic: string) =>
  `{ previewWalletRule(input: { balances: [], rule: { name: "x", type: "auto-transfer", networkId: "${ID}", networkCurrencyId: "${ID}", autoTransferRule: { type: "x", amount: 1, targetWalletId: "${ID}", ruleLogic: ${logic} } } }) { fires } }`;

export const VALUES_ATTACKS: readonly Attack[] = [
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
      'a list of 19,000 that a double would change',
      'a conversion for each',
      given(PREVIEW, `{"i":{"ruleId":"${ID}","balances":[],"transfers":${list(19_000, '12345678901234567890')}}}`),
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
    [
      'a preview of 8,500 transfers under thirty names',
      'a quarter of a million evaluations',
      given(
        `query ($i: PreviewWalletRuleInput!) { ${Array.from({ length: 30 }, (_, n) => `a${n}: previewWalletRule(input: $i) { fires }`).join(' ')} }`,
        `{"i":{"ruleId":"${ID}","balances":[],"transfers":${list(8_500, TRANSFER)}}}`,
      ),
      400,
      /the cost is \d+, at most 5000 is allowed/,
    ],
  ]),
  ...httpGroup('nesting', [
    ['100,000 lists in the body', 'a stack overflow', () => raw(deep(100_000)), 400, NESTED],
    ['500,000 lists in the body', 'a stack overflow', () => raw(deep(500_000)), 400, NESTED],
    ['100,000 objects in the body', 'a stack overflow', () => raw(deepObject(100_000)), 400, NESTED],
    ['10,000 lists in variables', 'a stack overflow', given('{ you }', `{"a":${deep(10_000)}}`), 400, UNKNOWN],
    ['10,000 lists in a rule', 'a stack overflow', given(PREVIEW, rule(deep(10_000))), 200, /ruleLogic/],
    ['100,000 lists in variables', 'a stack overflow', given('{ you }', `{"a":${deep(100_000)}}`), 400, NESTED],
    [
      '100,000 lists in variables of a good operation',
      'a stack overflow',
      given(SEARCH, `{"s":${deep(100_000)}}`),
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
    ['100,000 lists in a list of an input', 'a stack overflow', given(USERS, `{"u":${deep(100_000)}}`), 400, NESTED],
    ['90 lists in a JSON scalar', 'a stack overflow', given(PREVIEW, rule(deep(90))), 200, /ruleLogic/],
    ['100,000 lists in a JSON scalar', 'a stack overflow', given(PREVIEW, rule(deep(100_000))), 400, NESTED],
    [
      '100,000 groups in a rule',
      'a stack overflow',
      given(PREVIEW, rule(`${'{"not":'.repeat(100_000)}{}${'}'.repeat(100_000)}`)),
      400,
      NESTED,
    ],
    [
      'a rule of 19,000 conditions',
      'an issue for each',
      given(PREVIEW, rule(`{"and":${list(19_000, '{}')}}`)),
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
      /PersistedQueryNotSupported/,
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

import { type Attack, get, given, httpGroup, post, stream, times } from './attack.ts';

const SEARCH = 'query ($s: String) { accounts(filter: { search: $s }) { totalCount } }';
const ISSUES = '{ __typename ... on ValidationError { issues { path message } } }';
const USERS = `mutation ($u: [MigrateUserInput!]!) { migrateUsers(users: $u) ${ISSUES} }`;
const CLIENT = `mutation ($i: ClientInput!) { createClient(input: $i) ${ISSUES} }`;
const PREVIEW = 'query ($i: PreviewWalletRuleInput!) { previewWalletRule(input: $i) { fires } }';
const CHEAP = 'query ($a: Int) { accounts(first: $a) { you } }';
const GOOD = CHEAP.replace('you', 'totalCount');
const ME = '{ me { nodeId } }';
const YOU = '{ you }';
const ID = 'aaaaaaaa-0000-4000-8000-000000000001';
const TRANSFER = `{"amount":1,"at":"2026-11-21T10:00:00Z","networkCurrencyId":"${ID}"}`;
const DIGITS = '9'.repeat(100_000);
const COST = /the cost is \d+; at most 5000 is allowed|must have at most 50000 values/;
const NESTED = /more than 10100 levels deep/;
const NO_FIELD = /Cannot query field/;

const list = (count: number, piece: string) => `[${Array(count).fill(piece).join(',')}]`;
const deep = (levels: number) => `${'['.repeat(levels)}1${']'.repeat(levels)}`;
const deepObject = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
const balances = (value: string) => `{"i":{"ruleId":"${ID}","balances":[${balance(value)}]}}`;
const balance = (value: string) => `{"field":"balance","networkCurrencyId":"${ID}","value":${value}}`;
const client = (more: string) => `{"i":{"name":"x","grantTypes":["CLIENT_CREDENTIALS"],"scopes":[]${more}}}`;
const MOVED = `{"type":"x","amount":1,"targetWalletId":"${ID}","ruleLogic":LOGIC}`;
const RULE = `{"balances":[],"rule":{"name":"x","type":"auto-transfer","networkId":"${ID}","networkCurrencyId":"${ID}","autoTransferRule":${MOVED}}}`;
const rule = (logic: string) => given(PREVIEW, `{"i":${RULE.replace('LOGIC', logic)}}`);
const literal = (logic: string) =>
  `{ previewWalletRule(input: ${RULE.replaceAll(/"(\w+)":/g, '$1: ').replace('LOGIC', logic)}) { fires } }`;

/** What values would do where nobody refused them: an overflow, a conversion of quadratic time, an error for each. */
export const VALUE_ATTACKS: readonly Attack[] = [
  ...httpGroup(
    'numbers',
    /significant digits|must/,
    {
      'of 100,000 digits as a Decimal': given(PREVIEW, balances(DIGITS)),
      'of 100,000 zeros after the decimal point': given(PREVIEW, balances(`1.${'0'.repeat(100_000)}1`)),
      'of an exponent of a million': given(PREVIEW, balances('1e999999')),
      'of an exponent of a million in a string': given(PREVIEW, balances('"1e-999999"')),
      'of an exponent of a million as a literal': literal('{ field: "x", op: "gt", value: 1e999999 }'),
      '9,000 that a double would change': given(
        PREVIEW,
        `{"i":{"ruleId":"${ID}","balances":${list(9_000, balance('9'.repeat(20)))}}}`,
      ),
    },
    { status: 200 },
  ),
  ...httpGroup(
    'values of another type',
    /\$a|TransferInput|String cannot represent|Too many errors|GrantType|walletAddress|not to be null/,
    {
      '100,000 digits as an Int': given(GOOD, `{"a":${DIGITS}}`),
      'a string of a megabyte as an Int': post(GOOD, { variables: { a: 'x'.repeat(1_000_000) } }),
      'a list of 19,000 that a double would change': given(
        PREVIEW,
        `{"i":{"ruleId":"${ID}","balances":[],"transfers":${list(19_000, '12345678901234567890')}}}`,
      ),
      'a list of 19,000 numbers as strings': given(CLIENT, client(`,"allowedIps":${list(19_000, '1')}`)),
      'a list of 19,000 unknown names of an enum': given(
        CLIENT,
        `{"i":{"name":"x","grantTypes":${list(19_000, '"PASSWORT"')},"scopes":[]}}`,
      ),
      'a list of 19,000 empty objects': given(USERS, `{"u":${list(19_000, '{}')}}`),
      'a list of 19,000 nulls': given(USERS, `{"u":${list(19_000, 'null')}}`),
      '__proto__ within an input': given(USERS, '{"u":[{"__proto__":{"walletAddress":"0x1"}}]}'),
    },
  ),
  ...httpGroup('costs of values', COST, {
    'a preview of 8,500 transfers under thirty names': given(
      `query ($i: PreviewWalletRuleInput!) { ${times(30, (n) => `a${n}: previewWalletRule(input: $i) { fires }`)} }`,
      `{"i":{"ruleId":"${ID}","balances":[],"transfers":${list(8_500, TRANSFER)}}}`,
    ),
    'a list of 300,000 empty objects': given(USERS, `{"u":${list(300_000, '{}')}}`),
    'lists of 150,000 members within a list': given(USERS, `{"u":${list(50_000, '[1,1]')}}`),
  }),
  ...httpGroup('members', /object with 4\d{4} members; at most 1000|must have at most 50000 values/, {
    'an object of 50,000': given(USERS, `{"u":[{${times(50_000, (at) => `"email${at}":1`, ',')}}]}`),
    '50,000 variables that are not declared': given(YOU, `{${times(50_000, (at) => `"v${at}":"x${at}"`, ',')}}`),
  }),
  ...httpGroup('nesting', NESTED, {
    '100,000 lists in variables': given(YOU, `{"a":${deep(100_000)}}`),
    '100,000 lists in variables of a good operation': given(SEARCH, `{"s":${deep(100_000)}}`),
    '100,000 objects in extensions': given(YOU, '{}', `,"extensions":${deepObject(100_000)}`),
    '100,000 lists in a list of an input': given(USERS, `{"u":${deep(100_000)}}`),
    '100,000 lists in a JSON scalar': rule(deep(100_000)),
    '19,990 lists in a JSON scalar': rule(deep(19_990)),
    '19,990 lists in variables': given(YOU, `{"a":${deep(19_990)}}`),
    '100,000 groups in a rule': rule(`${'{"not":'.repeat(100_000)}{}${'}'.repeat(100_000)}`),
  }),
  ...httpGroup('variables nobody looks at', NO_FIELD, {
    '90 lists': given(YOU, `{"a":${deep(90)}}`),
    'documents within strings within documents': given(
      YOU,
      `{"a":${JSON.stringify(Array.from({ length: 12 }).reduce<string>((text) => JSON.stringify({ a: text }), '{}'))}}`,
    ),
    'extensions of a megabyte': post(YOU, { extensions: { a: 'x'.repeat(1_000_000) } }),
    'constructor as a declared name': given(
      'query ($constructor: Int) { accounts(first: $constructor) { edges { node { you } } } }',
      '{}',
    ),
  }),
  ...httpGroup(
    'logic of a rule',
    /ruleLogic|conditions|nested|deep/,
    {
      '90 lists': rule(deep(90)),
      '19,000 conditions': rule(`{"and":${list(19_000, '{}')}}`),
      'groups as many as tokens go': literal(`${'{not: '.repeat(190)}{}${'}'.repeat(190)}`),
      'lists in a literal as many as tokens go': literal(deep(440)),
      __proto__: rule('{"__proto__":{"and":[]}}'),
    },
    { status: 200 },
  ),
  ...httpGroup(
    'texts',
    /must have at most 1000 characters|ValidationError/,
    {
      'a search of a megabyte': post(SEARCH, { variables: { s: 'x'.repeat(1_000_000) } }),
      'a search of nothing but wildcards': post(SEARCH, { variables: { s: '%_'.repeat(5_000) } }),
      'a list of 19,000 strings': given(CLIENT, client(`,"allowedIps":${list(19_000, '"x"')}`)),
      'a list of 19,000 different strings': given(
        CLIENT,
        client(`,"allowedIps":[${times(19_000, (at) => `"${at}"`, ',')}]`),
      ),
      'a list of 19,000 users without a value': given(USERS, `{"u":${list(19_000, '{"walletAddress":""}')}}`),
    },
    { status: 200 },
  ),
  ...httpGroup(
    'texts that find nothing',
    /"totalCount":0|"account":null|"totalCount":25|"errors"/,
    {
      'a search of backslashes': post(SEARCH, { variables: { s: '\\'.repeat(999) } }),
      'lone surrogates and zeros': given(SEARCH, '{"s":"\\ud800\\u0000"}'),
      'a path of the audit of wildcards': post(
        'query ($s: String) { auditRecords(filter: { path: $s }) { totalCount } }',
        { variables: { s: '%_'.repeat(5_000) } },
      ),
      'an id of a megabyte': post('query ($i: ID!) { account(id: $i) { id } }', {
        variables: { i: 'x'.repeat(1_000_000) },
      }),
      'a time of a megabyte': post(
        'query ($t: DateTime) { transactions(filter: { updatedSince: $t }) { totalCount } }',
        { variables: { t: `2026-01-01T00:00:00.${'0'.repeat(1_000_000)}Z` } },
      ),
      '__proto__ as a name': given(GOOD, '{"__proto__":{"a":101},"constructor":{"prototype":{"a":101}}}'),
    },
    { status: 200 },
  ),
  ...httpGroup(
    'cursors',
    /cursor|CURSOR/,
    {
      'of a megabyte': post('query ($c: String) { accounts(after: $c) { edges { cursor } } }', {
        variables: { c: 'A'.repeat(1_000_000) },
      }),
      'that are forged': '{ accounts(after: "AAAAAAAAAAAyMDI2LTAxLTAxfHg") { edges { cursor } } }',
      'that are not base64': '{ accounts(after: "%00\\u0000") { edges { cursor } } }',
      'of events that are not a number': stream('subscription { transactionUpdates(after: "1e999999") { cursor } }'),
      'of events of 100,000 digits': stream('subscription ($c: String) { transactionUpdates(after: $c) { cursor } }', {
        variables: { c: DIGITS },
      }),
    },
    { status: 200 },
  ),
  ...httpGroup(
    'variables',
    /[Vv]ariables|must have each member once|first or last is 101|__proto__|PersistedQueryNotSupported/,
    {
      'that are a list': given(ME, '[1]'),
      'that are a string': given(ME, '"x"'),
      '__proto__ as a declared name': given(
        'query ($__proto__: Int) { accounts(first: $__proto__) { totalCount } }',
        '{"__proto__":101}',
      ),
      'one that is named twice': given(GOOD, '{"a":1,"a":101}'),
      'named twice themselves': given(GOOD, '{"a":1}', ',"variables":{"a":101}'),
      'deep ones of a GET': get({ query: YOU, variables: deep(5_000) }),
      'malformed JSON in a GET': get({ query: ME, variables: '{' }),
      'extensions for stored operations': post('', {
        extensions: { persistedQuery: { version: 1, sha256Hash: '0'.repeat(64) } },
      }),
    },
  ),
];

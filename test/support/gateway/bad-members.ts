import { type BadRow, BULK, GRAPHQL, RULE, RULES, SINGLE } from './bad-request.ts';

const TOKEN = 'POST /v2/oauth/token';
const MANAGEMENT = ['POST /v2/oauth/revoke', 'POST /v2/oauth/introspect'];
const WEBHOOK = 'POST /v2/webhooks/custodial';
const NUL = '"a\\u0000b"';
const SURROGATE = '"a\\ud800b"';
const LONG = `"${'x'.repeat(5_000)}"`;

/** Puts a JSON text in the place of a member's value; empty: takes the member out. */
function withMember(body: string, member: string, json: string): string {
  const value = /("[^"]*"|[\d.]+|true|false|\{[^{}]*\})/.source;
  const given = new RegExp(`"${member}":${value},?`);
  if (!given.test(body)) throw new Error(`no member ${member} in ${body}`);
  const text = json === '' ? '' : `"${member}":${json},`;
  return body.replace(given, () => text).replaceAll(/,([}\]])/g, '$1');
}

function member(route: string, name: string, json: string, at: string | undefined = name): BadRow {
  const last = name.split(/[.\]]/).at(-1) ?? name;
  return {
    route,
    name: `${name}: ${json.slice(0, 40) || 'absent'}`,
    change: ({ body }) => ({ body: withMember(String(body), last, json) }),
    status: 400,
    at: route === TOKEN ? undefined : at,
  };
}

function odd(route: string, name: string, json: string): BadRow {
  return { ...member(route, name, json), status: 'good', at: undefined };
}

const NO_TEXT = ['5', 'true', '[]', '{}', NUL, SURROGATE];
const NO_UUID = [
  '',
  'null',
  '5',
  '""',
  '"x"',
  `"${'0'.repeat(32)}"`,
  '"00000000-0000-0000-0000-00000000000g"',
  LONG,
  NUL,
];

const tokens: BadRow[] = [
  ...['', 'null', '""', ...NO_TEXT].map((json) => member(TOKEN, 'grant_type', json)),
  ...['client_id', 'client_secret'].flatMap((name) =>
    ['', 'null', '""', ...NO_TEXT].map((json) => member(TOKEN, name, json)),
  ),
  { ...member(TOKEN, 'client_id', '"x"') },
  { ...member(TOKEN, 'client_secret', LONG), status: 401 },
  { ...member(TOKEN, 'grant_type', '"__proto__"'), status: 403 },
  { ...member(TOKEN, 'grant_type', LONG), status: 403 },
  ...MANAGEMENT.flatMap((route) => [
    ...['', 'null', '""', ...NO_TEXT].map((json) => member(route, 'token', json)),
    ...['5', '[]', NUL, '"x"'].map((json) => member(route, 'client_id', json)),
    ...['5', '{}', NUL, '""'].map((json) => member(route, 'client_secret', json)),
    { ...member(route, 'client_secret', ''), status: 401, at: undefined } as const,
    { ...member(route, 'client_secret', LONG), status: 401, at: undefined } as const,
    odd(route, 'token', LONG),
  ]),
];

const AUTO = 'auto_transfer_rule';
const LIMIT = 'permissionless_transfer_limit_rule';
const SIGN = 'sign_and_approve_rule';

const rules: BadRow[] = [RULES, RULE].flatMap((route) => [
  ...['', 'null', ...NO_TEXT].map((json) => member(route, 'name', json)),
  odd(route, 'name', '""'),
  odd(route, 'name', '"\\ud83d\\ude00\\u202e\\uffff"'),
  ...['network_id', `${AUTO}.target_wallet_id`].flatMap((name) => NO_UUID.map((json) => member(route, name, json))),
  ...['5', '"x"', '[]'].map((json) => member(route, `${SIGN}.mandatory_user_id`, json)),
  odd(route, 'network_id', '"ABCDEFAB-CDEF-ABCD-EFAB-CDEFABCDEFAB"'),
  ...['0', '101', '-1', '1.5', '"5"', 'true', '1e999', '9007199254740993'].map((json) =>
    member(route, 'priority', json),
  ),
  ...['-0', '0', '1e-400', '-1', '1e79', '1e999', `${'9'.repeat(79)}`, '"50"', '[]'].map((json) =>
    member(route, `${AUTO}.amount`, json),
  ),
  odd(route, `${AUTO}.amount`, '9007199254740993.000000000000000000000000000001'),
  ...['0', '1.5', '"9"', '1e999', '-0'].map((json) => member(route, `${LIMIT}.max_amount`, json)),
  ...['""', '"Day"', '5', NUL].map((json) => member(route, `${LIMIT}.time_period`, json)),
  ...['0', '9007199254740993', '"1"'].map((json) => member(route, `${LIMIT}.time_period_value`, json)),
  ...['0', '1.5', '1e999', '"1"', '[]'].map((json) => member(route, `${SIGN}.min_user_count`, json)),
  ...['0', '101'].map((json) => member(route, `${SIGN}.min_priority`, json)),
  ...['"x"', '"><"', '5', '"constructor"', NUL].map((json) => member(route, `${AUTO}.rule_logic.op`, json)),
  ...['""', '"1"', 'true', '1e999'].map((json) => member(route, `${AUTO}.rule_logic.value`, json)),
  ...[NUL, SURROGATE, '5'].map((json) => member(route, `${AUTO}.rule_logic.field`, json)),
]);

const notifications: BadRow[] = [
  ...['', 'null', '""', '5', NUL, SURROGATE, `"${'i'.repeat(129)}"`].map((json) => member(WEBHOOK, 'id', json)),
  ...['', '"1"', '1.5', '1e999', '9007199254740993', 'true'].map((json) => member(WEBHOOK, 'type', json)),
  ...['', '0', '6', '-0', '"1"', '1e999', '[]'].map((json) => member(WEBHOOK, 'status', json)),
  ...['-1', '1.5', '18446744073709551616', '1e999', '"5"'].map((json) => member(WEBHOOK, 'gas_used', json)),
  ...['18446744073709551615', '-0', '1e3'].map((json) => odd(WEBHOOK, 'gas_used', json)),
  ...['5', NUL, SURROGATE].map((json) => member(WEBHOOK, 'transaction_hash', json)),
  ...['5', '{}', NUL].map((json) => member(WEBHOOK, 'error', json)),
  ...['', '5', '"2026-02-30T00:00:00Z"', '"yesterday"', NUL].map((json) => member(WEBHOOK, 'created_at', json)),
];

const users: BadRow[] = [
  ...(['wallet_address', 'email', 'external_id', 'name', 'surname'] as const).flatMap((name) => [
    ...['5', 'true', '[]', '{}', '1e999', '9007199254740993'].flatMap((json) => [
      member(SINGLE, name, json),
      member(BULK, name, json, `users[0].${name}`),
    ]),
    ...[NUL, SURROGATE].map((json) => member(SINGLE, name, json)),
  ]),
  ...['', 'null', '""', '" \\u00a0"', NUL].map((json) =>
    member(BULK, 'wallet_address', json, 'users[0].wallet_address'),
  ),
  ...['email', 'name', 'external_id'].flatMap((name) => [NUL, SURROGATE].map((json) => odd(BULK, name, json))),
  ...['"true"', '1', '[]'].flatMap((json) => [
    member(SINGLE, 'kyc_sent', json),
    member(BULK, 'kyc_sent', json, 'users[0].kyc_sent'),
  ]),
  member(SINGLE, 'wallet_address', `"${'w'.repeat(129)}"`),
  ...['{}', '{"users":[]}', '{"users":{}}', '{"users":null}', `{"users":[${'0,'.repeat(500)}0]}`].map(
    (body): BadRow => ({ route: BULK, name: body.slice(0, 30), change: () => ({ body }), status: 400, at: 'users' }),
  ),
  {
    route: SINGLE,
    name: 'neither email nor external_id',
    change: ({ body }) => ({ body: withMember(withMember(String(body), 'email', '""'), 'external_id', 'null') }),
    ...{ status: 400, message: 'missing_email_and_external_id' },
  },
];

const DEEP = 10_000;

/** Operations and their envelope (GraphQL over HTTP): what cannot run is a 400. */
const OPERATIONS: [name: string, body: string, status: 400 | 'good'][] = [
  ['no query', '{}', 400],
  ['a query that is null', '{"query":null}', 400],
  ['a query that is a number', '{"query":5}', 400],
  ['a query that is a list', '{"query":["{me{nodeId}}"]}', 400],
  ['an empty query', '{"query":""}', 400],
  ['a query of a comment', '{"query":"# nothing"}', 400],
  ['a query with U+0000', '{"query":"{me{nodeId}}\\u0000"}', 400],
  ['a query with a lone surrogate', '{"query":"{me{nodeId}}\\ud800"}', 400],
  ['a syntax error', '{"query":"{me{"}', 400],
  ['an unknown field', '{"query":"{__proto__}"}', 400],
  ['an unknown directive', '{"query":"{me @constructor {nodeId}}"}', 400],
  ['an unknown operation', '{"query":"query A{me{nodeId}}","operationName":"B"}', 400],
  ['an operation name that is a number', '{"query":"{me{nodeId}}","operationName":5}', 400],
  ['variables that are a list', '{"query":"{me{nodeId}}","variables":[]}', 400],
  ['variables that are a text', '{"query":"{me{nodeId}}","variables":"{}"}', 400],
  ['extensions that are a text', '{"query":"{me{nodeId}}","extensions":"{}"}', 400],
  ['a variable that is absent', '{"query":"query($id:ID!){account(id:$id){id}}"}', 400],
  ['a variable of another type', '{"query":"query($id:ID!){account(id:$id){id}}","variables":{"id":{}}}', 400],
  ['1e999 for an Int', '{"query":"query($n:Int){accounts(first:$n){totalCount}}","variables":{"n":1e999}}', 400],
  [
    '2^53+1 for an Int',
    '{"query":"query($n:Int){accounts(first:$n){totalCount}}","variables":{"n":9007199254740993}}',
    400,
  ],
  ['a text for an Int', '{"query":"query($n:Int){accounts(first:$n){totalCount}}","variables":{"n":"1"}}', 400],
  ['-0 for an Int', '{"query":"query($n:Int){accounts(first:$n){totalCount}}","variables":{"n":-0}}', 'good'],
  ['an id that is no UUID', '{"query":"{account(id:\\"\\ud83d\\ude00\\"){id}}"}', 'good'],
  ['an id of a lone surrogate', '{"query":"query($id:ID!){account(id:$id){id}}","variables":{"id":"\\ud800"}}', 'good'],
  ['an id of U+0000', '{"query":"query($id:ID!){account(id:$id){id}}","variables":{"id":"\\u0000"}}', 'good'],
  [
    'a variable named __proto__',
    '{"query":"query($__proto__:ID!){account(id:$__proto__){id}}","variables":{"__proto__":"x"}}',
    'good',
  ],
  [`a selection ${DEEP} deep`, `{"query":"${'{me'.repeat(DEEP)}"}`, 400],
  [`a list literal ${DEEP} deep`, `{"query":"{account(id:${'['.repeat(DEEP)}${']'.repeat(DEEP)}){id}}"}`, 400],
  [
    `a variable ${DEEP} deep`,
    `{"query":"query($id:ID!){account(id:$id){id}}","variables":{"id":${'['.repeat(DEEP)}${']'.repeat(DEEP)}}}`,
    400,
  ],
  [
    `an unknown variable ${DEEP} deep`,
    `{"query":"{me{nodeId}}","variables":{"x":${'['.repeat(DEEP)}${']'.repeat(DEEP)}}}`,
    'good',
  ],
  ['a document of many names', `{"query":"{me{${'nodeId '.repeat(50_000)}}}"}`, 400],
  ['eleven operations', `[${Array.from({ length: 11 }, () => '{"query":"{me{nodeId}}"}').join()}]`, 400],
  ['a batch of a number', '[1]', 'good'],
  ['a batch of null', '[null]', 'good'],
  ['an operation twice, the last one good', '{"query":"{you}","query":"{me{nodeId}}"}', 400],
];

const RULE_LOGIC =
  'mutation($l:JSON!){createWalletRule(walletId:"00000000-0000-4000-8000-000000000000",input:{name:"x",type:"auto_transfer",networkId:"00000000-0000-4000-8000-000000000000",networkCurrencyId:"00000000-0000-4000-8000-000000000000",autoTransferRule:{type:"auto",ruleLogic:$l,amount:1,targetWalletId:"00000000-0000-4000-8000-000000000000"}}){__typename}}';

const operations: BadRow[] = [
  ...OPERATIONS.map(([name, body, status]): BadRow => ({ route: GRAPHQL, name, change: () => ({ body }), status })),
  ...[`${'{"not":'.repeat(DEEP)}1${'}'.repeat(DEEP)}`, '1e999', '"\\ud800"', '{"__proto__":{}}', 'null'].map(
    (logic): BadRow => ({
      route: GRAPHQL,
      name: `rule logic ${logic.slice(0, 20)}`,
      change: () => ({ body: `{"query":${JSON.stringify(RULE_LOGIC)},"variables":{"l":${logic}}}` }),
      status: logic === 'null' ? 400 : 'good',
    }),
  ),
  ...(
    [
      ['', 400],
      ['query=', 400],
      ['query=%00', 400],
      ['query=%FF', 400],
      ['query=%7Bme%7BnodeId%7D%7D&variables=%7B', 400],
      ['query=%7Bme%7BnodeId%7D%7D&variables=[]', 400],
      ['query=%7Bme%7BnodeId%7D%7D&extensions=1e999', 400],
      ['query=%7Bme%7BnodeId%7D%7D&operationName=x', 400],
      ['query=mutation%7BeraseUser(id:1)%7B__typename%7D%7D', 405],
      ['query=%7Bme%7BnodeId%7D%7D&variables=%7B%22__proto__%22:1%7D', 'good'],
    ] as const
  ).map(
    ([query, status]): BadRow => ({
      route: 'GET /graphql',
      name: query,
      change: () => ({ target: `/graphql?${query}` }),
      status,
    }),
  ),
];

const files: BadRow[] = [
  'x',
  '..%5C..',
  '%2e%2e',
  'a/b',
  'openapi.json/',
  '%00',
  `${'x'.repeat(9_000)}`,
  '__proto__',
].map((file) => ({
  route: 'GET /swagger/*',
  name: file.slice(0, 30),
  change: () => ({ target: `/swagger/${file}` }),
  status: 404,
}));

/** Faults of what stands in a body or a query, route by route. */
export const MEMBER_ROWS: readonly BadRow[] = [...[tokens, rules, notifications, users, operations, files].flat()];

import { once } from 'node:events';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { TOPICS } from '../../src/events/bus/topics.ts';
import { Recorder } from '../support/events/recorder.ts';
import { formHeaders, formOf, MAP, OPERATIONS } from '../support/graphql/upload-requests.ts';
import { type Answer, usePortcullis } from '../support/harness.ts';
import { newUser } from '../support/user-migrations/calls.ts';
import { autoTransfer, leaf } from '../support/wallet-rules/rules.ts';
import { basic, notification } from '../support/webhook/fixture.ts';

const p = usePortcullis();
let token: string;
beforeAll(async () => {
  token = await p.clientToken();
});

type Path = readonly (string | number)[];

/** The JSON of a value with text before the first member of the object at a path: what no value of JavaScript has. */
function textWith(value: unknown, path: Path, more: string): string {
  const copy = structuredClone(value);
  const owner = path.reduce((outer, part) => (outer as Record<PropertyKey, unknown>)[part], copy) as object;
  const marked = { '@@': 0, ...owner };
  const put = (outer: unknown, [part, ...rest]: Path): unknown => {
    if (part === undefined) return marked;
    const members = outer as Record<string, unknown>;
    const changed = put(members[part], rest);
    return Array.isArray(outer) ? outer.with(Number(part), changed) : { ...members, [part]: changed };
  };
  return JSON.stringify(put(copy, path)).replace('"@@":0', more);
}

const JSON_TYPE = { 'content-type': 'application/json' };
const rules = () => `/v1/wallets/${p.demo.wallet_id}/rules`;
const rule = (changes: object = {}, own: object = {}) =>
  autoTransfer(
    { network_id: p.demo.network_id, network_currency_id: p.demo.network_currency_id, ...changes },
    { target_wallet_id: p.demo.target_wallet_id, ...own },
  );

function post(path: string, body: string, headers: Record<string, string> = {}): Promise<Answer> {
  return p.call('POST', path, { body, headers: { ...JSON_TYPE, ...headers }, token });
}

const webhook = (body: string) =>
  post('/v2/webhooks/custodial', body, { authorization: basic(p.webhook.username, p.webhook.password) });
const secret = () => ({ authorization: `Bearer ${p.demo.client.client_secret}` });

type Known = [what: string, value: () => unknown, path: Path, more: string, says: string];

const LOGIC = ['auto_transfer_rule', 'rule_logic'];
const treeRule = () => rule({}, { rule_logic: { or: [{ and: [leaf()] }, { not: leaf() }] } });
const users = () => ({ users: [newUser(), newUser(), newUser()] });
const me = (more: object = {}) => ({ query: '{ me { subject } }', ...more });
const deep = () => me({ variables: { a: [{ b: {} }] } });
const persisted = () => me({ extensions: { persistedQuery: { version: 1 } } });
const tool = () => call('get_access', {});
const EACH = 'each member once';

/** What each interface knows of a body, with the member that is there again before it, and what the 400 says. */
const interfaces: [name: string, send: (body: string) => Promise<Answer>, known: Known[]][] = [
  [
    'the webhook',
    webhook,
    [
      ['a status', notification, [], '"status":4', '"status"'],
      ['an error that is an object', notification, [], '"error":null,"error":{"a":1}', '"error"'],
      ['gas beyond a double', notification, [], '"gas_used":18446744073709551615,"gas_used":1', '"gas_used"'],
    ],
  ],
  [
    'a wallet rule',
    (body) => post(rules(), body),
    [
      ['a name', rule, [], '"name":"x"', '"name"'],
      ['its own object', rule, [], '"auto_transfer_rule":null', '"auto_transfer_rule"'],
      ['an exact amount', rule, LOGIC.slice(0, 1), '"amount":1.00000000000000000001', '"auto_transfer_rule.amount"'],
      ['a group in a group', treeRule, [...LOGIC, 'or', 0], '"\\u0061nd":null', 'or[0].and"'],
      ['a leaf in two groups', treeRule, [...LOGIC, 'or', 1, 'not'], '"op":"lt"', 'not.op"'],
    ],
  ],
  [
    'a migration',
    (body) => post('/v2/users/migrate/with-wallet', body),
    [
      ['an email', newUser, [], '"email":"eve@example.com"', '"email"'],
      ['kyc_sent', newUser, [], '"kyc_sent":true,"kyc_sent":false', '"kyc_sent"'],
    ],
  ],
  [
    'a bulk migration',
    (body) => post('/v2/users/migrate/with-wallet/bulk', body),
    [
      ['the rows', users, [], '"users":[]', '"users"'],
      ['an email of a later row', users, ['users', 2], '"email":"a@example.com"', '"users[2].email"'],
    ],
  ],
  [
    'GraphQL',
    (body) => post('/graphql', body),
    [
      ['a query', me, [], '"query":"{ __typename }"', 'query once'],
      ['an undeclared variable', () => me({ variables: {} }), ['variables'], '"a":1,"a":2', EACH],
      ['a deep member', deep, ['variables', 'a', 0, 'b'], '"c":1,"\\u0063":2', EACH],
      ['a query in a batch', () => [me(), me()], [1], '"query":"{ __typename }"', 'query once'],
      ['a persisted version', persisted, ['extensions', 'persistedQuery'], '"version":2', 'version once'],
    ],
  ],
  [
    'MCP',
    (body) => post('/v2/mcp', body, secret()),
    [
      ['a method', tool, [], '"method":"tools/list"', 'method once'],
      ['the name of a tool', tool, ['params'], '"name":"list_accounts"', 'name once'],
      ['an unknown argument', tool, ['params', 'arguments'], '"a":2,"\\u0061":3', EACH],
    ],
  ],
  [
    'the token endpoint',
    (body) => post('/v2/oauth/token', body),
    [
      ['a grant type', grant, [], '"grant_type":"password"', 'invalid_request'],
      ['an unknown parameter', grant, [], '"note":1,"note":1', 'invalid_request'],
    ],
  ],
  [
    'introspection',
    (body) => post('/v2/oauth/introspect', body),
    [['a token', () => ({ ...p.demo.client, token: 'a' }), [], '"token":"b"', 'token must be given once']],
  ],
];

function call(name: string, args: object) {
  return { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
}

function grant() {
  return { grant_type: 'client_credentials', ...p.demo.client };
}

/** What no interface knows, as far as it is not a parameter of OAuth. */
const unknown = [
  '"note":1,"note":2',
  '"note":{"id":1,"status":1,"name":1,"query":1,"method":1,"users":1},"note":{"id":2,"id":3,"query":1,"query":2}',
  '"__proto__":{"x":1,"x":2},"__proto__":null',
  '"":1,"":2,"\\u0000":1,"\\u0000":2,"\\ud800":1,"\\ud800":2',
];

/** Where members that nobody knows may stand, if not beside all others. */
const LOOSE: Partial<Record<string, [value: () => unknown, path: Path]>> = {
  GraphQL: [() => me({ extensions: {} }), ['extensions']],
  MCP: [() => ({ ...call('get_access', {}), params: { name: 'get_access', _meta: {} } }), ['params', '_meta']],
};

describe.each(interfaces)('%s', (name, send, known) => {
  it.each(known)('D2-28 D2-13: a repeated %s is a 400 that names it', async (_what, value, path, more, says) => {
    const answer = await send(textWith(value(), path, more));
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining(says)]);
  });

  const ignored = /token|introspection/.test(name) ? [] : unknown;
  it.each(ignored)('D2-28: an unknown member is ignored, repeated or not: %s', async (more) => {
    const [value, path] = LOOSE[name] ?? [known[0]?.[1] ?? (() => ({})), []];
    const { status, text } = await send(JSON.stringify(value()));
    expect([status < 300, text]).toEqual([true, text]);
    expect((await send(textWith(value(), path, more))).status).toBe(status);
  });
});

it('D2-28: a notification with a repeated member reaches neither topic', async () => {
  const [admin, user] = [new Recorder(), new Recorder()];
  await admin.follow(p.service.context.bus, TOPICS.admin);
  await user.follow(p.service.context.bus, TOPICS.user);
  const sent = notification();
  expect((await webhook(textWith(sent, [], '"status":4'))).status).toBe(400);
  expect((await webhook(JSON.stringify(sent))).status).toBe(200);
  for (const recorder of [admin, user]) {
    await vi.waitFor(() => expect(recorder.texts).toContain(JSON.stringify(sent)));
    expect(recorder.texts.filter((value) => value.includes(sent.id))).toEqual([JSON.stringify(sent)]);
  }
});

describe('GraphQL by other transports', () => {
  it('D2-28: repeated variables in a query string are rejected', async () => {
    for (const [variables, status] of [
      ['{"a":1,"a":2}', 400],
      ['{"a":{"b":1,"b":2}}', 400],
      ['{"a":1}', 200],
    ] as const) {
      const query = new URLSearchParams({ query: '{ me { subject } }', variables });
      expect((await p.call('GET', `/graphql?${query}`, { token })).status).toBe(status);
    }
  });

  it.each([
    ['operations', OPERATIONS.replace('{', '{"query":"{ me { subject } }",'), MAP],
    ['operations', OPERATIONS.replace('"file":null', '"file":null,"file":null'), MAP],
    ['map', OPERATIONS, '{"0":["variables.other"],"0":["variables.file"]}'],
  ])('D2-28: a repeated member in the part %s of an upload is rejected', async (part, operations, map) => {
    const body = formOf([
      { name: 'operations', value: operations },
      { name: 'map', value: map },
      { name: '0', value: 'wallet_address,email\n', filename: 'users.csv' },
    ]);
    const answer = await p.call('POST', '/graphql', { body, headers: formHeaders(token) });
    expect([answer.status, answer.json.errors]).toEqual([
      400,
      [{ path: part, message: expect.stringMatching(/once$/) }],
    ]);
  });

  const subscribe = (payload: string) => `{"type":"subscribe","id":"1","payload":${payload}}`;
  it.each([
    [
      'connection_init',
      () => `{"type":"connection_init","payload":{"authorization":"Bearer x","authorization":"Bearer ${token}"}}`,
    ],
    ['a variable', () => subscribe('{"query":"{ me { subject } }","variables":{"a":[{"b":1,"\\u0062":2}]}}')],
  ])('D2-28: a WebSocket message that repeats %s closes the socket with 4400', async (what, message) => {
    const socket = new WebSocket(`${p.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
    await once(socket, 'open');
    if (what !== 'connection_init') {
      socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }));
      await once(socket, 'message');
    }
    socket.send(message());
    expect((await once(socket, 'close'))[0]).toBe(4400);
  });
});

import { randomUUID } from 'node:crypto';
import { basic, notification } from '../webhook/fixture.ts';
import { form, hook, limitRule, nowhere, type OpenApiFixture, type Options, user, wallet } from './fixture.ts';

type Values = Readonly<Record<string, string>>;

/** One call of a route: what it is, its status, and what it sends, to which path. */
type Try = readonly [
  name: string,
  status: number,
  options?: (fixture: OpenApiFixture) => Options,
  values?: (fixture: OpenApiFixture) => Values,
];

/** The calls of a route, and the values of its path's parameters where a call has none of its own. */
interface Tries {
  method: string;
  path: string;
  values?: (fixture: OpenApiFixture) => Values;
  tries: readonly Try[];
}

const elsewhere = () => ({ headers: { 'x-target-server': 'x' } });

/** The refusals of every protected route. */
const refusals: readonly Try[] = [
  ['no token', 401],
  ['a broken token', 401, () => ({ token: 'x' })],
  ['no permission', 403, ({ poor }) => ({ token: poor })],
  ['another service', 404, elsewhere],
];

export const TOKEN = '/v2/oauth/token';

function grant(members: object) {
  return ({ p }: OpenApiFixture): Options => ({ json: { ...p.demo.client, ...members } });
}

function byBasic(members: Record<string, string>, secret?: string) {
  return ({ p }: OpenApiFixture): Options => {
    const { client_id: id, client_secret: own } = p.demo.client;
    return form(members, { authorization: basic(id, secret ?? own) });
  };
}

function ofLogin(password?: string) {
  return (fixture: OpenApiFixture): Options => {
    const { username, password: own } = fixture.p.demo.supervisor;
    return grant({ grant_type: 'password', username, password: password ?? own })(fixture);
  };
}

const CLIENT = { grant_type: 'client_credentials' };

/** Calls of the routes for tokens. */
const tokenCases: readonly Tries[] = [
  {
    method: 'POST',
    path: TOKEN,
    tries: [
      ['client credentials', 200, grant(CLIENT)],
      ['password', 200, ofLogin()],
      ['a form with Basic', 200, byBasic(CLIENT)],
      ['a client with limits', 200, ({ limited }) => ({ json: { ...limited, ...CLIENT } })],
      ['no username', 400, grant({ grant_type: 'password' })],
      ['a form without a grant', 400, byBasic({ scope: 'x' })],
      ['too long', 400, grant({ grant_type: 'x'.repeat(70_000) })],
      ['a wrong password', 401, ofLogin('wrong')],
      ['a wrong secret by Basic', 401, byBasic(CLIENT, 'wrong')],
      ['an unknown grant', 403, grant({ grant_type: 'implicit' })],
      ['an unknown grant in a form', 403, byBasic({ grant_type: 'implicit' })],
      ['another service', 404, (fixture) => ({ ...grant(CLIENT)(fixture), headers: { 'x-target-server': 'wallets' } })],
    ],
  },
  {
    method: 'POST',
    path: '/v2/oauth/revoke',
    tries: [
      ['an unknown token', 200, grant({ token: 'x' })],
      ['no token', 400, grant({})],
      ['no client', 401, () => ({ json: { token: 'x' } })],
      ['a wrong secret', 401, byBasic({ token: 'x' }, 'wrong')],
    ],
  },
  {
    method: 'POST',
    path: '/v2/oauth/introspect',
    tries: [
      ['a login token', 200, (fixture) => grant({ token: fixture.login })(fixture)],
      ['an API token', 200, (fixture) => byBasic({ token: fixture.token })(fixture)],
      ['no token of ours', 200, grant({ token: 'x' })],
      ['no token', 400, byBasic({})],
      ['a wrong secret', 401, grant({ client_secret: 'wrong', token: 'x' })],
    ],
  },
  { method: 'GET', path: '/.well-known/oauth-authorization-server', tries: [['metadata', 200]] },
  { method: 'GET', path: '/.well-known/oauth-protected-resource/v2/mcp', tries: [['metadata', 200]] },
];

const key = { 'idempotency-key': randomUUID() };
const tooLong = { name: 'x'.repeat(1_100_000) };

/** A rule, with members of its own and headers. */
function rule(members: object = {}, headers: Record<string, string> = {}) {
  return ({ p, token }: OpenApiFixture): Options => ({ token, json: limitRule(p, members), headers });
}

function noIds(): Values {
  return { wallet_id: 'x', id: 'x', network_id: 'x' };
}

function network({ p }: OpenApiFixture): Values {
  return { ...wallet(p), network_id: p.demo.second_network_id };
}

/** Calls of the routes of wallets. */
const walletCases: readonly Tries[] = [
  {
    method: 'POST',
    path: '/v1/wallets/{wallet_id}/rules',
    values: ({ p }) => wallet(p),
    tries: [
      ['a rule', 201, rule()],
      ['a rule under a key', 201, rule({}, key)],
      ['another under it', 409, rule({ name: 'Other' }, key)],
      ['an invalid rule', 400, rule({ type: 'x' })],
      ['an id that is none', 400, rule(), noIds],
      ...refusals,
      ['no such wallet', 404, rule(), nowhere],
      ['too long', 413, rule(tooLong)],
    ],
  },
  {
    method: 'PUT',
    path: '/v1/wallets/{wallet_id}/rules/{id}',
    values: ({ p, ruleId }) => ({ ...wallet(p), id: ruleId }),
    tries: [
      ['any version', 200, rule({}, { 'if-match': '*' })],
      ['a malformed If-Match', 400, rule({}, { 'if-match': '1' })],
      ...refusals,
      ['no such rule', 404, rule(), nowhere],
      ['another version', 412, rule({}, { 'if-match': '"999"' })],
      ['too long', 413, rule(tooLong)],
    ],
  },
  {
    method: 'POST',
    path: '/v1/wallets/{wallet_id}/networks/{network_id}',
    values: network,
    tries: [
      ['a network', 204, ({ token }) => ({ token })],
      [
        'of another chain',
        400,
        ({ token }) => ({ token }),
        ({ p }) => ({ ...wallet(p), network_id: p.demo.other_chain_network_id }),
      ],
      ...refusals,
      ['no such network', 404, ({ token }) => ({ token }), ({ p }) => ({ ...nowhere(), ...wallet(p) })],
    ],
  },
];

function notify(members: object = {}) {
  return ({ p }: OpenApiFixture): Options => hook(p, notification(members));
}

function one(members: object = {}) {
  return ({ token }: OpenApiFixture): Options => ({ token, json: user(members) });
}

function many(users: readonly object[], headers: Record<string, string> = {}) {
  return ({ token }: OpenApiFixture): Options => ({ token, json: { users }, headers });
}

const webhook: readonly Try[] = [
  ['a notification', 200, notify()],
  ['an invalid one', 400, notify({ status: 9 })],
  ['too long', 400, notify({ error: 'x'.repeat(300_000) })],
  ['no credentials', 401, () => ({ json: notification() })],
  ['another service', 404, elsewhere],
];

const health: readonly Try[] = [
  ['health', 200],
  ['another service', 404, elsewhere],
];

function agent(json?: object, headers: Record<string, string> = {}) {
  return ({ p }: OpenApiFixture): Options => ({
    headers: { authorization: `Bearer ${p.demo.client.client_secret}`, ...headers },
    ...(json && { json }),
  });
}

const session = { 'mcp-session-id': 'x' };

const messages: readonly Try[] = [
  ['a message', 200, agent({ jsonrpc: '2.0', id: 1, method: 'tools/list' })],
  ['a notification', 202, agent({ jsonrpc: '2.0', method: 'notifications/initialized' })],
  ['a batch', 400, agent([])],
  ['no secret', 401],
  ['a session', 404, agent({}, session)],
  ['too long', 413, agent({ a: 'x'.repeat(1_100_000) })],
];

const streams: readonly Try[] = [
  ['a secret', 405, agent()],
  ['no secret', 401],
  ['a session', 404, agent(undefined, session)],
];

/** Calls of the webhook, of migrations, of lists, of agents and of health. */
const otherCases: readonly Tries[] = [
  { method: 'POST', path: '/v2/webhooks/custodial', tries: webhook },
  { method: 'POST', path: '/v2/webhooks', tries: webhook },
  {
    method: 'POST',
    path: '/v2/users/migrate/with-wallet',
    tries: [
      ['a user', 201, one()],
      ['a verified user', 201, one({ kyc_sent: true, email: `${randomUUID()}@example.com` })],
      ['no identifier', 400, one({ external_id: null })],
      ['a wrong type', 400, one({ kyc_sent: 'yes' })],
      ['too long', 400, one({ name: 'x'.repeat(1_100_000) })],
      ...refusals,
    ],
  },
  {
    method: 'POST',
    path: '/v2/users/migrate/with-wallet/bulk',
    tries: [
      ['every outcome', 200, many([user(), user({ external_id: null }), user({ name: '\0' })])],
      ['no users', 400, many([])],
      ['a malformed key', 400, many([user()], { 'idempotency-key': 'é' })],
      ...refusals,
    ],
  },
  {
    method: 'GET',
    path: '/v1/accounts',
    tries: [
      ['a page', 200, ({ token }) => ({ token })],
      ['a page for a supervisor', 200, ({ login }) => ({ token: login })],
      ...refusals,
    ],
  },
  {
    method: 'GET',
    path: '/v2/admin/tokens/{id}',
    values: ({ p }) => ({ id: p.demo.asset_id }),
    tries: [
      ['an asset', 200, ({ token }) => ({ token })],
      ['an id that is none', 400, ({ token }) => ({ token }), () => ({ id: 'x' })],
      ['no such asset', 404, ({ token }) => ({ token }), nowhere],
      ...refusals,
    ],
  },
  { method: 'GET', path: '/v2/blockchain/gas-fee', tries: [['one network that answers, and one that does not', 200]] },
  ...['/v2/mcp', '/v2/mcp/{path}'].flatMap((path) => [
    { method: 'POST', path, tries: messages },
    { method: 'GET', path, tries: streams },
  ]),
  { method: 'DELETE', path: '/v2/mcp', tries: streams },
  ...['/health', '/v1/health', '/v2/health'].flatMap((path) => [
    { method: 'GET', path, tries: health },
    { method: 'HEAD', path, tries: health },
  ]),
];

/** Each call of each operation. */
export const cases = [...tokenCases, ...walletCases, ...otherCases].flatMap(({ method, path, values: usual, tries }) =>
  tries.map(([name, status, options, values = usual]) => ({ method, path, name, status, options, values })),
);

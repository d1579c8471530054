import { randomUUID } from 'node:crypto';
import { notification } from '../webhook/stand.ts';
import type { Tries, Try } from './cases.ts';
import { hook, nowhere, type OpenApiStand, type Options, user } from './stand.ts';

const elsewhere = () => ({ headers: { 'x-target-server': 'x' } });

function notify(members: object = {}) {
  return ({ p }: OpenApiStand): Options => hook(p, notification(members));
}

function one(members: object = {}) {
  return ({ token }: OpenApiStand): Options => ({ token, json: user(members) });
}

function many(users: readonly object[], headers: Record<string, string> = {}) {
  return ({ token }: OpenApiStand): Options => ({ token, json: { users }, headers });
}

const webhook: readonly Try[] = [
  ['a notification', 200, notify()],
  ['an invalid one', 400, notify({ status: 9 })],
  ['too long', 400, notify({ error: 'x'.repeat(300_000) })],
  ['no credentials', 401, () => ({ json: notification() })],
  ['another service', 404, elsewhere],
];

/** The refusals of every protected route. */
const refusals: readonly Try[] = [
  ['no token', 401],
  ['a broken token', 401, () => ({ token: 'x' })],
  ['no permission', 403, ({ poor }) => ({ token: poor })],
  ['another service', 404, elsewhere],
];

const health: readonly Try[] = [
  ['health', 200],
  ['another service', 404, elsewhere],
];

function agent(json?: object, headers: Record<string, string> = {}) {
  return ({ p }: OpenApiStand): Options => ({
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
export const otherCases: readonly Tries[] = [
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

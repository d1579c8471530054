import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { recordOf } from '../support/audit/records.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { type Answer, type Portcullis, startPortcullis } from '../support/harness.ts';
import { addSupervisor } from '../support/oauth/cheap-hash.ts';
import { addClient, addSecret, type ClientCredentials, rows } from '../support/oauth/clients.ts';
import { basicText, FORM } from '../support/oauth/requests.ts';
import { writtenLog } from '../support/observability/written-log.ts';
import { basic } from '../support/webhook/fixture.ts';

const { log, lines } = writtenLog();
const p = beforeTests(() =>
  startPortcullis({ env: { CONSOLE: 'on', CORS_ORIGINS: 'https://own.example' }, overrides: { log } }),
);

const TOKEN = '/v2/oauth/token';
const PASSWORD = 'right horse battery';
/** Stands in every request where a value may stand. */
const TYPED = `typed-${randomUUID()}`;

type Send = (headers: Record<string, string>) => Promise<Answer>;
/** A refusal, what the log says of it, and of whom. */
type Case = [status: number, reason: string | RegExp, what: string, send: Send, who?: () => Who];
interface Who {
  client_id?: string | undefined;
  subject?: unknown;
}

let token = '';
let weak = '';
let client: ClientCredentials;
let console_: ClientCredentials;
let supervisor: { id: string; username: string };
let disabled: { id: string; username: string };
let locked: { id: string; username: string };

const grant =
  (json: object): Send =>
  (headers) =>
    p.call('POST', TOKEN, { json, headers });
const own = (secrets: object) => grant({ grant_type: 'client_credentials', ...secrets });
const login = (named: { username: string; password?: string }, grantType = 'password') =>
  ((headers) => grant({ grant_type: grantType, ...client, password: TYPED, ...named })(headers)) satisfies Send;
const signIn =
  (named: object): Send =>
  (headers) =>
    p.call('POST', '/console/session', {
      json: { client_id: console_.client_id, password: TYPED, ...named },
      headers: { 'sec-fetch-site': 'same-origin', ...headers },
    });
const rest =
  (method: string, path: string, options: Parameters<Portcullis['call']>[2] = {}): Send =>
  (headers) =>
    p.call(method, path, { token, ...options, headers: { ...options.headers, ...headers } });
const graphql = (query: string, variables = {}): Send => rest('POST', '/graphql', { json: { query, variables } });
const agent =
  (bearer: string, json: object = {}): Send =>
  (headers) =>
    p.call('POST', '/v2/mcp', {
      token: bearer,
      json: { jsonrpc: '2.0', id: 1, method: 'tools/list', ...json },
      headers: { accept: 'application/json, text/event-stream', ...headers },
    });
const limited =
  (settings: Parameters<typeof addClient>[1]): Send =>
  async (headers) => {
    const tight = await addClient(p, settings);
    // Windows are aligned to the clock: both requests are in one.
    await delay(1_005 - (Date.now() % 1_000));
    await own(tight)({});
    return own(tight)(headers);
  };
const with_ =
  (settings: Parameters<typeof addClient>[1], send: (one: ClientCredentials) => Send): Send =>
  async (headers) =>
    send(await addClient(p, settings))(headers);

beforeAll(async () => {
  [client, console_] = [await addClient(p), await addClient(p, { is_console: true, grant_types: ['password'] })];
  token = await p.clientToken();
  weak = await p.clientToken(await addClient(p, { scopes: ['wallets:read'] }));
  supervisor = await addSupervisor(p, PASSWORD);
  disabled = await addSupervisor(p, PASSWORD);
  locked = await addSupervisor(p, PASSWORD);
  await rows(p).run((k) => k.updateTable('supervisors').set({ status: 'disabled' }).where('id', '=', disabled.id));
  for (let failure = 0; failure < 5; failure += 1) await login(locked)({});
});

const UNKNOWN = { subject: expect.stringMatching(/^unknown:[0-9a-f]{32}$/) };
const ofClient = () => ({ client_id: client.client_id });
const ofSupervisor = () => ({ ...ofClient(), subject: supervisor.id });
const WALLET = randomUUID();

const CASES: readonly Case[] = [
  [
    400,
    'the body or the request as a whole',
    'JSON that is none',
    rest('POST', `/v1/wallets/${WALLET}/rules`, {
      body: `{"${TYPED}`,
      headers: { 'content-type': 'application/json' },
    }),
  ],
  [
    400,
    'Content-Type',
    'another content type',
    rest('POST', `/v1/wallets/${WALLET}/rules`, { body: TYPED, headers: { 'content-type': 'text/plain' } }),
  ],
  [
    400,
    /\bname\b/,
    'a member of a rule',
    rest('POST', `/v1/wallets/${WALLET}/rules`, { json: { name: 7, [TYPED]: TYPED } }),
  ],
  [400, 'page, limit', 'two parameters', rest('GET', `/v1/accounts?page=${TYPED}&limit=${TYPED}`)],
  [
    400,
    'Idempotency-Key',
    'a key that is none',
    rest('POST', '/v2/users/migrate/with-wallet', {
      json: {},
      headers: { 'idempotency-key': `${TYPED} ${'x'.repeat(300)}` },
    }),
  ],
  [400, /^grant_type$/, 'no grant', grant({ ...{ client_id: WALLET, client_secret: TYPED } })],
  [400, 'client_id', 'an id that is none', own({ client_id: TYPED, client_secret: TYPED })],
  [
    400,
    'password',
    'a login without a password',
    (headers) => grant({ grant_type: 'password', ...client, username: TYPED })(headers),
  ],
  [
    400,
    'a repeated parameter',
    'a parameter that may be a password',
    (headers) =>
      p.call('POST', TOKEN, {
        body: `hunter_two=${TYPED}&hunter_two=1`,
        headers: { 'content-type': FORM, ...headers },
      }),
  ],
  [
    400,
    'invalid_scope',
    'no scope that is granted',
    (headers) => grant({ grant_type: 'client_credentials', ...client, scope: 'audit:read' })(headers),
    ofClient,
  ],
  [400, 'GRAPHQL_PARSE_FAILED', 'a document that is none', graphql(`{ ${TYPED.replaceAll('-', ' ')} "`)],
  [400, 'GRAPHQL_VALIDATION_FAILED', 'a field that there is not', graphql('{ nothing }')],
  [400, 'id', 'an id of null in MCP', (headers) => agent(client.client_secret, { id: null })(headers), ofClient],
  [
    400,
    'id',
    'a notification without an id',
    (headers) =>
      p.call('POST', '/v2/webhooks/custodial', {
        json: {
          type: 1,
          status: 3,
          created_at: '2026-11-21T10:30:00Z',
          updated_at: '2026-11-21T10:30:00Z',
          [TYPED]: TYPED,
        },
        headers: { authorization: basic(p.webhook.username, p.webhook.password), ...headers },
      }),
  ],
  [401, 'no_token', 'no token', (headers) => p.call('GET', '/v1/accounts', { headers })],
  [401, 'malformed', 'a token that is none', rest('GET', '/v1/accounts', { token: TYPED })],
  [
    401,
    'password',
    'a wrong password of the webhook',
    (headers) =>
      p.call('POST', '/v2/webhooks/custodial', {
        json: {},
        headers: { authorization: basic('chain', TYPED), ...headers },
      }),
  ],
  [401, 'unknown_client', 'an id of no client', own({ client_id: WALLET, client_secret: TYPED }), () => UNKNOWN],
  [401, 'wrong_secret', 'a wrong secret', (headers) => own({ ...client, client_secret: TYPED })(headers), ofClient],
  [
    401,
    'expired_secret',
    'an expired secret',
    async (headers) =>
      own({ ...client, client_secret: await addSecret(p, client.client_id, p.demo.node_id, '2026-01-01T00:00:00Z') })(
        headers,
      ),
    ofClient,
  ],
  [401, 'client_disabled', 'a disabled client', with_({ status: 'disabled' }, own)],
  [
    401,
    'malformed_basic',
    'HTTP Basic that is none',
    (headers) =>
      p.call('POST', TOKEN, {
        body: 'grant_type=client_credentials',
        headers: { 'content-type': FORM, authorization: basicText(TYPED), ...headers },
      }),
  ],
  [401, 'no_secret', 'a revocation without a client', rest('POST', '/v2/oauth/revoke', { json: { token: TYPED } })],
  [401, 'wrong_password', 'a wrong password', (headers) => login(supervisor)(headers), ofSupervisor],
  [
    401,
    'unknown_supervisor',
    'a password for a username',
    login({ username: TYPED }),
    () => ({ ...ofClient(), ...UNKNOWN }),
  ],
  [
    401,
    'supervisor_disabled',
    'a disabled supervisor',
    (headers) => login({ ...disabled, password: PASSWORD })(headers),
    () => ({ ...ofClient(), subject: disabled.id }),
  ],
  [
    401,
    'locked',
    'a locked username',
    (headers) => login({ ...locked, password: PASSWORD })(headers),
    () => ({ ...ofClient(), subject: locked.id }),
  ],
  [
    401,
    'refresh_token',
    'a refresh token that is none',
    (headers) => grant({ grant_type: 'refresh_token', ...client, refresh_token: TYPED })(headers),
    ofClient,
  ],
  [
    401,
    'wrong_password',
    'a wrong password at the console',
    (headers) => signIn(supervisor)(headers),
    () => ({ client_id: console_.client_id, subject: supervisor.id }),
  ],
  [
    401,
    'unknown_supervisor',
    'an unknown username at the console',
    signIn({ username: TYPED }),
    () => ({ client_id: console_.client_id, ...UNKNOWN }),
  ],
  [
    401,
    'no_console_client',
    'a client of no console',
    (headers) => signIn({ client_id: client.client_id, username: TYPED })(headers),
    ofClient,
  ],
  [401, 'wrong_secret', 'an agent with a wrong secret', agent(TYPED)],
  [
    401,
    'client_disabled',
    'an agent of a disabled client',
    with_({ status: 'disabled' }, ({ client_secret }) => agent(client_secret)),
  ],
  [
    403,
    'missing tokens:read',
    'a token without a permission that has the name of a secret',
    (headers) => rest('GET', `/v2/admin/tokens/${WALLET}`, { token: weak })(headers),
  ],
  [
    403,
    'missing accounts:read',
    'a token without the permission',
    (headers) => rest('GET', '/v1/accounts', { token: weak })(headers),
  ],
  [403, 'ip_not_allowed', 'another address', with_({ allowed_ips: ['203.0.113.9'] }, own)],
  [403, 'mtls_required', 'no certificate', with_({ require_certificate: true }, own)],
  [403, 'unauthorized_client', 'a grant that the client may not use', with_({ grant_types: ['password'] }, own)],
  [
    403,
    'unsupported_grant_type',
    'a grant that there is not',
    (headers) => grant({ grant_type: TYPED, ...client })(headers),
    ofClient,
  ],
  [
    403,
    'origin',
    'an agent in a page of another site',
    (headers) => agent(client.client_secret)({ origin: 'https://elsewhere.example', ...headers }),
    ofClient,
  ],
  [
    403,
    'origin',
    'a sign-in by a page of another site',
    (headers) => signIn({ username: TYPED })({ 'sec-fetch-site': 'cross-site', ...headers }),
  ],
  [
    409,
    'another_body',
    'another body for a key',
    async (headers) => {
      const send = (json: object, more = {}) =>
        rest('POST', '/v2/users/migrate/with-wallet/bulk', { json, headers: { 'idempotency-key': KEY } })(more);
      const one = {
        users: [{ email: `${randomUUID()}@example.com`, name: 'A', surname: 'B', wallet_address: '0xaa' }],
      };
      await send(one);
      return send(
        { users: [{ email: `${TYPED}@example.com`, name: 'A', surname: 'B', wallet_address: '0xab' }] },
        headers,
      );
    },
  ],
  [
    413,
    'the body or the request as a whole',
    'a long body',
    rest('POST', `/v1/wallets/${WALLET}/rules`, { json: { name: 'x'.repeat(2 ** 21) } }),
  ],
  [429, 'requests_per_second', 'a rate of a second', limited({ requests_per_second: 1, requests_per_hour: 100 })],
  [429, 'requests_per_minute', 'a rate of a minute', limited({ requests_per_minute: 1 })],
  [429, 'requests_per_hour', 'a rate of an hour', limited({ requests_per_hour: 1 })],
  [429, 'monthly_limit', 'a quota', limited({ monthly_limit: 1 })],
  [
    429,
    'wrong_secrets',
    'too many wrong secrets',
    with_({}, (one) => async (headers) => {
      for (let failure = 0; failure < 20; failure += 1) await own({ ...one, client_secret: TYPED })({});
      return own({ ...one, client_secret: TYPED })(headers);
    }),
  ],
];
const KEY = randomUUID();

async function lineOf(id: string): Promise<Record<string, unknown>> {
  return vi.waitFor(() => {
    const line = lines.find((one) => one.includes(id) && one.includes('"msg":"request"'));
    if (line === undefined) throw new Error('not yet logged');
    return JSON.parse(line);
  });
}

describe('the log line of a refused request', () => {
  it.each(CASES)('D8-14: %i %s: %s', async (status, reason, _what, send, who = () => ({})) => {
    const id = randomUUID();
    const answer = await send({ 'x-correlation-id': id });
    expect(answer.status, answer.text).toBe(status);
    const line = await lineOf(id);
    expect(line).toMatchObject({ status, reason: typeof reason === 'string' ? reason : expect.stringMatching(reason) });
    expect(line).toMatchObject(who());
    expect(JSON.stringify(line)).not.toContain(TYPED);
    const { headers, client_id, subject, node_id } = await recordOf(p, id);
    expect(headers).toMatchObject({ ':reason': line.reason });
    expect([client_id ?? undefined, subject ?? undefined, node_id ?? undefined]).toEqual([
      line.client_id,
      line.subject,
      line.node_id,
    ]);
    expect(answer.text).not.toMatch(/unknown:|wrong_|expired_secret|_disabled|locked/);
  });
});

it('D8-14: the line of a request that is served has its client, tenant and subject', async () => {
  const [id, second] = [randomUUID(), randomUUID()];
  await rest('GET', '/v1/accounts')({ 'x-correlation-id': id });
  await login({ ...supervisor, password: PASSWORD })({ 'x-correlation-id': second });
  const { node_id } = p.demo;
  const { client_id } = p.demo.client;
  expect(await lineOf(id)).toMatchObject({ status: 200, node_id, client_id, subject: client_id });
  expect(await lineOf(second)).toMatchObject({ status: 200, node_id, ...ofSupervisor() });
});

it('D8-15: one name has one hash, however it is written, and another key gives another', async () => {
  const ids = [randomUUID(), randomUUID(), randomUUID()];
  const names = ['Hunter Two', 'hunter two', 'hunter three'];
  for (const [at, id] of ids.entries()) await login({ username: names[at] ?? '' })({ 'x-correlation-id': id });
  const [one, same, other] = await Promise.all(ids.map(async (id) => (await lineOf(id)).subject));
  expect(same).toBe(one);
  expect(other).not.toBe(one);
});

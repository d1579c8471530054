import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { PERMISSIONS } from '../../src/access/identity/permissions.rules.ts';
import { formHeaders, formOf, mapPart, operationsPart } from '../support/graphql/upload-requests.ts';
import { type Answer, type Portcullis, startPortcullis } from '../support/harness.ts';
import { addClient, rows } from '../support/oauth/clients.ts';
import { type Collector, startCollector } from '../support/observability/collector.ts';
import { scrape } from '../support/observability/scrape.ts';

const CREATE_CLIENT =
  'mutation ($input: ClientInput!) { createClient(input: $input) { __typename ... on CreatedClient { clientSecret client { id } } } }';
const ROTATE =
  'mutation ($id: ID!) { rotateClientSecret(id: $id) { __typename ... on CreatedClient { clientSecret } } }';
const CREATE_SUPERVISOR =
  'mutation ($input: SupervisorInput!) { createSupervisor(input: $input) { __typename ... on Supervisor { id } } }';
const SET_PASSWORD = 'mutation ($id: ID!, $p: String!) { setSupervisorPassword(id: $id, password: $p) { __typename } }';

const lines: string[] = [];
const logger = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) });
const log = {
  debug: (fields: object, message: string) => logger.debug(fields, message),
  info: (fields: object, message: string) => logger.info(fields, message),
  warn: (fields: object, message: string) => logger.warn(fields, message),
  error: (fields: object, message: string) => logger.error(fields, message),
};

let p: Portcullis;
let collector: Collector;
/** Every secret that was given out, used or tried, by what it is. */
const secrets = new Map<string, string>();
/** The correlation ids of all requests. */
const asked: string[] = [];

function secret(what: string, value: unknown = `canary-${randomUUID()}`): string {
  if (typeof value !== 'string' || value.length < 8) throw new Error(`${what} is no secret: ${String(value)}`);
  secrets.set(what, value);
  return value;
}

function call(...[method, path, options = {}]: Parameters<Portcullis['call']>): Promise<Answer> {
  const id = randomUUID();
  asked.push(id);
  return p.call(method, path, { ...options, headers: { ...options.headers, 'x-correlation-id': id } });
}

const grant = (json: object) => call('POST', '/v2/oauth/token', { json });

async function tokens(): Promise<string> {
  const { client, supervisor } = p.demo;
  secret('the client secret', client.client_secret);
  secret('the password', supervisor.password);
  const api = await grant({ grant_type: 'client_credentials', ...client });
  const login = await grant({ grant_type: 'password', ...client, ...supervisor });
  secret('an access token', api.json.access_token);
  secret('a refresh token', api.json.refresh_token);
  secret('an access token of a login', login.json.access_token);
  const refreshed = await grant({
    grant_type: 'refresh_token',
    ...client,
    refresh_token: secret('a refresh token of a login', login.json.refresh_token),
  });
  secret('a refreshed token', refreshed.json.access_token);
  const basic = Buffer.from(`${client.client_id}:${client.client_secret}`).toString('base64');
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  await call('POST', '/v2/oauth/token', {
    headers: { ...form, authorization: `Basic ${secret('the client in Basic', basic)}` },
    body: 'grant_type=client_credentials',
  });
  for (const path of ['introspect', 'revoke']) {
    await call('POST', `/v2/oauth/${path}`, { json: { ...client, token: refreshed.json.refresh_token } });
  }
  await grant({ grant_type: 'password', ...client, ...supervisor, password: secret('a wrong password') });
  await grant({ grant_type: 'client_credentials', ...client, client_secret: secret('a wrong client secret') });
  return secret(
    'the access token in use',
    (await grant({ grant_type: 'password', ...client, ...supervisor })).json.access_token,
  );
}

async function elsewhere(token: string): Promise<void> {
  await call('GET', '/v1/accounts', { token });
  await call('GET', `/v1/accounts?access_token=${secret('a token in a query')}`, { token });
  await call('GET', '/v1/accounts', { token: secret('a token that is none') });
  await call('GET', '/v1/accounts', {
    token,
    headers: { 'x-api-token': secret('a token in a header'), cookie: `sid=${secret('a cookie')}` },
  });
  await call('POST', '/v1/wallets/x/rules', { token, json: { password: secret('a password in a body') } });
  const { username, password } = p.webhook;
  const notification = {
    id: randomUUID(),
    type: 1,
    status: 3,
    created_at: '2026-11-21T10:30:00Z',
    updated_at: '2026-11-21T10:30:00Z',
  };
  for (const tried of [password, secret('a wrong password of the webhook')]) {
    const authorization = `Basic ${Buffer.from(`${username}:${tried}`).toString('base64')}`;
    await call('POST', '/v2/webhooks/custodial', { json: notification, headers: { authorization } });
  }
  secret('the password of the webhook', password);
  secret('the webhook in Basic', Buffer.from(`${username}:${password}`).toString('base64'));
  const users = [1, 2].map((n) => ({
    wallet_address: `0x${n}`,
    email: `u${n}@example.com`,
    password: secret(`password ${n} of a bulk`),
  }));
  await call('POST', '/v2/users/migrate/with-wallet/bulk', { token, json: { users } });
  const csv = `wallet_address,password\n0xaa,${secret('a password in a file')}\n`;
  const file = { name: '0', value: csv, filename: 'users.csv' };
  await call('POST', '/graphql', { headers: formHeaders(token), body: formOf([operationsPart, mapPart, file]) });
}

async function graphql(token: string): Promise<void> {
  const run = async (query: string, variables: object) =>
    (await call('POST', '/graphql', { token, json: { query, variables } })).json;
  const input = { name: 'canary', grantTypes: ['CLIENT_CREDENTIALS'], scopes: [] };
  const made = await run(CREATE_CLIENT, { input });
  if (!made.data) throw new Error(JSON.stringify(made));
  secret('a new client secret', made.data.createClient.clientSecret);
  await run(ROTATE, { id: made.data.createClient.client.id });
  const person = { username: `canary-${randomUUID()}`, password: secret('a new password'), role: 'viewer' };
  const added = await run(CREATE_SUPERVISOR, { input: person });
  const changed = { id: added.data.createSupervisor.id, p: secret('a changed password') };
  expect((await run(SET_PASSWORD, changed)).errors).toBeUndefined();
  await run(
    `mutation { setSupervisorPassword(id: "x", password: "${secret('a password in a literal')}") { __typename } }`,
    {},
  );
  await run('{ nothing }', { token: secret('a variable that nobody knows') });
  const socket = new WebSocket(`${p.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.on('open', () =>
    socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } })),
  );
  const variables = { id: 'x', p: secret('a password on a socket') };
  socket.on('message', (data) => {
    const { type } = JSON.parse(String(data));
    if (type === 'connection_ack')
      socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query: SET_PASSWORD, variables } }));
    else socket.close();
  });
  await closed;
}

/** What an agent does: it comes in, reads, writes, is refused, and says secrets where they do not belong. */
async function mcp(): Promise<void> {
  const own = secret('the secret of an agent', (await addClient(p, { scopes: [...PERMISSIONS] })).client_secret);
  const say = async (method: string, params?: object, bearer = own, path = '/v2/mcp') => {
    const headers = { accept: 'application/json, text/event-stream', authorization: `Bearer ${bearer}` };
    const id = method.startsWith('notifications/') ? {} : { id: 1 };
    return call('POST', path, { headers, json: { jsonrpc: '2.0', ...id, method, ...(params && { params }) } });
  };
  const codeOf = async (name: string, args: object): Promise<string | undefined> => {
    const { json } = await say('tools/call', { name, arguments: args });
    return json.result.isError === true ? json.result._meta.error.code : undefined;
  };
  const clientInfo = { name: 'canary', version: '1', token: secret('a token in what a client says of itself') };
  const initialize = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  expect((await say('initialize', initialize)).json.result.serverInfo.name).toBe('portcullis');
  expect((await say('notifications/initialized')).status).toBe(202);
  expect((await say('tools/list')).json.result.tools.length).toBeGreaterThan(20);
  const user = { wallet_address: `0x${randomUUID()}`, external_id: randomUUID() };
  const text = JSON.stringify({ password: secret('a password in JSON in an argument') });
  const codes = [
    await codeOf('get_access', {}),
    await codeOf('list_accounts', { limit: 1 }),
    await codeOf('migrate_user', { ...user, name: text, idempotency_key: randomUUID() }),
    await codeOf('migrate_user', { ...user, external_id: randomUUID() }),
    await codeOf('list_users', { search: text }),
    await codeOf('list_accounts', { client_secret: secret('a secret in an argument that no tool has') }),
    await codeOf('create_wallet_rule', { wallet_id: 'x', rule: { api_token: secret('a token inside an argument') } }),
    await codeOf('get_account', { account_id: p.demo.account_id, password: [secret('a password in a list')] }),
  ];
  const [refused, skipped] = ['invalid_arguments', 'duplicate_wallet'];
  expect(codes).toEqual([undefined, undefined, undefined, skipped, undefined, refused, refused, refused]);
  const broken = vi.spyOn(p.service.context.gasFees, 'list').mockRejectedValue(new Error('broken'));
  expect(await codeOf('list_gas_fees', {})).toBe('internal_error');
  broken.mockRestore();
  const login = { password: secret('a password in the params of no method') };
  expect((await say('login', login)).json.error.code).toBe(-32_601);
  const query = `/v2/mcp?access_token=${secret('a token in the address of an agent')}`;
  expect((await say('ping', undefined, own, query)).status).toBe(200);
  const tried = [secret('a wrong secret of an agent'), `${own}x`, secret('a secret cut short', own.slice(0, -1))];
  for (const wrong of tried) expect((await say('tools/list', undefined, wrong)).status).toBe(401);
  expect((await call('POST', '/v2/mcp', { headers: { authorization: `Basic ${own}` } })).status).toBe(401);
  expect((await call('GET', '/v2/mcp', { headers: { authorization: `Bearer ${own}` } })).status).toBe(405);
}

beforeAll(async () => {
  collector = await startCollector();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '50' };
  p = await startPortcullis({ env, overrides: { log } });
  const { jwt, pepper } = p.service.context.secrets;
  for (const [what, key] of Object.entries({ ...jwt, pepper }))
    secret(`the key ${what}`, (key as { current: string }).current);
  const token = await tokens();
  await elsewhere(token);
  await graphql(token);
  await mcp();
  await p.service.context.auditWriter.flush();
});
afterAll(async () => {
  await p?.[Symbol.asyncDispose]();
  await collector?.[Symbol.asyncDispose]();
});

/** Which of the secrets a text has, as they are or in base64. */
function found(text: string): string[] {
  const plain = Array.from(secrets, ([what, value]) => (text.includes(value) ? what : undefined));
  return plain.filter((what) => what !== undefined);
}

it('each request is one line of JSON with its correlation id and its trace', () => {
  const told = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');
  for (const id of asked) expect(told.filter((line) => line.correlation_id === id)).toHaveLength(1);
  expect(told.filter(({ trace_id }) => !/^[0-9a-f]{32}$/.test(trace_id))).toEqual([]);
});

it('D2-08 D2-21: no secret that was given out, used or tried is in the log, the records, the spool, the spans or the metrics', async () => {
  expect(secrets.size).toBeGreaterThan(30);
  const records = await rows(p).run((k) => k.selectFrom('audit_records').selectAll());
  expect(records.length).toBeGreaterThanOrEqual(asked.length);
  const folder = join(p.dataDir, 'audit');
  const spool = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'latin1'));
  await expect.poll(() => collector.spans.length).toBeGreaterThan(asked.length / 2);
  expect(found(lines.join(''))).toEqual([]);
  expect(found(JSON.stringify(records))).toEqual([]);
  expect(found(spool.join(''))).toEqual([]);
  expect(found(JSON.stringify(collector.spans))).toEqual([]);
  expect(found((await scrape(p.service)).text)).toEqual([]);
});

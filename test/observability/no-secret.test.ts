import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PERMISSIONS } from '../../src/access/identity/permissions.rules.ts';
import { formHeaders, formOf, mapPart, operationsPart } from '../support/graphql/upload-requests.ts';
import { type Answer, type Portcullis, startPortcullis } from '../support/harness.ts';
import { addClient, rows } from '../support/oauth/clients.ts';
import { basicOf } from '../support/oauth/requests.ts';
import { type Collector, startCollector } from '../support/observability/collector.ts';
import { scrape } from '../support/observability/scrape.ts';
import { writtenLog } from '../support/observability/written-log.ts';
import { basic, notification } from '../support/webhook/fixture.ts';

const CREATE_CLIENT =
  'mutation ($input: ClientInput!) { createClient(input: $input) { __typename ... on CreatedClient { clientSecret client { id } } } }';
const ROTATE =
  'mutation ($id: ID!) { rotateClientSecret(id: $id) { __typename ... on CreatedClient { clientSecret } } }';
const CREATE_SUPERVISOR =
  'mutation ($input: SupervisorInput!) { createSupervisor(input: $input) { __typename ... on Supervisor { id } } }';
const SET_PASSWORD = 'mutation ($id: ID!, $p: String!) { setSupervisorPassword(id: $id, password: $p) { __typename } }';

const { log, lines } = writtenLog();

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
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  await call('POST', '/v2/oauth/token', {
    headers: {
      ...form,
      authorization: `Basic ${secret('the client in Basic', basicOf(client).replace('Basic ', ''))}`,
    },
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

/** Secrets where a request may have them; test/audit/no-secret.test.ts has every other place. */
async function elsewhere(token: string): Promise<void> {
  await call('GET', `/v1/accounts?access_token=${secret('a token in a query')}`, { token });
  await call('GET', '/v1/accounts', { token: secret('a token that is none') });
  await call('GET', '/v1/accounts', { token, headers: { cookie: `sid=${secret('a cookie')}` } });
  await call('POST', '/v1/wallets/x/rules', { token, json: { password: secret('a password in a body') } });
  const { username, password } = p.webhook;
  secret('the webhook in Basic', basic(username, password).replace('Basic ', ''));
  for (const tried of [secret('the password of the webhook', password), secret('a wrong password of the webhook')]) {
    const headers = { authorization: basic(username, tried) };
    await call('POST', '/v2/webhooks/custodial', { json: notification(), headers });
  }
  const csv = `wallet_address,password\n0xaa,${secret('a password in a file')}\n`;
  const file = { name: '0', value: csv, filename: 'users.csv' };
  await call('POST', '/graphql', { headers: formHeaders(token), body: formOf([operationsPart, mapPart, file]) });
}

async function graphql(token: string): Promise<void> {
  const run = async (query: string, variables: object) =>
    (await call('POST', '/graphql', { token, json: { query, variables } })).json;
  const input = { name: 'canary', grantTypes: ['CLIENT_CREDENTIALS'], scopes: [] };
  const { createClient } = (await run(CREATE_CLIENT, { input })).data;
  secret('a new client secret', createClient.clientSecret);
  const { rotateClientSecret } = (await run(ROTATE, { id: createClient.client.id })).data;
  secret('a rotated client secret', rotateClientSecret.clientSecret);
  const person = { username: `canary-${randomUUID()}`, password: secret('a new password'), role: 'viewer' };
  const { createSupervisor } = (await run(CREATE_SUPERVISOR, { input: person })).data;
  const changed = { id: createSupervisor.id, p: secret('a changed password') };
  expect((await run(SET_PASSWORD, changed)).errors).toBeUndefined();
}

/** What an agent does: it calls a tool, is refused, and sends secrets where they do not belong. */
async function mcp(): Promise<void> {
  const own = secret('the secret of an agent', (await addClient(p, { scopes: [...PERMISSIONS] })).client_secret);
  const say = (name: string, args: object, bearer = own, query = '') =>
    call('POST', `/v2/mcp${query}`, {
      headers: { accept: 'application/json, text/event-stream', authorization: `Bearer ${bearer}` },
      json: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } },
    });
  const statuses = [
    await say('list_accounts', { client_secret: secret('a secret in an argument that no tool has') }),
    await say('list_users', { search: JSON.stringify({ password: secret('a password in JSON in an argument') }) }),
    await say('get_access', {}, own, `?access_token=${secret('a token in the address of an agent')}`),
    await say('get_access', {}, secret('a wrong secret of an agent')),
  ].map(({ status }) => status);
  expect(statuses).toEqual([200, 200, 200, 401]);
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

it('each request is logged once as a line of JSON with its correlation id and trace id', () => {
  const told = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');
  for (const id of asked) expect(told.filter((line) => line.correlation_id === id)).toHaveLength(1);
  expect(told.filter(({ trace_id }) => !/^[0-9a-f]{32}$/.test(trace_id))).toEqual([]);
});

it('D2-08 D2-21: no issued, used or attempted secret is in logs, audit records, the spool, spans or metrics', async () => {
  expect(secrets.size).toBeGreaterThan(25);
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

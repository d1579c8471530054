import { randomUUID } from 'node:crypto';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { PERMISSIONS } from '../../src/access/identity/permissions.rules.ts';
import { graphqlSchema } from '../../src/app/graphql-schema.ts';
import { isSecretInput } from '../../src/lib/input.ts';
import { inputMembers, secretArguments } from '../support/audit/declared-secrets.ts';
import { percent, traceIn } from '../support/audit/secret-traces.ts';
import { portcullis } from '../support/cli/in-process.ts';
import { DOCUMENTED } from '../support/gateway/documented.ts';
import { createdClient, createdSupervisor, login } from '../support/graphql/administration.ts';
import { openSocket } from '../support/graphql/sockets.ts';
import { formHeaders, formOf } from '../support/graphql/upload-requests.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { type Answer, type Portcullis, startPortcullis } from '../support/harness.ts';
import { callOf, post } from '../support/mcp/agents.ts';
import { addClient, rows } from '../support/oauth/clients.ts';
import { basicOf, basicText, FORM } from '../support/oauth/requests.ts';
import { startCollector } from '../support/observability/collector.ts';
import { scrape } from '../support/observability/scrape.ts';
import { writtenLog } from '../support/observability/written-log.ts';
import { ROOT } from '../support/start/process.ts';

const { log, lines } = writtenLog();
let p: Portcullis;
const collector = beforeTests(startCollector);
let token: string;
let agent: string;
/** What every request was, by its correlation id. */
const asked = new Map<string, string>();
/** What commands have printed. */
const printed: string[] = [];

let count = 0;
/** A secret that no other request has, with what a document, a form or an address would have to spell otherwise. */
function fresh(): string {
  count += 1;
  return `ZQXJKV"${count}\\&=+ %;'é-ZQXJKVZQXJKV`;
}
/** A secret for a header. */
const plain = () => fresh().replaceAll(/[^A-Z\d-]/g, '-');

/** What the service itself has given out, by what it is. */
const issued = new Map<string, string>();
const ISSUED = /(?<=\.)[\w-]{43}(?=")|(?<="(?:clientSecret|renamed)":")[^"]+/g;

async function call(what: string, ...[method, path, options = {}]: Parameters<Portcullis['call']>): Promise<Answer> {
  const id = randomUUID();
  asked.set(id, `${what}: ${method} ${path.slice(0, 60)}`);
  const answer = await p.call(method, path, { ...options, headers: { ...options.headers, 'x-correlation-id': id } });
  for (const [secret] of answer.text.matchAll(ISSUED)) issued.set(secret, what);
  for (const cookie of answer.headers.getSetCookie()) {
    const [, value] = cookie.split(/[=;]/);
    if (value) issued.set(value, what);
  }
  return answer;
}

type Options = NonNullable<Parameters<Portcullis['call']>[2]>;
interface Request extends Options {
  query?: string;
}

const quoted = (value: string) => JSON.stringify(value);
const pairs = (values: object) => new URLSearchParams(Object.entries(values)).toString();

/** The ways by which a request carries values under their names, and whether they are in a body. */
const CARRIERS: Record<string, { isBody: boolean; of: (values: Record<string, string>) => Request }> = {
  'a query': { isBody: false, of: (values) => ({ query: pairs(values) }) },
  'a query with percent signs alone': {
    isBody: false,
    of: (values) => ({
      query: Object.entries(values)
        .map(([name, value]) => `${percent(name)}=${percent(value)}`)
        .join('&'),
    }),
  },
  'a referer': { isBody: false, of: (values) => ({ headers: { referer: `https://h.example/p?${pairs(values)}` } }) },
  headers: {
    isBody: false,
    of: (values) => ({
      headers: Object.fromEntries(Object.keys(values).map((name) => [`x-${name.replaceAll('_', '-')}`, plain()])),
    }),
  },
  cookies: {
    isBody: false,
    of: (values) => ({
      headers: {
        cookie: Object.keys(values)
          .map((name) => `${name}=${plain()}`)
          .join('; '),
      },
    }),
  },
  'a wrong token': { isBody: false, of: () => ({ headers: { authorization: `Bearer ${plain()}` } }) },
  'HTTP Basic': { isBody: false, of: () => ({ headers: { authorization: basicText(`${randomUUID()}:${plain()}`) } }) },
  JSON: { isBody: true, of: (values) => ({ json: { ...values, in: [values], text: JSON.stringify(values) } }) },
  'JSON under an idempotency key': {
    isBody: true,
    of: (values) => ({ json: values, headers: { 'idempotency-key': randomUUID() } }),
  },
  'a form': { isBody: true, of: (values) => ({ body: pairs(values), headers: { 'content-type': FORM } }) },
  'a multipart form': {
    isBody: true,
    of: (values) => ({
      headers: formHeaders(token),
      body: formOf(Object.entries(values).map(([name, value]) => ({ name, value }))),
    }),
  },
};

/** The arguments that are secrets, each in an operation: what follows `mutation`, and its variables. */
const OPERATIONS_OF: Record<string, (value: string) => { field: string; type: string }> = {
  'changeOwnPassword.current': (text) => ({ field: `changeOwnPassword(current: ${text}, new: "x")`, type: 'String!' }),
  'changeOwnPassword.new': (text) => ({ field: `changeOwnPassword(current: "x", new: ${text})`, type: 'String!' }),
  'createSupervisor.input.password': (text) => ({
    field: `createSupervisor(input: { username: "${randomUUID()}", role: "viewer", password: ${text} })`,
    type: 'String!',
  }),
  'requestAuditExport.filter.attemptedUsername': (text) => ({
    field: `requestAuditExport(filter: { attemptedUsername: ${text} })`,
    type: 'String',
  }),
  'setSupervisorPassword.password': (text) => ({
    field: `setSupervisorPassword(id: "${randomUUID()}", password: ${text})`,
    type: 'String!',
  }),
};

type OperationOf = (text: string) => { field: string; type: string };
const literal = (of: OperationOf) => `mutation { ${of(quoted(fresh())).field} { __typename } }`;
function variables(of: OperationOf, more = '', also = '') {
  const { field, type } = of('$v');
  return {
    query: `mutation ($v: ${type}${more}) { ${field} { __typename } ${also} }`,
    variables: { v: fresh() } as Record<string, unknown>,
  };
}
const inQuery = (params: object) =>
  pairs(
    Object.fromEntries(
      Object.entries(params).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
    ),
  );

/** The ways by which an operation is sent. */
const TRANSPORTS: Record<string, (of: OperationOf, what: string) => Promise<unknown>> = {
  literals: (of, what) => call(what, 'POST', '/graphql', { token, json: { query: literal(of) } }),
  variables: (of, what) => call(what, 'POST', '/graphql', { token, json: variables(of) }),
  'a default': (of, what) =>
    call(what, 'POST', '/graphql', {
      token,
      json: { query: `mutation ($v: ${of('$v').type} = ${quoted(fresh())}) { ${of('$v').field} { __typename } }` },
    }),
  'an invalid document': (of, what) =>
    call(what, 'POST', '/graphql', { token, json: { query: `${literal(of)} }`, variables: { v: fresh() } } }),
  'no token': (of, what) => call(what, 'POST', '/graphql', { json: variables(of) }),
  'an idempotency key': (of, what) =>
    call(what, 'POST', '/graphql', { token, json: variables(of), headers: { 'idempotency-key': randomUUID() } }),
  'a GET': (of, what) => call(what, 'GET', `/graphql?${inQuery({ query: literal(of) })}`, { token }),
  'a GET with variables': (of, what) => call(what, 'GET', `/graphql?${inQuery(variables(of))}`, { token }),
  'a GET below a prefix': (of, what) => call(what, 'GET', `/v2/graphql?${inQuery(variables(of))}`, { token }),
  'a referer': (of, what) =>
    call(what, 'GET', '/health', { headers: { referer: `http://h/v2/graphql?${inQuery(variables(of))}` } }),
  'a batch': (of, what) =>
    call(what, 'POST', '/graphql', {
      token,
      json: [variables(of), { query: literal(of) }, { query: '{ __typename }' }],
    }),
  'a stream of events': (of, what) =>
    call(what, 'POST', '/graphql', { token, json: variables(of), headers: { accept: 'text/event-stream' } }),
  multipart(of, what) {
    const params = variables(of, ', $file: File!', 'startUserMigration(file: $file) { __typename }');
    Object.assign(params.variables, { file: null });
    const parts = [
      { name: 'operations', value: JSON.stringify(params) },
      { name: 'map', value: '{"0": ["variables.file"]}' },
      { name: '0', value: `wallet_address,password\n0xaa,${fresh()}\n`, filename: `${plain()}.csv` },
    ];
    return call(what, 'POST', '/graphql', { headers: formHeaders(token), body: formOf(parts) });
  },
  async 'a WebSocket'(of, what) {
    const id = randomUUID();
    asked.set(id, what);
    using socket = await openSocket(p, token, { headers: { 'x-correlation-id': id } });
    const { query, variables: values } = variables(of);
    await socket.answerTo(query, values);
    await socket.answerTo(literal(of));
  },
};

const sameOrigin = { 'sec-fetch-site': 'same-origin' };

/** A supervisor with a password that is a secret of the walk. */
async function person() {
  const [username, password] = [randomUUID(), fresh()];
  await createdSupervisor(p, token, { username, password });
  return { username, password };
}

/** Sends parameters to an endpoint of OAuth in each way that it has. */
async function oauth(what: string, path: string, fields: () => object, accepted: number): Promise<void> {
  const { client } = p.demo;
  const statuses = [
    await call(what, 'POST', path, { json: { ...client, ...fields() } }),
    await call(what, 'POST', path, { body: pairs({ ...client, ...fields() }), headers: { 'content-type': FORM } }),
    await call(what, 'POST', path, {
      body: pairs(fields()),
      headers: { 'content-type': FORM, authorization: basicOf(client) },
    }),
  ].map(({ status }) => status);
  expect([what, ...statuses]).toEqual([what, accepted, accepted, accepted]);
}

/** Every member of an input that is declared as a secret, and how it is sent where it belongs. */
const WAYS: Record<string, (at: string) => Promise<void>> = {
  async 'token-request.clientInput.client_secret'(at) {
    const { client_id } = p.demo.client;
    const wrong = () => ({ client_id, client_secret: fresh() });
    for (const path of ['token', 'introspect', 'revoke'].map((name) => `/v2/oauth/${name}`)) {
      await call(at, 'POST', path, { json: { grant_type: 'client_credentials', token: fresh(), ...wrong() } });
      const form = pairs({ grant_type: 'client_credentials', ...wrong() });
      await call(at, 'POST', path, { body: form, headers: { 'content-type': FORM } });
      await call(at, 'POST', path, {
        body: 'grant_type=client_credentials',
        headers: { 'content-type': FORM, authorization: basicOf(wrong()) },
      });
    }
  },
  async 'token-request.grantInputs.password.password'(at) {
    const known = await person();
    await oauth(at, '/v2/oauth/token', () => ({ grant_type: 'password', ...known }), 200);
    await oauth(at, '/v2/oauth/token', () => ({ grant_type: 'password', ...known, password: fresh() }), 401);
  },
  async 'token-request.grantInputs.refresh_token.refresh_token'(at) {
    await oauth(at, '/v2/oauth/token', () => ({ grant_type: 'refresh_token', refresh_token: fresh() }), 401);
  },
  async 'token-request.tokenInput.token'(at) {
    for (const name of ['introspect', 'revoke']) await oauth(at, `/v2/oauth/${name}`, () => ({ token: fresh() }), 200);
  },
  async 'token-request.consoleSignInInput.password'(at) {
    const client_id = p.demo.console_client_id;
    const known = await person();
    const session = (method: string, path: string, json: object, cookie = '') =>
      call(at, method, path, { json, headers: { ...sameOrigin, cookie } });
    const { status, headers } = await session('POST', '/console/session', { client_id, ...known });
    const wrong = await session('POST', '/console/session', { client_id, ...known, password: fresh() });
    const own = headers.getSetCookie()[0]?.split(';')[0] ?? '';
    const renewed = await session('POST', '/console/session/renew', { client_id }, own);
    await session('POST', '/console/session/renew', { client_id }, `portcullis-${client_id}=${plain()}`);
    const ended = await session('DELETE', '/console/session', { client_id, password: fresh() }, own);
    expect([status, wrong.status, renewed.status, ended.status]).toEqual([200, 401, 200, 204]);
  },
  async 'supervisor.supervisorInput.password'(at) {
    const { username, password } = await person();
    expect((await login(p, username, { password })).access_token).toBeTruthy();
    const args = ['supervisor', 'create', '--node', p.demo.node_id, '--username', randomUUID(), '--role', 'viewer'];
    await command(at, args, fresh());
    expect(await command(at, args, `${fresh()}${'x'.repeat(1_024)}`, 2)).toContain('the password');
  },
  async 'supervisor.passwordInput.password'(at) {
    const { username, password } = await person();
    const { access_token } = await login(p, username, { password });
    const { json } = await call(at, 'POST', '/graphql', {
      token: access_token,
      json: { query: '{ me { subject } }' },
    });
    await command(at, ['supervisor', 'set-password', json.data.me.subject], fresh());
  },
  async 'supervisor.currentPasswordInput'(at) {
    let { username, password } = await person();
    for (const how of ['literals', 'variables']) {
      const { access_token } = await login(p, username, { password });
      const next = fresh();
      const query = `mutation ($a: String!, $b: String!) { changeOwnPassword(current: $a, new: $b) { __typename } }`;
      const said =
        how === 'variables'
          ? { query, variables: { a: password, b: next } }
          : {
              query: `mutation { changeOwnPassword(current: ${quoted(password)}, new: ${quoted(next)}) { __typename } }`,
            };
      const { json } = await call(at, 'POST', '/graphql', { token: access_token, json: said });
      expect(json.data.changeOwnPassword).toEqual({ __typename: 'Supervisor' });
      password = next;
    }
  },
};

async function command(what: string, args: string[], line: string, expected = 0): Promise<string> {
  const env = { DATA_DIR: p.dataDir, DATABASE_URL: p.env.DATABASE_URL };
  const { code, out, err } = await portcullis(args, env, line);
  expect([what, code, code === expected ? '' : err]).toEqual([what, expected, '']);
  printed.push(out, err);
  return err;
}

beforeAll(async () => {
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '50', CONSOLE: 'on' };
  p = await startPortcullis({ env, overrides: { log } });
  token = await p.clientToken();
  agent = (await addClient(p, { scopes: [...PERMISSIONS] })).client_secret;
  // Records stay in the files until everything has been asked.
  await p.service.context.auditWriter.flush();
  vi.spyOn(p.service.context.spool, 'drain').mockResolvedValue(0);
});
afterAll(async () => {
  vi.restoreAllMocks();
  await p?.[Symbol.asyncDispose]();
});

describe('a secret of a declared input', () => {
  it('D1-18: is sent in its place, in every way', async () => {
    const members = await inputMembers();
    const secret = members.filter(({ schema }) => isSecretInput(schema)).map(({ at }) => at);
    expect(Object.keys(WAYS).sort()).toEqual([...new Set(secret)].sort());
    for (const [at, send] of Object.entries(WAYS)) await send(at);
  });

  it('D1-18: is sent to every endpoint under its name, in every part of a request', async () => {
    const names = [
      ...new Set((await inputMembers()).filter(({ schema }) => isSecretInput(schema)).map(({ name }) => name)),
    ];
    const values = () => Object.fromEntries(names.filter(Boolean).map((name) => [name, fresh()]));
    for (const [at, [method, template, , visibility]] of DOCUMENTED.entries()) {
      const path = template.replaceAll(/\{\w+\}/g, () => randomUUID()).replaceAll(/\*+/g, 'x');
      const bearer = path.startsWith('/v2/mcp') ? agent : visibility === 'public' ? undefined : token;
      const authorization = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
      const mayHaveBody = !['GET', 'HEAD', 'OPTIONS'].includes(method);
      const carriers = Object.entries(CARRIERS).filter(([, { isBody }]) => mayHaveBody || !isBody);
      for (const [how, { of }] of inTurn(carriers, 3, at)) {
        const { query, headers, ...sent } = of(values());
        const target = query === undefined ? path : `${path}?${query}`;
        await call(how, method, target.replace(/^\/?/, '/'), { headers: { ...authorization, ...headers }, ...sent });
      }
    }
  });

  it('D1-18: is sent to GraphQL as every secret argument, by every transport', async () => {
    expect(Object.keys(OPERATIONS_OF).sort()).toEqual(
      secretArguments(graphqlSchema())
        // Of queries: test/audit/attempted-sign-ins.test.ts sends the username.
        .filter((at) => !at.endsWith('.search') && !at.startsWith('auditRecords.'))
        .sort(),
    );
    for (const [at, [argument, of]] of Object.entries(OPERATIONS_OF).entries()) {
      const transports = inTurn(Object.entries(TRANSPORTS), 2, at);
      for (const [how, send] of transports) await send(of, `${argument} by ${how}`);
    }
  });

  it('D1-18: is sent as an argument of every MCP tool', async () => {
    const list = await post(p, agent, { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} });
    const tools: { name: string }[] = list.json.result.tools;
    expect(tools.length).toBeGreaterThan(5);
    for (const { name } of tools) {
      const secrets = { password: fresh(), client_secret: fresh(), token: fresh(), refresh_token: fresh() };
      await post(p, agent, callOf(name, { ...secrets, in: { ...secrets } }));
    }
  });

  it('D2-08 D3-06: is issued by the service: as a new client secret, under any name, and as tokens of each kind', async () => {
    const made = 'createClient(input: {name: "c", grantTypes: [CLIENT_CREDENTIALS], scopes: []})';
    const { id } = (await createdClient(p, token)).client;
    const secrets = await Promise.all(
      [
        `${made} { ... on CreatedClient { clientSecret } }`,
        `${made} { ... on CreatedClient { renamed: clientSecret } }`,
        `rotateClientSecret(id: "${id}") { ... on CreatedClient { clientSecret } }`,
      ].map((field) => call(field, 'POST', '/graphql', { token, json: { query: `mutation { ${field} }` } })),
    );
    expect(secrets.map(({ text }) => text.match(ISSUED)?.length)).toEqual([1, 1, 1]);
    const { client, supervisor, other_node, webhook } = { ...p.demo, webhook: p.webhook };
    const login = { grant_type: 'password', ...client, ...supervisor };
    const { json } = await call('a login', 'POST', '/v2/oauth/token', { json: login });
    const again = { grant_type: 'refresh_token', ...client, refresh_token: json.refresh_token };
    expect((await call('a refresh', 'POST', '/v2/oauth/token', { json: again })).status).toBe(200);
    const { jwt, pepper } = p.service.context.secrets;
    const keys = Object.entries({ ...jwt, pepper }).map(([name, key]) => [name, Object(key).current]);
    const given = { client: client.client_secret, agent, supervisor: supervisor.password, webhook: webhook.password };
    for (const [what, secret] of [...keys, ...Object.entries({ ...given, other: other_node.client.client_secret })]) {
      expect([what, typeof secret]).toEqual([what, 'string']);
      issued.set(secret, what);
    }
    expect([...issued.values()]).toEqual(expect.arrayContaining(['a login', 'a refresh']));
  });

  it('D1-18: is read from standard input only by the commands that this suite covers', () => {
    const sources = globSync('src/cli/commands/**/*.ts', { cwd: ROOT }).map((file) =>
      readFileSync(join(ROOT, file), 'utf8'),
    );
    expect(sources.filter((source) => source.includes('readLine'))).toHaveLength(1);
    expect(sources.join('').match(/await readPassword\(/g)).toHaveLength(2);
  });

  it('D1-18 D2-08 D2-21: appears in no record, table, log line, spool, trace, metric or command output', async () => {
    const folder = join(p.dataDir, 'audit');
    const files = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'latin1'));
    expect(files.join('').length).toBeGreaterThan(100_000);
    vi.restoreAllMocks();
    const { spool } = p.service.context;
    await vi.waitFor(() => expect(spool.pendingBytes).toBe(0));
    const textOf = async (table: string) => {
      const all = await rows(p).raw((sql) => sql<{ text: string }>`select t::text as text from ${sql.table(table)} t`);
      return all.map(({ text }) => text);
    };
    const records = await textOf('audit_records');
    const tables = ['idempotent_answers', 'clients', 'client_secrets', 'supervisors', 'sessions', 'access_changes'];
    const ofRequests = new Map([...asked.keys()].map((id) => [id, records.filter((text) => text.includes(id))]));
    const unrecorded = [...ofRequests].filter(([, found]) => found.length === 0).map(([id]) => asked.get(id));
    expect(unrecorded).toEqual([]);
    await vi.waitFor(() => expect(collector.spans.length).toBeGreaterThan(asked.size));
    const places = {
      records,
      log: lines,
      tables: (await Promise.all(tables.map(textOf))).flat(),
      spool: files,
      traces: [JSON.stringify(collector.spans)],
      metrics: [(await scrape(p.service)).text],
      commands: printed,
    };
    for (const [place, texts] of Object.entries(places)) {
      const text = texts.join('\n');
      const found = [...issued].filter(([secret]) => text.includes(secret)).map(([, what]) => what);
      expect([place, traceIn(text), found]).toEqual([place, undefined, []]);
    }
  });
});

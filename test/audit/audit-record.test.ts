import { randomUUID } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { jsonOf } from '../../src/audit/audit-record.ts';
import { BusUnavailableError } from '../../src/events/bus/event-bus.ts';
import { type Log, silentLog } from '../../src/lib/log.ts';
import { recordOf, recordsOf } from '../support/audit/records.ts';
import { openSocket, request, sendRaw } from '../support/gateway/raw.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { type Answer, startPortcullis } from '../support/harness.ts';
import { addClient } from '../support/oauth/clients.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';
import { basicOf } from '../support/oauth/requests.ts';

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7/;
const lines: Record<string, unknown>[] = [];
const keep = (fields: object, message: string) => void lines.push({ ...fields, message });
const log: Log = { ...silentLog, info: keep, warn: keep, error: keep };

/** What publishing waits for. */
const gate: { open(): Promise<void> } = { open: async () => undefined };
const p = beforeTests(() =>
  startPortcullis({
    overrides: {
      log,
      bus: (bus) => {
        const publish = bus.publish.bind(bus);
        vi.spyOn(bus, 'publish').mockImplementation(async (...publishing) => {
          await gate.open();
          return publish(...publishing);
        });
        return bus;
      },
    },
  }),
);
let basic: string;

beforeAll(async () => {
  basic = `Basic ${Buffer.from(`${p.webhook.username}:${p.webhook.password}`).toString('base64')}`;
});
afterEach(() => {
  gate.open = async () => undefined;
});

let sent = 0;
function newId(): string {
  sent += 1;
  return `audited-${sent}`;
}

function notification(more: object = {}): object {
  const at = '2026-11-01T00:00:00Z';
  return { id: p.demo.transactions.otc_transactions, type: 1, status: 1, created_at: at, updated_at: at, ...more };
}

function post(path: string, json: object, headers: Record<string, string> = {}): Promise<Answer> {
  return p.call('POST', path, { json, headers });
}

/** Requests of every kind of answer, and the status that the record has. */
const requests: [number, string, string, Record<string, string>][] = [
  [200, 'GET', '/health', {}],
  [200, 'HEAD', '/v1/health', {}],
  [204, 'OPTIONS', '/any/path', {}],
  [400, 'GET', '/v1/accounts?page=0', {}],
  [401, 'GET', '/v1/accounts', { Authorization: 'Bearer broken' }],
  [401, 'POST', '/v2/webhooks', { Authorization: 'Basic eDp5' }],
  [404, 'GET', '/nowhere?password=x', {}],
  [404, 'GET', '/v1/accounts', { 'X-Target-Server': 'unknown' }],
  [404, 'GET', '/v1/../v1/accounts', {}],
  [404, 'GET', '/v1%2Faccounts', {}],
  [404, 'TRACE', '/health', {}],
];

describe('every request', () => {
  it.each(requests)(
    'D2-07 1-02: a %i (%s %s) leaves one record and one log line',
    async (status, method, path, headers) => {
      const id = newId();
      const token = await p.clientToken();
      const all = { Authorization: `Bearer ${token}`, 'X-Correlation-ID': id, ...headers };
      const answer = await sendRaw(p.url, request(method, path, all));
      expect(answer.status).toBe(status);
      const record = await recordOf(p, id);
      expect(record).toMatchObject({ method, status_code: status, path: path.replace(/\?.*/, ''), aborted: false });
      expect(record.query).toBe(path.includes('password') ? 'password=***' : (path.split('?')[1] ?? null));
      expect(Number(record.response_bytes)).toBe(answer.body.length);
      expect(lines.filter((line) => line.correlation_id === id)).toHaveLength(1);
    },
  );

  it('D2-07: a 403 of a guard, a 500 and a rejected upgrade leave one record each', async () => {
    const guarded = await addClient(p, { require_certificate: true });
    const ids = [newId(), newId(), newId()];
    const [guard = '', fault = '', upgrade = ''] = ids;
    await post('/v2/oauth/token', { grant_type: 'client_credentials', ...guarded }, { 'x-correlation-id': guard });
    gate.open = () => Promise.reject(new BusUnavailableError('away'));
    await post('/v2/webhooks', notification(), { 'x-correlation-id': fault, authorization: basic });
    const switching = { Connection: 'Upgrade', Upgrade: 'websocket', 'X-Correlation-ID': upgrade };
    await sendRaw(p.url, request('GET', '/v1/accounts', switching));
    const statuses = await Promise.all(ids.map(async (id) => (await recordOf(p, id)).status_code));
    expect(statuses).toEqual([403, 500, 401]);
  });

  it('D2-07: a request whose correlation id is too long is recorded under the generated id', async () => {
    const answer = await p.call('GET', '/health', { headers: { 'x-correlation-id': 'x'.repeat(2_000) } });
    const record = await recordOf(p, answer.headers.get('x-correlation-id') ?? '');
    expect(record.status_code).toBe(400);
  });
});

describe('a client that disconnects', () => {
  it('D2-07: while it sends leaves one record, marked aborted', async () => {
    const id = newId();
    const socket = openSocket(p.url);
    const headers = { Authorization: basic, 'Content-Type': 'application/json', 'X-Correlation-ID': id };
    const begun = Promise.withResolvers<unknown>();
    subscribe('http.server.request.start', begun.resolve);
    socket.write(`${request('POST', '/v2/webhooks', { ...headers, 'Content-Length': '1000' })}{"id":`);
    await begun.promise;
    unsubscribe('http.server.request.start', begun.resolve);
    socket.destroy();
    const record = await recordOf(p, id);
    expect(record).toMatchObject({ status_code: 499, aborted: true, response_body: null });
    expect(Number(record.request_bytes)).toBe(1000);
  });

  it('D2-07: while it waits leaves one record, marked aborted, whatever the handler does later', async () => {
    const id = newId();
    const hold = Promise.withResolvers<void>();
    const entered = Promise.withResolvers<void>();
    gate.open = () => {
      entered.resolve();
      return hold.promise;
    };
    const socket = openSocket(p.url);
    const body = JSON.stringify(notification());
    const headers = { Authorization: basic, 'Content-Type': 'application/json', 'X-Correlation-ID': id };
    socket.write(request('POST', '/v2/webhooks', { ...headers, 'Content-Length': String(body.length) }) + body);
    await entered.promise;
    socket.destroy();
    expect(await recordOf(p, id)).toMatchObject({ status_code: 499, aborted: true });
    hold.resolve();
    await p.call('GET', '/health');
    expect(await recordsOf(p, id)).toHaveLength(1);
  });
});

/** How much has left the process on a connection: what waits in it has not. */
function bytesGiven(socket: Socket): number {
  const { _handle: handle } = socket as Socket & { _handle: { bytesWritten: number } };
  return handle.bytesWritten;
}

describe('the spool', () => {
  it('D2-07: contains the record before the first byte of the response is written to the connection', async () => {
    const started: { response: ServerResponse; socket: Socket; before: number }[] = [];
    const onStart = (message: unknown) => {
      const { response, socket } = message as { response: ServerResponse; socket: Socket };
      started.push({ response, socket, before: bytesGiven(socket) });
    };
    subscribe('http.server.request.start', onStart);
    const { spool } = p.service.context;
    const append = spool.append.bind(spool);
    const given = new Map<string, number>();
    const spy = vi.spyOn(spool, 'append').mockImplementation((...lines) => {
      for (const line of lines) {
        const id = JSON.parse(jsonOf(Buffer.from(line))).correlation_id;
        const request = started.find(({ response }) => response.getHeader('x-correlation-id') === id);
        if (request) given.set(id, bytesGiven(request.socket) - request.before);
      }
      append(...lines);
    });
    const ids = [newId(), newId(), newId(), newId()];
    const [ok = '', preflight = '', missing = '', empty = ''] = ids;
    const send = (method: string, path: string, id: string) =>
      sendRaw(p.url, request(method, path, { 'X-Correlation-ID': id }));
    await send('GET', '/health', ok);
    await send('OPTIONS', '/', preflight);
    await send('GET', '/nowhere', missing);
    await post('/v2/webhooks', notification(), {
      'x-correlation-id': empty,
      authorization: basic,
      connection: 'close',
    });
    spy.mockRestore();
    unsubscribe('http.server.request.start', onStart);
    expect(ids.map((id) => given.get(id))).toEqual([0, 0, 0, 0]);
  });

  it('D2-07: sends the response even if it cannot store the record', async () => {
    const spy = vi.spyOn(p.service.context.spool, 'append').mockImplementation(() => {
      throw new Error('no room');
    });
    const answers = await Promise.all(Array.from({ length: 5 }, () => p.call('GET', '/health')));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    spy.mockRestore();
  });
});

describe('the audit record', () => {
  it('1-04 1-05 1-12 D1-09: has every documented member', async () => {
    const id = newId();
    const token = await p.clientToken();
    const startedAt = Date.now();
    const answer = await p.call('GET', '/v1/accounts?page=1&limit=2&access_token=abc', {
      token,
      headers: {
        'x-correlation-id': id,
        'x-target-server': 'accounts',
        'x-forwarded-for': '203.0.113.7',
        cookie: 'a=b',
      },
    });
    const record = await recordOf(p, id);
    expect(record).toMatchObject({
      correlation_id: id,
      method: 'GET',
      path: '/v1/accounts',
      query: 'page=1&limit=2&access_token=***',
      status_code: 200,
      remote_address: '127.0.0.1',
      real_ip: '203.0.113.7',
      request_body: null,
      response_body: answer.text,
      node_id: p.demo.node_id,
      is_api: true,
      aborted: false,
    });
    expect(record.headers).toMatchObject({ authorization: '***', cookie: '***', 'x-target-server': 'accounts' });
    expect(Number(record.response_bytes)).toBe(Buffer.byteLength(answer.text));
    expect(Number(record.request_bytes)).toBe(0);
    expect(record.elapsed).toBeGreaterThan(0);
    expect(record.elapsed).toBeLessThan(Date.now() - startedAt + 1);
    expect(record.id).toMatch(UUID_V7);
    expect(JSON.stringify(record)).not.toContain(token);
  });

  it('1-06 D2-08: masks the values of secret names in a body, at any depth and in any case, and nothing else', async () => {
    const id = newId();
    const secrets = {
      password: 's1',
      Token: 's2',
      AUTHORIZATION: 's3',
      client_secret: 's4',
      refreshToken: { a: 's5' },
    };
    const body = notification({ ...secrets, deep: [{ x: { new_password: 's6', secretary: 'kept', tokens: 'kept' } }] });
    await post('/v2/webhooks/custodial', body, { 'x-correlation-id': id, authorization: basic });
    const record = await recordOf(p, id);
    const masked = { password: '***', Token: '***', AUTHORIZATION: '***', client_secret: '***', refreshToken: '***' };
    expect(JSON.parse(record.request_body ?? '')).toEqual({
      ...body,
      ...masked,
      deep: [{ x: { new_password: '***', secretary: 'kept', tokens: 'kept' } }],
    });
    expect([record.status_code, record.response_body, Number(record.response_bytes)]).toEqual([200, null, 0]);
    expect(JSON.stringify(record.headers)).not.toContain(basic);
  });

  it('D2-09: stores 64 KiB of a body, and its full length', async () => {
    const id = newId();
    const body = notification({ filler: 'é'.repeat(100_000) });
    await post('/v2/webhooks/custodial', body, { 'x-correlation-id': id, authorization: basic });
    const record = await recordOf(p, id);
    const kept = Buffer.byteLength(record.request_body ?? '');
    expect([kept <= 65_536, kept > 65_000]).toEqual([true, true]);
    expect(Number(record.request_bytes)).toBe(Buffer.byteLength(JSON.stringify(body)));
  });

  it('1-08: of a token request has no bodies, only their lengths and a log line at info', async () => {
    const id = newId();
    const grant = { grant_type: 'password', ...p.demo.client, ...p.demo.supervisor };
    const answer = await post('/v2/oauth/token', grant, { 'x-correlation-id': id });
    const record = await recordOf(p, id);
    expect([record.request_body, record.response_body]).toEqual([null, null]);
    expect(Number(record.request_bytes)).toBe(JSON.stringify(grant).length);
    expect(Number(record.response_bytes)).toBe(answer.text.length);
    const line = lines.filter((fields) => fields.correlation_id === id);
    expect(line).toHaveLength(1);
    expect(line[0]).toMatchObject({ method: 'POST', path: '/v2/oauth/token', status: 200, message: 'request' });
    const kept = JSON.stringify([record, line]);
    for (const secret of [grant.password, grant.client_secret, answer.json.access_token]) {
      expect(kept).not.toContain(secret);
    }
  });

  it('D2-07: of a rejected request has the length of the body that was not read', async () => {
    const id = newId();
    const headers = { 'x-correlation-id': id };
    const answer = await post('/v2/users/migrate/with-wallet', { email: 'ada@example.com' }, headers);
    const record = await recordOf(p, id);
    expect(record).toMatchObject({ status_code: 401, request_body: null, response_body: answer.text });
    expect(Number(record.request_bytes)).toBe(JSON.stringify({ email: 'ada@example.com' }).length);
  });
});

const SECRET = 'ZQ-hunter2';
const LOGIN = `mutation { login(pasword: "${SECRET}") { id } }`;

describe('a request to /graphql', () => {
  it('D2-20: that is a batch leaves a record and a log line for each operation, before the response is sent', async () => {
    const { spool } = p.service.context;
    const append = vi.spyOn(spool, 'append');
    const batch = [{ query: '{ me { subject } }' }, { query: '{ accounts(first: 1) { edges { node { id } } } }' }];
    const headers = { 'x-correlation-id': 'a-batch' };
    const answer = await p.call('POST', '/graphql', { token: await p.clientToken(), json: batch, headers });
    expect(append.mock.calls.flat().filter((line) => line.includes('"a-batch"'))).toHaveLength(batch.length);
    append.mockRestore();
    const records = await recordsOf(p, 'a-batch');
    const shown = records.map(({ request_body, response_body }) => [request_body, response_body]);
    const expected = batch.map((one, index) => [JSON.stringify(one), JSON.stringify(answer.json[index])]);
    expect(shown.toSorted()).toEqual(expected.toSorted());
    expect(lines.filter((line) => line.correlation_id === 'a-batch')).toHaveLength(2);
  });

  it.each([
    ['without a token', 401, '/graphql', () => undefined],
    ['with a token', 405, '/graphql', () => p.clientToken()],
    ['to an unknown path', 404, '/graphql/', () => p.clientToken()],
  ])('D2-21: %s records no secret of its query string or its Referer', async (_who, status, path, token) => {
    const id = `a-get-${status}`;
    const query = new URLSearchParams({ query: LOGIN, variables: JSON.stringify({ p: SECRET }) });
    const referer = `${p.url}/graphql?${query}`;
    const bearer = await token();
    const headers = { 'x-correlation-id': id, referer, 'content-type': 'application/json' };
    await p.call('GET', `${path}?${query}`, { ...(bearer === undefined ? {} : { token: bearer }), headers });
    const record = await recordOf(p, id);
    expect([record.status_code, record.method]).toEqual([status, 'GET']);
    expect(JSON.stringify(record) + JSON.stringify(lines)).not.toContain(SECRET);
  });

  it('D2-21: whose bodies cannot be masked is recorded without bodies, and answered', async () => {
    const { stringify } = JSON;
    const spy = vi.spyOn(JSON, 'stringify').mockImplementation((value) => {
      if (typeof value === 'object' && value !== null && 'query' in value && !('id' in value))
        throw new TypeError('a fault');
      return stringify(value);
    });
    const headers = { 'x-correlation-id': 'a-fault', 'content-type': 'application/json' };
    const body = '{"query":"{ me { subject } }"}';
    const answer = await p.call('POST', '/graphql', { token: await p.clientToken(), body, headers });
    spy.mockRestore();
    expect([answer.status, answer.json.data.me.subject]).toEqual([200, expect.any(String)]);
    const record = await recordOf(p, 'a-fault');
    expect([record.request_body, record.response_body, Number(record.request_bytes)]).toEqual([
      null,
      null,
      body.length,
    ]);
    expect(lines).toContainEqual(expect.objectContaining({ message: 'could not mask bodies' }));
  });
});

describe('the caller in the audit record', () => {
  const nobody = () => null;
  const demo = () => p.demo.node_id;
  const neighbour = () => p.demo.other_node.node_id;
  const client = { grant_type: 'client_credentials' };
  const login = { grant_type: 'password' };

  const wrong = { client_secret: 'w'.repeat(43) };
  const own = (more: object) => ({ ...p.demo.client, ...more });
  const basic = () => ({ authorization: basicOf({ ...p.demo.client, ...wrong }) });

  it.each([
    ['an API token', () => list(p.clientToken()), demo, true],
    ['a login token', () => list(p.loginToken()), demo, false],
    ["another node's token", () => list(p.clientToken(p.demo.other_node.client)), neighbour, true],
    ['a legacy token', () => list(legacyToken()), demo, true],
    ['a token without the permission', () => list(signed(p, apiClaims(p, { scope: '' }))), demo, true],
    ['a broken token', () => list('broken'), nobody, false],
    ['an expired token', () => list(signed(p, apiClaims(p, { exp: 1 }))), nobody, false],
    ['nobody', () => (id: string) => p.call('GET', '/health', { headers: { 'x-correlation-id': id } }), nobody, false],
    ['a token call of a client', () => call(own(client)), demo, true],
    ['a token call for a login', () => call({ ...login, ...own(p.demo.supervisor) }), demo, false],
    ['a refresh of a login', () => refresh(login), demo, false],
    ['a refresh of a client', () => refresh(client), demo, true],
    ['a wrong password', () => call(own({ ...login, username: 'x', password: 'y' })), demo, false],
    ['a refused grant', () => call({ ...p.demo.other_node.client, grant_type: 'x' }), neighbour, true],
    ['a wrong client secret', () => call(own({ ...client, ...wrong })), demo, true],
    ['a wrong secret by HTTP Basic', () => call(client, undefined, basic()), demo, true],
    ['a wrong secret of a login', () => call(own({ ...login, ...wrong, username: 'a', password: 'b' })), demo, false],
    ['an id in capitals', () => call({ ...wrong, client_id: p.demo.client.client_id.toUpperCase() }), demo, true],
    ['no grant', () => call(own({ grant_type: 1 })), demo, true],
    ['no secret', () => call({ ...client, client_id: p.demo.client.client_id }), demo, true],
    ['a revocation with a wrong secret', () => call(own({ ...wrong, token: 'x' }), '/v2/oauth/revoke'), demo, true],
    ['an introspection of nothing', () => call(own({}), '/v2/oauth/introspect'), demo, true],
    ['a call that a guard refuses', () => byClient({ require_certificate: true }), demo, true],
    ['a disabled client', () => byClient({ status: 'disabled' }), demo, true],
    ['an unknown client', () => call({ ...client, ...wrong, client_id: randomUUID() }), nobody, false],
  ])(
    '1-07 D2-07: %s: the record has its node, and whether it used an API token',
    async (_name, asking, nodeId, isApi) => {
      const id = newId();
      await (await asking())(id);
      const record = await recordOf(p, id);
      expect([record.node_id, record.is_api]).toEqual([nodeId(), isApi]);
      if (record.path.startsWith('/v2/oauth')) expect(record.request_body).toBeNull();
    },
  );

  it('D2-07: an invalid token request still gets its 400 when the client cannot be looked up', async () => {
    const spy = vi.spyOn(p.service.context.directory, 'client').mockRejectedValue(new Error('away'));
    const answer = await post('/v2/oauth/token', own({ grant_type: 1 }));
    spy.mockRestore();
    expect(answer.status).toBe(400);
  });

  async function byClient(settings: Parameters<typeof addClient>[1]) {
    return call({ ...client, ...(await addClient(p, settings)) });
  }

  async function list(token: string | Promise<string>) {
    const bearer = await token;
    return (id: string) => p.call('GET', '/v1/accounts', { token: bearer, headers: { 'x-correlation-id': id } });
  }

  function legacyToken(): string {
    const claims = { sub: 'x', aud: p.demo.node_id, scope: 'accounts:read' };
    return signed(p, claims, { secret: p.service.context.secrets.jwt.legacy.current });
  }

  async function refresh(grant: object) {
    const first = await post('/v2/oauth/token', { ...p.demo.client, ...p.demo.supervisor, ...grant });
    const { refresh_token } = first.json;
    return call({ grant_type: 'refresh_token', ...p.demo.client, refresh_token });
  }

  function call(grant: object, path = '/v2/oauth/token', headers = {}) {
    return (id: string) => post(path, grant, { 'x-correlation-id': id, ...headers });
  }
});

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { jsonOf } from '../../src/audit/audit-record.ts';
import { BusUnavailableError } from '../../src/events/bus/event-bus.ts';
import { type Log, silentLog } from '../../src/lib/log.ts';
import { recordOf, recordsOf } from '../support/audit/records.ts';
import { openSocket, request, sendRaw } from '../support/gateway/raw.ts';
import { type Answer, type Portcullis, startPortcullis } from '../support/harness.ts';
import { addClient } from '../support/oauth/clients.ts';

const lines: Record<string, unknown>[] = [];
const log: Log = { ...silentLog, info: (fields, message) => void lines.push({ ...fields, message }) };

/** What publishing waits for. */
const gate: { open(): Promise<void> } = { open: async () => undefined };
let p: Portcullis;
let basic: string;

beforeAll(async () => {
  p = await startPortcullis({
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
  });
  basic = `Basic ${Buffer.from(`${p.webhook.username}:${p.webhook.password}`).toString('base64')}`;
});
afterEach(() => {
  gate.open = async () => undefined;
});
afterAll(() => p[Symbol.asyncDispose]());

let sent = 0;
function newId(): string {
  sent += 1;
  return `audited-${sent}`;
}

function notification(): object {
  const at = '2026-11-01T00:00:00Z';
  return { id: p.demo.transactions.otc_transactions, type: 1, status: 1, created_at: at, updated_at: at };
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
  it.each(requests)('D2-07 1-02: a %i (%s %s) has one record and one line', async (status, method, path, headers) => {
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
  });

  it('D2-07: a 403 of a guard, a 500 and a refused upgrade have one', async () => {
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

  it('D2-07: one whose correlation id is too long has a record under the id that it was given', async () => {
    const answer = await p.call('GET', '/health', { headers: { 'x-correlation-id': 'x'.repeat(2_000) } });
    const record = await recordOf(p, answer.headers.get('x-correlation-id') ?? '');
    expect(record.status_code).toBe(400);
  });

  it('D2-07: requests on one connection have one each', async () => {
    const ids = [newId(), newId(), newId()];
    const pipelined = ids.map((id, index) => {
      const connection: Record<string, string> = index === ids.length - 1 ? {} : { Connection: 'keep-alive' };
      return request('GET', '/health', { ...connection, 'X-Correlation-ID': id });
    });
    await sendRaw(p.url, pipelined.join(''));
    for (const id of ids) expect((await recordOf(p, id)).status_code).toBe(200);
  });
});

describe('a client that goes away', () => {
  it('D2-07: while it sends has one record, aborted', async () => {
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

  it('D2-07: while it waits has one record, aborted, whatever the handler does later', async () => {
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
  it('D2-07: has the record before a byte of the answer is given to the connection', async () => {
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

  it('D2-07: that cannot take a record does not keep the answer back', async () => {
    const spy = vi.spyOn(p.service.context.spool, 'append').mockImplementation(() => {
      throw new Error('no room');
    });
    const answers = await Promise.all(Array.from({ length: 5 }, () => p.call('GET', '/health')));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    spy.mockRestore();
  });
});

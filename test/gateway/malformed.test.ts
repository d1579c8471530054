import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { recordOf } from '../support/audit/records.ts';
import { openSocket, readAnswer, sendRaw } from '../support/gateway/raw.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';

let p: Portcullis;
let token: string;

beforeAll(async () => {
  p = await startPortcullis();
  token = await p.clientToken();
});

afterAll(() => p[Symbol.asyncDispose]());

const times = { created_at: '2026-11-21T00:00:00Z', updated_at: '2026-11-21T00:00:00Z' };

const MALFORMED: [string, string][] = [
  ['no Host', 'GET /health HTTP/1.1\r\nConnection: close\r\n\r\n'],
  ['an unknown method', 'FOO /health HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['two lengths', 'POST /v2/webhooks HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'],
  ['a header over its limit', `GET /health HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(200_000)}\r\n\r\n`],
];

describe('what is no good HTTP', () => {
  it.each(MALFORMED)('D2-06 D2-13: %s is a 400 with the envelope and a correlation id', async (_what, bytes) => {
    const answer = await sendRaw(p.url, bytes);
    expect(answer.status).toBe(400);
    expect(answer.headers['x-correlation-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(JSON.parse(answer.body)).toMatchObject({ code: -1, domain: 0, message: 'invalid_request' });
  });

  it('D2-07: a chunk that is broken ends its request with a 400, and the record says so', async () => {
    const { username, password } = p.webhook;
    const basic = Buffer.from(`${username}:${password}`).toString('base64');
    const head = [
      'POST /v2/webhooks/custodial HTTP/1.1',
      'Host: x',
      `Authorization: Basic ${basic}`,
      'Content-Type: application/json',
      'Transfer-Encoding: chunked',
      'X-Correlation-ID: broken-chunk',
    ];
    const answer = await sendRaw(p.url, `${head.join('\r\n')}\r\n\r\nzz\r\n`);
    expect(answer.status).toBe(400);
    expect(answer.headers['x-correlation-id']).toBe('broken-chunk');
    expect((await recordOf(p, 'broken-chunk')).status_code).toBe(400);
  });

  it('D2-13: behind a request that came in full it takes nothing from its answer, which is the last', async () => {
    const { username, password } = p.webhook;
    const body = JSON.stringify({ id: 'whole', type: 1, status: 1, ...times });
    const head = [
      'POST /v2/webhooks HTTP/1.1',
      'Host: x',
      `Authorization: Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ];
    const answer = await sendRaw(p.url, `${head.join('\r\n')}\r\n\r\n${body}}`);
    expect([answer.status, answer.headers.connection, answer.body]).toEqual([200, 'close', '']);
  });

  it('D2-06: an expectation that nobody knows is answered as if it had not been said', async () => {
    const bytes = 'GET /health HTTP/1.1\r\nHost: x\r\nExpect: wonders\r\nConnection: close\r\n\r\n';
    expect((await sendRaw(p.url, bytes)).status).toBe(200);
  });

  it('D2-14: leave to send is not given for a body over its limit', async () => {
    const { username, password } = p.webhook;
    const basic = Buffer.from(`${username}:${password}`).toString('base64');
    const socket = openSocket(p.url);
    socket.write(
      `POST /v2/webhooks/custodial HTTP/1.1\r\nHost: x\r\nAuthorization: Basic ${basic}\r\n` +
        'Content-Type: application/json\r\nContent-Length: 300000\r\nExpect: 100-continue\r\n\r\n',
    );
    expect((await readAnswer(socket)).status).toBe(400);
  });
});

describe('an upgrade', () => {
  it.each([
    ['to HTTP/2', { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': '' }],
    ['to a WebSocket without a key', { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' }],
  ])('D2-16: %s is ignored, and the request is answered', async (_what, headers) => {
    const lines = Object.entries({ Host: 'x', Authorization: `Bearer ${token}`, ...headers });
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    const socket = openSocket(p.url);
    socket.write(`GET /graphql?query=%7Bme%7BnodeId%7D%7D HTTP/1.1\r\n${head}\r\n`);
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    socket.destroy();
    expect(String(chunk)).toMatch(/^HTTP\/1\.1 200 /);
    expect(String(chunk)).toContain(p.demo.node_id);
  });

  it('D2-06: of a WebSocket carries the correlation id in its answer', async () => {
    const headers = { 'X-Correlation-ID': 'a-socket' };
    const socket = new WebSocket(`${p.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws', { headers });
    const [response] = await once(socket, 'upgrade');
    socket.terminate();
    expect(response.headers['x-correlation-id']).toBe('a-socket');
  });
});

describe('a GraphQL request', () => {
  it.each(['variables', 'extensions'])('D2-13: by GET with %s that are no JSON is a 400', async (name) => {
    const answer = await p.call('GET', `/graphql?query=%7Bme%7BnodeId%7D%7D&${name}=%7B`, { token });
    expect(answer.status).toBe(400);
    expect(answer.json).toMatchObject({ message: 'invalid_request', errors: [{ path: name }] });
  });

  it('DG-06: a subscription in a batch is an error of its entry', async () => {
    const batch = [{ query: '{ me { nodeId } }' }, { query: 'subscription { transactionUpdates { cursor } }' }];
    const answer = await p.call('POST', '/graphql', { token, json: batch });
    expect(answer.json[0].data.me.nodeId).toBe(p.demo.node_id);
    expect(answer.json[1].errors[0].message).toContain('subscription');
  });
});

it('1-05: a token that a caller put into the path is not in the record', async () => {
  const headers = { 'X-Correlation-ID': 'token-in-path' };
  await p.call('GET', `/v1/accounts/${token}`, { headers });
  expect((await recordOf(p, 'token-in-path')).path).toBe('/v1/accounts/***');
});

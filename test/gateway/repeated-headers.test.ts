import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startUpstream, type TestUpstream } from '../support/gateway/forwarder.ts';
import { sendRaw } from '../support/gateway/raw.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { basicOf } from '../support/oauth/requests.ts';
import { basic, notification } from '../support/webhook/stand.ts';

let upstream: TestUpstream;
let p: Portcullis;
let bearer: string;
beforeAll(async () => {
  upstream = await startUpstream((_req, res) => res.end('ok'));
  p = await startPortcullis({ env: { DISCOVERS_UPSTREAM_URL: upstream.url } });
  bearer = `Bearer ${await p.clientToken()}`;
});
afterAll(async () => {
  await p[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const JSON_TYPE = 'application/json';
const FORM = 'application/x-www-form-urlencoded';
const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}';

/** A good request of each interface: its lines, and its body. */
const interfaces: [name: string, () => { to: string; lines: string[]; body?: string }, status: number][] = [
  ['REST', () => ({ to: 'GET /v1/accounts', lines: [`Authorization: ${bearer}`] }), 200],
  ['health', () => ({ to: 'GET /health', lines: [] }), 200],
  [
    'the token endpoint',
    () => ({
      to: 'POST /v2/oauth/token',
      lines: [`Authorization: ${basicOf(p.demo.client)}`, `Content-Type: ${FORM}`],
      body: 'grant_type=client_credentials',
    }),
    200,
  ],
  [
    'the webhook',
    () => ({
      to: 'POST /v2/webhooks/custodial',
      lines: [`Authorization: ${basic(p.webhook.username, p.webhook.password)}`, `Content-Type: ${JSON_TYPE}`],
      body: JSON.stringify(notification()),
    }),
    200,
  ],
  [
    'GraphQL',
    () => ({
      to: 'POST /graphql',
      lines: [`Authorization: ${bearer}`, `Content-Type: ${JSON_TYPE}`],
      body: '{"query":"{ me { subject } }"}',
    }),
    200,
  ],
  [
    'MCP',
    () => ({
      to: 'POST /v2/mcp',
      lines: [`Authorization: Bearer ${p.demo.client.client_secret}`, `Content-Type: ${JSON_TYPE}`],
      body: PING,
    }),
    200,
  ],
  [
    'a WebSocket',
    () => ({
      to: 'GET /graphql',
      lines: [
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
        'Sec-WebSocket-Protocol: graphql-transport-ws',
      ],
    }),
    101,
  ],
  ['a remote service', () => ({ to: 'GET /v1/discovers/nodes', lines: [] }), 401],
  ['a path that is not there', () => ({ to: 'GET /nowhere', lines: [] }), 404],
  ['a preflight', () => ({ to: 'OPTIONS /v1/accounts', lines: ['Origin: https://dashboard.example'] }), 204],
];

type Interface = (typeof interfaces)[number][1];

/** Sends a request with lines more: those before its own, and those behind. */
async function send(request: Interface, { before = [] as string[], behind = [] as string[] }) {
  const { to, lines, body } = request();
  const [method, path] = to.split(' ');
  const isUpgrade = lines.includes('Upgrade: websocket');
  const own = [...(isUpgrade ? [] : ['Connection: close']), ...lines];
  const length = body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  const head = [`${method} ${path} HTTP/1.1`, 'Host: 127.0.0.1', ...before, ...own, ...behind, ...length];
  // A socket that is accepted is closed by a frame that may not be.
  return sendRaw(p.url, `${head.join('\r\n')}\r\n\r\n${body ?? ''}${isUpgrade ? '\xff\xff' : ''}`);
}

/** Two lines that differ: their names, and their values. */
const pairs: [name: string, one: string, other: string][] = [
  ['Authorization', 'Authorization: Bearer a', 'Authorization: Bearer b'],
  ['Authorization', 'authorization: Bearer a', 'AUTHORIZATION: bearer a'],
  ['Authorization', 'Authorization:', 'Authorization: Bearer a'],
  ['Authorization', 'Authorization: Basic YTpi', 'Authorization: Bearer a'],
  ['Content-Type', 'Content-Type: application/json', 'Content-Type: text/plain'],
  ['Content-Type', 'Content-Type: application/json', 'content-type: application/json; charset=utf-8'],
  ['Content-Type', 'Content-Type: application/json', 'Content-Type: Application/JSON'],
  ['X-Target-Server', 'X-Target-Server: accounts', 'X-Target-Server: integration'],
  ['X-Target-Server', 'X-Target-Server: accounts', 'x-target-server:'],
  ['X-Target-Server', 'X-Target-Server: accounts', 'X-Target-Server: Accounts'],
];

describe.each(interfaces)('%s', (_interface, request, status) => {
  it('D2-27: (a good request is answered as it should be)', async () => {
    expect((await send(request, {})).status).toBe(status);
  });

  it.each(pairs)('D2-27: two lines of %s that differ are a 400: %s, %s', async (name, one, other) => {
    const answer = await send(request, { before: [one], behind: ['X-Between: 1', other] });
    const errors = [{ path: name, message: 'must be given once' }];
    const expected = request().to.startsWith('POST /v2/oauth/')
      ? { code: -1, domain: 0, message: 'invalid_request' }
      : { code: -1, domain: 0, message: 'invalid_request', errors };
    expect([answer.status, JSON.parse(answer.body)]).toEqual([400, expect.objectContaining(expected)]);
    expect(answer.headers['www-authenticate']).toBeUndefined();
  });

  it('D2-27: lines that repeat one value count as one', async () => {
    const { lines } = request();
    const single = lines.filter((line) => /^(?:authorization|content-type):/i.test(line));
    const services = request().to.includes('/nowhere') ? [] : ['X-Target-Server: integration'];
    const own = request().to === 'GET /v1/accounts' ? ['x-target-server: accounts'] : services;
    const behind = [...single, ...single.map((line) => line.replace(/^\S+/, (name) => name.toUpperCase()))];
    expect((await send(request, { behind: [...behind, ...own, ...own, ...own] })).status).toBe(status);
  });
});

it('D2-27: other fields may be repeated, and what is repeated reaches a remote service once', async () => {
  const { current: secret } = p.service.context.secrets.jwt.discover;
  const { apiClaims, signed } = await import('../support/oauth/jwt.ts');
  const token = signed(p, apiClaims(p, { token_use: undefined, client_id: undefined }), { secret });
  const line = `Authorization: Bearer ${token}`;
  const repeated = [line, line, 'X-Target-Server: integration', 'X-Target-Server: integration', 'X-Any: 1', 'X-Any: 2'];
  const answer = await send(() => ({ to: 'GET /v1/discovers/nodes', lines: repeated }), {});
  expect(answer.status).toBe(200);
  expect(upstream.seen.at(-1)?.headers).toMatchObject({
    authorization: `Bearer ${token}`,
    'x-target-server': 'integration',
    'x-any': '1, 2',
  });
});

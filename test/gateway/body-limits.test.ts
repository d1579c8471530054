import { once } from 'node:events';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { ExactNumber, JsonLimitError, MAX_EXACT_NUMBERS, MAX_NESTING, parseJson } from '../../src/lib/json.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { openSocket, readAnswer, type Watched, watched } from '../support/gateway/raw.ts';
import { usePortcullis } from '../support/harness.ts';
import { basic as basicText } from '../support/webhook/stand.ts';

const TOKEN_LIMIT = 64 * 1024;
const WEBHOOK_LIMIT = 256 * 1024;
const JSON_TYPE = { 'Content-Type': 'application/json' };

const p = usePortcullis();
let token: string;
let basic: string;
beforeAll(async () => {
  token = await p.clientToken();
  basic = basicText(p.webhook.username, p.webhook.password);
});

function headOf(path: string, headers: Record<string, string>): string {
  const lines = Object.entries({ Host: 'portcullis', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

/** Sends a head and some of the body, and no more: the answer must come by itself, and the connection must end. */
async function sendUnfinished(path: string, headers: Record<string, string>, sent: string) {
  const socket = openSocket(p.url);
  socket.write(headOf(path, { ...JSON_TYPE, ...headers }) + sent);
  return readAnswer(socket);
}

function chunk(bytes: number): string {
  return `${bytes.toString(16)}\r\n${' '.repeat(bytes)}\r\n`;
}

describe('a body over its limit', () => {
  it('D2-02: at the token endpoint it is refused by its announced length, before a byte, and the connection ends', async () => {
    for (const length of [TOKEN_LIMIT + 1, 2 * 1024 * 1024, Number.MAX_SAFE_INTEGER]) {
      const answer = await sendUnfinished('/v2/oauth/token', { 'Content-Length': String(length) }, '');
      expect([answer.status, answer.body]).toEqual([400, envelope('invalid_request')]);
      expect(answer.headers.connection).toBe('close');
    }
  });

  it('D2-02: in chunks it is refused the moment it passes the limit, without waiting for its end', async () => {
    const headers = { 'Transfer-Encoding': 'chunked', Authorization: basic };
    const answer = await sendUnfinished('/v2/webhooks/custodial', headers, chunk(WEBHOOK_LIMIT) + chunk(1));
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body).errors).toEqual([{ path: '', message: 'must be at most 262144 bytes' }]);
  });

  it('D2-02: a sender that goes on sending still gets its answer', async () => {
    const body = Buffer.alloc(4 * 1024 * 1024, ' ');
    for (let attempt = 0; attempt < 5; attempt += 1) {
      expect((await p.call('POST', '/v2/oauth/token', { body, headers: JSON_TYPE })).status).toBe(400);
    }
  });

  it.each([
    [401, '/v1/wallets/x/rules', {}],
    [404, '/nowhere', {}],
    [401, '/v2/webhooks', { Authorization: 'Basic eDp5' }],
  ])('D2-02: a %i for %s does not wait for the body', async (status, path, headers) => {
    const answer = await sendUnfinished(path, { ...headers, 'Content-Length': '1000' }, '{');
    expect(answer.status).toBe(status);
  });
});

const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const numbers = (count: number, literal = '1e400') => `[${Array(count).fill(literal).join(',')}]`;
const NESTED = `must not nest values more than ${MAX_NESTING} levels deep`;
const NUMBERS = `must not have more than ${MAX_EXACT_NUMBERS} numbers that need more than a double`;

describe('a JSON text', () => {
  it('7.2-01: nested beyond the limit is refused before it is parsed', () => {
    const parse = vi.spyOn(JSON, 'parse');
    for (const text of [nested(MAX_NESTING + 1), '['.repeat(500_000), '{"a":'.repeat(MAX_NESTING + 1)]) {
      expect(() => parseJson(text)).toThrow(new JsonLimitError(NESTED));
    }
    expect(parse).not.toHaveBeenCalled();
    parse.mockRestore();
    expect(parseJson(nested(MAX_NESTING))).toBeInstanceOf(Array);
  });

  it.each(['1e400', '12345678901234567', '-0.1234567890123456789', '1E-4000'])(
    '7.2-01: %s is read digit by digit so often and no more',
    (literal) => {
      const exact = Array(MAX_EXACT_NUMBERS).fill(new ExactNumber(literal));
      expect(parseJson(numbers(MAX_EXACT_NUMBERS, literal))).toEqual(exact);
      expect(() => parseJson(numbers(MAX_EXACT_NUMBERS + 1, literal))).toThrow(new JsonLimitError(NUMBERS));
    },
  );

  it('7.2-01: numbers that a double keeps, and digits in texts, do not count', () => {
    const plain = `[1e400,${Array(100_000).fill('1.5,"12345678901234567","\\\\\\""').join(',')}]`;
    expect(parseJson(plain)).toHaveLength(300_001);
    expect(parseJson(`["${'\\n'.repeat(500_000)}",1e400]`)).toEqual(['\n'.repeat(500_000), new ExactNumber('1e400')]);
  });

  const MANY = numbers(MAX_EXACT_NUMBERS + 1);
  /** Bodies of which each is the longest that an endpoint reads, or short of GraphQL and MCP. */
  const bodies: [
    what: string,
    path: () => string,
    headers: () => Record<string, string>,
    text: string,
    says: string,
  ][] = [
    ...[{}, { 'idempotency-key': 'limits' }].flatMap((more): typeof bodies => [
      ['nested', () => `/v1/wallets/${p.demo.wallet_id}/rules`, () => more, nested(500_000), NESTED],
      ['numbers', () => `/v1/wallets/${p.demo.wallet_id}/rules`, () => more, numbers(166_000), NUMBERS],
    ]),
    ['nested', () => '/v2/users/migrate/with-wallet/bulk', () => ({}), nested(1_000_000), NESTED],
    ['nested', () => '/v2/webhooks/custodial', () => ({ authorization: basic }), nested(125_000), NESTED],
    ['numbers', () => '/graphql', () => ({}), `{"query":"{ __typename }","variables":{"a":${MANY}}}`, NUMBERS],
    [
      'numbers',
      () => '/v2/mcp',
      () => ({
        authorization: `Bearer ${p.demo.client.client_secret}`,
        accept: 'application/json, text/event-stream',
      }),
      `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":${MANY}}}`,
      NUMBERS,
    ],
  ];

  it.each(bodies)('7.2-01: beyond the limits (%s) is a 400 that says what to change: %s', async (...row) => {
    const [, path, headers, body, says] = row;
    const given = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers() };
    const answer = await p.call('POST', path(), { headers: given, body });
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining(says)]);
  });
});

describe('incomplete bodies of a tenant', () => {
  const BODY = 1_000_000;
  const ROOM = Math.floor((64 * 1_048_576) / BODY);
  const OPERATIONS = '--b\r\nContent-Disposition: form-data; name="operations"\r\n\r\n'.padEnd(BODY);
  const WAIT = { timeout: 10_000 };

  const halves: Watched[] = [];
  afterEach(() => {
    for (const { socket } of halves.splice(0)) socket.destroy();
  });

  /** Sends a request but for the last byte of its body. */
  async function half(bearer: string, type = 'application/json', body = ' '.repeat(BODY)): Promise<Watched> {
    const sent = watched(p.url);
    halves.push(sent);
    await once(sent.socket, 'connect');
    const headers = { Authorization: `Bearer ${bearer}`, 'Content-Type': type, 'Content-Length': `${BODY}` };
    sent.socket.write(headOf('/graphql', headers));
    await new Promise((resolve) => sent.socket.write(body.slice(0, BODY - 1), resolve));
    return sent;
  }
  const isRefused = ({ text }: Watched) => text().startsWith('HTTP/1.1 503');

  it('D7-13: take at most 64 MiB; the oldest of more are refused, and complete ones are not', async () => {
    const other = await half(await p.clientToken(p.demo.other_node.client));
    const own: Watched[] = [];
    for (let at = 0; at < ROOM + 2; at += 1) own.push(await half(token));
    await vi.waitFor(() => expect(own.filter(isRefused)).toHaveLength(2), WAIT);
    for (const { text, isOpen } of own.slice(0, 2)) {
      expect(text()).toContain('"message":"service_unavailable"');
      await vi.waitFor(() => expect(isOpen()).toBe(false), WAIT);
    }
    expect([other, ...own.slice(2)].map(({ text }) => text())).toEqual(Array(ROOM + 1).fill(''));
    expect((await p.call('GET', '/v1/accounts', { token })).status).toBe(200);
    const body = JSON.stringify({ query: '{ me { subject } }' }).padEnd(BODY);
    expect((await p.call('POST', '/graphql', { token, headers: JSON_TYPE, body })).status).toBe(200);
  });

  it('D7-13: count no more when they are refused, complete or given up', async () => {
    for (let round = 0; round < 3; round += 1) {
      const sent = await Promise.all(Array.from({ length: 30 }, () => half(token)));
      expect(sent.map(({ text }) => text())).toEqual(sent.map(() => ''));
      for (const [at, { socket }] of sent.entries()) {
        if (at % 2 === 0) {
          socket.write(' ');
          await once(socket, 'data');
        }
        socket.destroy();
      }
    }
  });

  it('D7-13: of forms count until their file begins', async () => {
    const sent: Watched[] = [];
    for (let at = 0; at < ROOM + 2; at += 1)
      sent.push(await half(token, 'multipart/form-data; boundary=b', OPERATIONS));
    await vi.waitFor(() => expect(sent.map(isRefused)).toEqual(sent.map((_half, at) => at < 2)), WAIT);
  });
});

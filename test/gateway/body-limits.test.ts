import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { BODY_WEIGHT } from '../../src/gateway/exchange/exchange.ts';
import {
  CALLER_LIMITS,
  ExactNumber,
  JsonLimitError,
  MAX_EXACT_NUMBERS,
  parseJson,
  TEXT_LIMITS,
} from '../../src/lib/json.ts';
import { MemoryAccounts, REQUEST_BYTES } from '../../src/platform/held-memory.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { openSocket, readAnswer, type Watched, watched } from '../support/gateway/raw.ts';
import { usePortcullis } from '../support/harness.ts';
import { basic as basicText } from '../support/webhook/fixture.ts';

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
  it('D2-02: at the token endpoint it is rejected by its Content-Length before any byte, and the connection closes', async () => {
    for (const length of [TOKEN_LIMIT + 1, 2 * 1024 * 1024, Number.MAX_SAFE_INTEGER]) {
      const answer = await sendUnfinished('/v2/oauth/token', { 'Content-Length': String(length) }, '');
      expect([answer.status, answer.body]).toEqual([400, envelope('invalid_request')]);
      expect(answer.headers.connection).toBe('close');
    }
  });

  it('D2-02: a chunked body is rejected as soon as it passes the limit, without waiting for its end', async () => {
    const headers = { 'Transfer-Encoding': 'chunked', Authorization: basic };
    const answer = await sendUnfinished('/v2/webhooks/custodial', headers, chunk(WEBHOOK_LIMIT) + chunk(1));
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body).errors).toEqual([{ path: '', message: 'must be at most 262144 bytes' }]);
  });

  it('D2-02: a client that keeps sending still gets its response', async () => {
    const body = Buffer.alloc(4 * 1024 * 1024, ' ');
    for (let attempt = 0; attempt < 5; attempt += 1) {
      expect((await p.call('POST', '/v2/oauth/token', { body, headers: JSON_TYPE })).status).toBe(400);
    }
  });

  it.each([
    [401, '/v1/wallets/x/rules', {}],
    [404, '/nowhere', {}],
    [401, '/v2/webhooks', { Authorization: 'Basic eDp5' }],
  ])('D2-02: a %i for %s is sent without waiting for the body', async (status, path, headers) => {
    const answer = await sendUnfinished(path, { ...headers, 'Content-Length': '1000' }, '{');
    expect(answer.status).toBe(status);
  });
});

const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const numbers = (count: number, literal = '1e400') => `[${Array(count).fill(literal).join(',')}]`;
const MAX_NESTING = TEXT_LIMITS.levels;
const NESTED = `must not nest values more than ${MAX_NESTING} levels deep`;
const DEEP = `must not nest values more than ${CALLER_LIMITS.levels} levels deep`;
const VALUES = CALLER_LIMITS.values;
const MANY_VALUES = `must have at most ${VALUES} values (members and elements)`;
const values = (count: number) => `[${Array(count).fill('{}').join()}]`;
const BATCH = JSON.stringify(Array(10).fill({ query: '{ __typename }', variables: { a: Array(5_000).fill(0) } }));
const NUMBERS = `must not have more than ${MAX_EXACT_NUMBERS} numbers that need more than a double`;

describe('a JSON text', () => {
  it('7.2-01: nested beyond the limit is rejected before it is parsed', () => {
    const parse = vi.spyOn(JSON, 'parse');
    for (const text of [nested(MAX_NESTING + 1), '['.repeat(500_000), '{"a":'.repeat(MAX_NESTING + 1)]) {
      expect(() => parseJson(text)).toThrow(new JsonLimitError(NESTED));
    }
    expect(parse).not.toHaveBeenCalled();
    parse.mockRestore();
    expect(parseJson(nested(MAX_NESTING))).toBeInstanceOf(Array);
  });

  it.each(['1e400', '12345678901234567', '-0.1234567890123456789', '1E-4000'])(
    '7.2-01: a limited number of literals such as %s is read digit by digit',
    (literal) => {
      const exact = Array(MAX_EXACT_NUMBERS).fill(new ExactNumber(literal));
      expect(parseJson(numbers(MAX_EXACT_NUMBERS, literal))).toEqual(exact);
      expect(() => parseJson(numbers(MAX_EXACT_NUMBERS + 1, literal))).toThrow(new JsonLimitError(NUMBERS));
    },
  );

  it('7.2-01: numbers that fit a double, and digits in strings, do not count toward the limit', () => {
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
      ['nested', () => `/v1/wallets/${p.demo.wallet_id}/rules`, () => more, nested(500_000), DEEP],
      ['numbers', () => `/v1/wallets/${p.demo.wallet_id}/rules`, () => more, numbers(MAX_EXACT_NUMBERS + 1), NUMBERS],
      ['values', () => `/v1/wallets/${p.demo.wallet_id}/rules`, () => more, values(VALUES + 1), MANY_VALUES],
    ]),
    ['values', () => '/v2/users/migrate/with-wallet/bulk', () => ({}), values(690_000), MANY_VALUES],
    ['values', () => '/v2/webhooks/custodial', () => ({ authorization: basic }), values(87_000), MANY_VALUES],
    [
      'values',
      () => '/graphql',
      () => ({}),
      `{"query":"{ __typename }","variables":{"a":${values(300_000)}}}`,
      MANY_VALUES,
    ],
    ['values of a batch', () => '/graphql', () => ({}), BATCH, MANY_VALUES],
    [
      'values',
      () => '/v2/mcp',
      () => ({
        authorization: `Bearer ${p.demo.client.client_secret}`,
        accept: 'application/json, text/event-stream',
      }),
      `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":${values(300_000)}}}`,
      MANY_VALUES,
    ],
    ['nested', () => '/v2/users/migrate/with-wallet/bulk', () => ({}), nested(1_000_000), DEEP],
    ['nested', () => '/v2/webhooks/custodial', () => ({ authorization: basic }), nested(125_000), DEEP],
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

  it.each(bodies)('7.2-01: beyond the limits (%s) gets a 400 that says what to change: %s', async (...row) => {
    const [, path, headers, body, says] = row;
    const given = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers() };
    const answer = await p.call('POST', path(), { headers: given, body });
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining(says)]);
  });
});

describe('the memory of incomplete bodies', () => {
  const BODY = 1_000_000;
  const TAKEN = BODY_WEIGHT * (BODY - 1);
  const ROOM = 6;
  const OPERATIONS = '--b\r\nContent-Disposition: form-data; name="operations"\r\n\r\n'.padEnd(BODY);
  const FORM = 'multipart/form-data; boundary=b';
  const WAIT = { timeout: 10_000, interval: 5 };
  let memory: MemoryAccounts;
  beforeAll(() => {
    memory = p.service.context.memory;
    memory.limits.totalBytes = ROOM * (TAKEN + 2 * REQUEST_BYTES);
  });
  afterAll(() => {
    memory.limits.totalBytes = new MemoryAccounts().limits.totalBytes;
  });

  const halves: Watched[] = [];
  afterEach(async () => {
    for (const { socket } of halves.splice(0)) socket.destroy();
    await vi.waitFor(() => expect(memory.bytes).toBe(0), WAIT);
  });

  /** Sends a request but for the last byte of its body, and waits until it is charged or refused. */
  async function half(bearer: string, type = 'application/json', body = ' '.repeat(BODY)): Promise<Watched> {
    const before = memory.bytes;
    const sent = watched(p.url);
    halves.push(sent);
    const headers = { Authorization: `Bearer ${bearer}`, 'Content-Type': type, 'Content-Length': `${BODY}` };
    sent.socket.write(headOf('/graphql', headers) + body.slice(0, BODY - 1));
    await vi.waitFor(() => expect(isRefused(sent) || memory.bytes >= before + TAKEN).toBe(true), WAIT);
    return sent;
  }
  const isRefused = ({ text }: Watched) => text().startsWith('HTTP/1.1 503');
  /** The requests of a tenant that has so many half bodies open: which of them are refused. */
  const refusedOf = async (count: number, ...form: [type?: string, body?: string]) => {
    const sent: Watched[] = [];
    for (let at = 0; at < count; at += 1) sent.push(await half(token, ...form));
    return sent;
  };

  it('D6-25 D7-13: the newest body of the largest account is rejected, and a complete request is not', async () => {
    const other = await half(await p.clientToken(p.demo.other_node.client));
    const own = await refusedOf(ROOM + 1);
    expect(own.map(isRefused)).toEqual(own.map((_half, at) => at >= ROOM - 1));
    for (const { text, isOpen } of own.filter(isRefused)) {
      expect(text()).toMatch(/\r\nRetry-After: 1\r\n[\s\S]*"message":"service_unavailable"/i);
      await vi.waitFor(() => expect(isOpen()).toBe(false), WAIT);
    }
    expect(other.text()).toBe('');
    expect(memory.held(p.demo.node_id)).toBeGreaterThan((ROOM - 1) * TAKEN);
    expect((await p.call('GET', '/v1/accounts', { token })).status).toBe(200);
  });

  it('D6-25 D7-13: is released when a body is rejected, completed or aborted', async () => {
    for (let round = 0; round < 3; round += 1) {
      const sent = await refusedOf(ROOM - 1);
      expect(sent.map(({ text }) => text())).toEqual(sent.map(() => ''));
      for (const [at, { socket }] of sent.entries()) {
        if (at % 2 === 0) {
          socket.write(' ');
          await once(socket, 'data');
        }
        socket.destroy();
      }
      await vi.waitFor(() => expect(memory.bytes).toBe(0), WAIT);
    }
  });

  it('D6-25 D7-13: includes forms', async () => {
    const sent = await refusedOf(ROOM + 1, FORM, OPERATIONS);
    expect(sent.map(isRefused)).toEqual(sent.map((_half, at) => at >= ROOM));
  });

  it('D6-25: includes the parts before the file of a form until the form ends, but not the file', async () => {
    const operations = JSON.stringify({
      query: `mutation ($file: File!) { startUserMigration(file: $file) { __typename } }${' '.repeat(100_000)}`,
      variables: { file: null },
    });
    const parts = [`Content-Disposition: form-data; name="operations"\r\n\r\n${operations}`];
    parts.push('Content-Disposition: form-data; name="map"\r\n\r\n{"0":["variables.file"]}');
    parts.push(`Content-Disposition: form-data; name="0"; filename="a.csv"\r\n\r\n`);
    const sent = watched(p.url);
    halves.push(sent);
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': FORM, 'Content-Length': '5000000' };
    sent.socket.write(headOf('/graphql', headers) + parts.map((part) => `--b\r\n${part}`).join('\r\n'));
    const preface = BODY_WEIGHT * operations.length + 100_000;
    await vi.waitFor(() => expect(memory.held(p.demo.node_id)).toBeGreaterThan(preface), WAIT);
    // The beginning of the file is read with the preface.
    await delay(50);
    const before = memory.held(p.demo.node_id);
    await new Promise((resolve) => sent.socket.write('y'.repeat(60_000), resolve));
    await delay(50);
    expect(memory.held(p.demo.node_id)).toBe(before);
  });

  it.each([
    ['the webhook', '/v2/webhooks/custodial', () => basic, 'webhook'],
    ['client authentication', '/v2/oauth/token', () => undefined, 'authentication'],
    ['callers without a token', '/graphql', () => undefined, 'unidentified'],
  ])('D6-25: is counted separately for %s', async (_who, path, authorization, account) => {
    const sent = watched(p.url);
    halves.push(sent);
    const bearer = authorization();
    const body = path === '/graphql' ? '' : ' '.repeat(10_000);
    const headers = { ...JSON_TYPE, ...(bearer ? { Authorization: bearer } : {}), 'Content-Length': '20000' };
    // The first of two requests waits on the connection; only its head is charged where the token is missing.
    sent.socket.write(headOf(path, headers) + body);
    if (path === '/graphql') return vi.waitFor(() => expect(sent.text()).toMatch(/^HTTP\/1.1 401/), WAIT);
    await vi.waitFor(() => expect(memory.held(account)).toBeGreaterThan(BODY_WEIGHT * body.length), WAIT);
    expect(memory.held(account)).toBe(memory.bytes);
  });

  it('D6-25: a webhook request without memory left gets a 500, since its statuses are fixed', async () => {
    memory.limits.totalBytes = REQUEST_BYTES;
    const answer = await p.call('POST', '/v2/webhooks/custodial', { headers: { authorization: basic }, json: {} });
    expect([answer.status, answer.json.message]).toEqual([500, 'internal_error']);
    const other = await p.call('GET', '/v1/accounts', { token });
    expect([other.status, other.json.message, other.headers.get('retry-after')]).toEqual([
      503,
      'service_unavailable',
      '1',
    ]);
    expect((await p.call('GET', '/health')).status).toBe(200);
  });
});

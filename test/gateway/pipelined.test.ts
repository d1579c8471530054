import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { recordOf, recordsOf } from '../support/audit/records.ts';
import { type Forwarder, startForwarder, startUpstream, type TestUpstream } from '../support/gateway/forwarder.ts';
import { openSocket, request, UPGRADE } from '../support/gateway/raw.ts';
import { readAnswers } from '../support/gateway/raw-answers.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';
import { scrape } from '../support/observability/scrape.ts';
import { basic } from '../support/webhook/fixture.ts';

let p: Portcullis;
let upstream: TestUpstream;
let f: Forwarder;
/** An upstream that takes a whole body before it answers, and the gateway before it. */
let taking: TestUpstream;
let chunked: Forwarder;
/** Ends the answers that the upstream has begun to think about. */
const pending: (() => void)[] = [];

beforeAll(async () => {
  p = await startPortcullis();
  upstream = await startUpstream((req, res) => {
    if (req.url === '/slow') pending.push(() => res.end('slow'));
    else res.end('fast');
  });
  f = await startForwarder({ services: { a: upstream.url } });
  taking = await startUpstream((req, res) => void req.on('end', () => res.end('taken')));
  chunked = await startForwarder({ services: { a: { at: taking.url, max_body_bytes: 0 } } });
});

afterAll(async () => {
  for (const started of [f, chunked, upstream, taking, p]) await started[Symbol.asyncDispose]();
});

const id = (correlationId: string) => ({ 'X-Correlation-ID': correlationId, Connection: 'keep-alive' });
const BROKEN = '3\r\nabc\r\nZZ\r\n';
const CHUNKED = { 'Transfer-Encoding': 'chunked' };

/** What comes back for bytes that are sent in one piece, once the slow answers have been let go. */
async function converse(url: string, bytes: string) {
  const socket = openSocket(url);
  const read = readAnswers(socket);
  socket.write(bytes);
  if (bytes.startsWith('GET /slow')) {
    await vi.waitFor(() => expect(pending.length).toBeGreaterThan(0));
    for (const end of pending.splice(0)) end();
  }
  const { answers, rest } = await read;
  return { answers: answers.map(({ status, headers }) => [status, headers['x-correlation-id']]), rest };
}

describe('a pipelined message after an unanswered request', () => {
  it.each([
    ['a WebSocket handshake', request('GET', '/nowhere', { ...id('second'), ...UPGRADE }), [404, 'second']],
    ['a CONNECT', request('CONNECT', 'a:1', id('second')), [404, 'second']],
    ['a request', request('GET', '/nowhere', { ...id('second'), Connection: 'close' }), [404, 'second']],
  ])('D2-13: %s is answered after that request', async (_what, second, expected) => {
    const { answers, rest } = await converse(p.url, request('GET', '/nope', id('first')) + second);
    expect([answers, rest]).toEqual([[[404, 'first'], expected], '']);
  });

  it('D2-13: requests wait for their turn, and reach the upstream in order', async () => {
    upstream.seen.length = 0;
    const socket = openSocket(f.url);
    const read = readAnswers(socket);
    const body = { 'Content-Length': '4', ...id('post') };
    socket.write(`${request('GET', '/slow', id('get'))}${request('POST', '/fast', body)}body`);
    socket.write(request('GET', '/last', { ...id('last'), Connection: 'close' }));
    await vi.waitFor(() => expect(pending).toHaveLength(1));
    expect(upstream.seen.map(({ url }) => url)).toEqual(['/slow']);
    for (const end of pending.splice(0)) end();
    const { answers } = await read;
    expect(answers.map(({ body: text, headers }) => [headers['x-correlation-id'], text])).toEqual([
      ['get', 'slow'],
      ['post', 'fast'],
      ['last', 'fast'],
    ]);
    expect(upstream.seen.map(({ url, body: sent }) => [url, sent])).toEqual([
      ['/slow', ''],
      ['/fast', 'body'],
      ['/last', ''],
    ]);
    expect(f.ended.slice(-3).map(({ exchange }) => exchange().audit.capture.request.totalBytes)).toEqual([0, 4, 0]);
  });

  it.each([
    ['a body that breaks', request('POST', '/fast', { ...CHUNKED, ...id('broken') }) + BROKEN, [[400, 'broken']]],
    ['bytes that are not HTTP', '\x01\x02 BAD\r\n\r\n', []],
  ])('D2-13: %s does not affect the response to that request', async (_what, second, expected) => {
    const { answers } = await converse(f.url, request('GET', '/slow', id('slow')) + second);
    expect(answers).toEqual([[200, 'slow'], ...expected]);
  });
});

describe('a response that closes its connection', () => {
  it('D2-13: is the last one, and nothing after it is read', async () => {
    upstream.seen.length = 0;
    const first = `${request('POST', '/nope', { 'Content-Length': '3', ...id('refused') })}abc`;
    const { username, password } = p.webhook;
    const body = '{"id":"behind"}';
    const webhook = request('POST', '/v2/webhooks/custodial', {
      Authorization: basic(username, password),
      'Content-Type': 'application/json',
      'Content-Length': `${body.length}`,
      ...id('behind'),
    });
    expect((await converse(p.url, `${first}${webhook}${body}`)).answers).toEqual([[404, 'refused']]);
    expect((await recordOf(p, 'refused')).status_code).toBe(404);
    const behind = await rows(p).run((k) =>
      k.selectFrom('audit_records').select('id').where('correlation_id', '=', 'behind'),
    );
    expect(behind).toEqual([]);
  });

  it('D2-13 D2-07: is the only one, even if the body of its request breaks afterwards', async () => {
    const bytes = request('POST', '/nope', { ...CHUNKED, ...id('once') }) + BROKEN;
    expect((await converse(p.url, bytes)).answers).toEqual([[404, 'once']]);
    expect((await recordsOf(p, 'once')).map(({ status_code }) => status_code)).toEqual([404]);
  });
});

describe('a malformed request', () => {
  it.each([
    ['letters beyond ASCII in the target', 'GET /health?n=\u00e9', ''],
    ['a header without a colon', 'GET /health', 'bad\r\n'],
  ])('D2-06 D2-07: with %s is answered with its correlation id, and recorded', async (what, line, field) => {
    const own = `no-request-${field.length}`;
    const bytes = `${line} HTTP/1.1\r\nHost: x\r\nX-Correlation-ID: ${own}\r\n${field}\r\n`;
    expect([what, (await converse(p.url, bytes)).answers]).toEqual([what, [[400, own]]]);
    expect(await recordOf(p, own)).toMatchObject({ status_code: 400, method: 'GET', path: '/health', headers: {} });
  });
});

describe('unanswered pipelined requests', () => {
  const pipelined = (count: number, path = '/fast') =>
    Array.from({ length: count }, (_, at) => request('GET', path, id(`waits-${at}`))).join('');
  const eventually = (check: () => unknown) => vi.waitFor(check);
  const last = request('GET', '/fast', { ...id('end'), Connection: 'close' });

  it('D2-24: are limited to 64 per connection: each is answered in order, and 64 more may follow', async () => {
    const socket = openSocket(f.url);
    const read = readAnswers(socket);
    for (let round = 0; round < 2; round += 1) {
      const before = upstream.seen.length;
      socket.write(request('GET', '/slow', id('slow')) + pipelined(63));
      await eventually(() => expect(pending).toHaveLength(1));
      for (const end of pending.splice(0)) end();
      await eventually(() => expect(upstream.seen.length - before).toBe(64));
      await eventually(() => expect(f.ended.at(-1)?.exchange().correlationId).toBe('waits-62'));
    }
    socket.write(last);
    expect((await read).answers.map(({ status }) => status)).toEqual(Array(129).fill(200));
  });

  it.each([
    ['a request', request('GET', '/fast', id('much'))],
    ['a WebSocket handshake', request('GET', '/fast', { ...id('much'), ...UPGRADE })],
  ])(
    'D2-24: are closed with their connection by %s more: the running one is aborted, and no other begins',
    async (_what, more) => {
      const [seen, ended] = [upstream.seen.length, f.ended.length];
      const socket = openSocket(f.url);
      const read = readAnswers(socket);
      socket.write(request('GET', '/slow', id('slow')));
      await eventually(() => expect(pending).toHaveLength(1));
      socket.write(pipelined(63) + more + pipelined(500));
      expect(await read).toEqual({ answers: [], interim: [], rest: '' });
      await eventually(() => expect(f.ended.length - ended).toBe(1));
      expect(f.ended.at(-1)).toMatchObject({ aborted: true });
      for (const end of pending.splice(0)) end();
      expect((await converse(f.url, last)).answers).toEqual([[200, 'end']]);
      expect(upstream.seen.slice(seen).map(({ url }) => url)).toEqual(['/slow', '/fast']);
    },
  );

  it.each([false, true])(
    'D2-24: beyond the limit only the first starts work, with a reset of the connection: %s',
    async (resets) => {
      const closed = async () =>
        (await scrape(p.service)).value('portcullis_connections_refused_total', { reason: 'pipeline' }) ?? 0;
      const [before, own] = [await closed(), `flood-${resets}`];
      const socket = openSocket(p.url).on('error', () => undefined);
      const flood = request('GET', '/health', id(own)).repeat(20_000);
      socket.pause().write(flood, () => resets && socket.resetAndDestroy());
      await eventually(async () => expect((await closed()) - before).toBe(1));
      socket.destroy();
      expect((await p.call('GET', '/health', { headers: id(`after-${own}`) })).status).toBe(200);
      await recordOf(p, `after-${own}`);
      const kept = await rows(p).run((k) =>
        k.selectFrom('audit_records').select('id').where('correlation_id', '=', own),
      );
      expect(kept).toHaveLength(1);
    },
  );
});

const closedForChunks = async () =>
  (await scrape(p.service)).value('portcullis_connections_refused_total', { reason: 'chunks' }) ?? 0;
const head = (method: string, path: string, id: string) =>
  request(method, path, {
    'Transfer-Encoding': 'chunked',
    'Content-Type': 'application/json',
    'X-Correlation-ID': id,
    Connection: 'keep-alive',
  });
const chunk = (bytes: number) => `${bytes.toString(16)}\r\n${' '.repeat(bytes)}\r\n`;
const TINY = chunk(1).repeat(60_000);

/** What a connection brings until it is closed; the rest is sent once it has brought something. */
async function bring(url: string, first: string, rest = ''): Promise<string> {
  const socket = openSocket(url).on('error', () => undefined);
  let text = '';
  socket.on('data', (data) => {
    if (text === '') socket.write(rest);
    text += String(data);
  });
  socket.write(first);
  await new Promise((resolve) => socket.once('close', resolve));
  return text;
}

describe('a body in tiny chunks', () => {
  it('D2-24: closes its connection, and is recorded as aborted by its client', async () => {
    const before = await closedForChunks();
    expect(await bring(p.url, head('POST', '/v2/oauth/token', 'tiny') + TINY)).toBe('');
    expect((await closedForChunks()) - before).toBe(1);
    expect(await recordOf(p, 'tiny')).toMatchObject({ status_code: 499, request_bytes: '4096' });
  });

  it.each([
    ['refused', 'POST', '/nope', '404'],
    ['answered', 'GET', '/health', '200'],
  ])('D2-24: closes its connection if it was %s already', async (which, method, path, status) => {
    const id = `chunks-${which}`;
    const before = await closedForChunks();
    expect(await bring(p.url, head(method, path, id), TINY)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect((await closedForChunks()) - before).toBe(1);
    expect(await recordOf(p, id)).toMatchObject({ status_code: Number(status) });
  });

  it.each([
    ['unread', 'GET', '/health', 100],
    ['refused for its length', 'POST', '/v2/oauth/token', 100],
    ['unread and long', 'GET', '/health', 2_000],
  ])('D2-24: closes its connection after a beginning that is %s', async (id, method, path, chunks) => {
    const before = await closedForChunks();
    const beginning = head(method, path, id.replaceAll(' ', '-')) + chunk(1_024).repeat(chunks);
    await bring(p.url, beginning, TINY);
    expect((await closedForChunks()) - before).toBe(1);
  });

  it('D2-24: is neither kept nor forwarded beyond 4,096 chunks', async () => {
    const [ended, seen] = [chunked.ended.length, taking.seen.length];
    await bring(chunked.url, head('POST', '/x', 'passed') + chunk(1_000_000) + TINY);
    await vi.waitFor(() => expect(chunked.ended.length - ended).toBe(1));
    expect(chunked.ended.at(-1)).toMatchObject({ aborted: true });
    expect(chunked.ended.at(-1)?.exchange().audit.capture.request.totalBytes).toBeLessThan(1_000_000 + 2 * 4_096);
    await vi.waitFor(() => expect(taking.seen[seen]).toMatchObject({ aborted: true }));
  });
});

it.each([
  ['lines of 20 bytes', 20, 20_000],
  ['chunks of 16 bytes', 16, 8_192],
  ['4,095 chunks of one byte', 1, 4_095],
])('D2-24: %s are accepted', async (_what, bytes, count) => {
  const socket = openSocket(chunked.url);
  socket.write(`${head('POST', '/x', 'honest')}${chunk(bytes).repeat(count)}0\r\n\r\n`);
  const [data] = await once(socket, 'data');
  expect(String(data)).toMatch(/^HTTP\/1.1 200 /);
  expect(taking.seen.at(-1)?.body).toHaveLength(bytes * count);
  socket.destroy();
});

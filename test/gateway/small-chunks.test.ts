import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { recordOf } from '../support/audit/records.ts';
import { type Forwarder, startForwarder, startUpstream, type TestUpstream } from '../support/gateway/forwarder.ts';
import { openSocket, request } from '../support/gateway/raw.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { scrape } from '../support/observability/scrape.ts';

let p: Portcullis;
let upstream: TestUpstream;
let f: Forwarder;

beforeAll(async () => {
  p = await startPortcullis();
  upstream = await startUpstream((req, res) => void req.on('end', () => res.end('taken')));
  f = await startForwarder({ services: { a: { at: upstream.url, max_body_bytes: 0 } } });
});
afterAll(async () => {
  await f[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await p[Symbol.asyncDispose]();
});

const closed = async () =>
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
async function converse(url: string, first: string, rest = ''): Promise<string> {
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

describe('a body in chunks of hardly any bytes', () => {
  it('D2-24: ends its connection, and is recorded as one whose client has left', async () => {
    const before = await closed();
    expect(await converse(p.url, head('POST', '/v2/oauth/token', 'tiny') + TINY)).toBe('');
    expect((await closed()) - before).toBe(1);
    expect(await recordOf(p, 'tiny')).toMatchObject({ status_code: 499, request_bytes: '4096' });
  });

  it.each([
    ['refused', 'POST', '/nope', '404'],
    ['answered', 'GET', '/health', '200'],
  ])('D2-24: ends its connection where it is %s already', async (id, method, path, status) => {
    const before = await closed();
    expect(await converse(p.url, head(method, path, id), TINY)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect((await closed()) - before).toBe(1);
    expect(await recordOf(p, id)).toMatchObject({ status_code: Number(status) });
  });

  it.each([
    ['unread', 'GET', '/health', 100],
    ['refused for its length', 'POST', '/v2/oauth/token', 100],
    ['unread and long', 'GET', '/health', 2_000],
  ])('D2-24: ends its connection behind a beginning that is %s', async (id, method, path, chunks) => {
    const before = await closed();
    const beginning = head(method, path, id.replaceAll(' ', '-')) + chunk(1_024).repeat(chunks);
    await converse(p.url, beginning, TINY);
    expect((await closed()) - before).toBe(1);
  });

  it('D2-24: is not kept, nor passed on, beyond 4,096 chunks', async () => {
    const [ended, seen] = [f.ended.length, upstream.seen.length];
    await converse(f.url, head('POST', '/x', 'passed') + chunk(1_000_000) + TINY);
    await vi.waitFor(() => expect(f.ended.length - ended).toBe(1));
    expect(f.ended.at(-1)).toMatchObject({ aborted: true });
    expect(f.ended.at(-1)?.exchange().audit.capture.request.totalBytes).toBeLessThan(1_000_000 + 2 * 4_096);
    await vi.waitFor(() => expect(upstream.seen[seen]).toMatchObject({ aborted: true }));
  });
});

it.each([
  ['lines of 20 bytes', 20, 20_000],
  ['chunks of 16 bytes', 16, 8_192],
  ['4,095 chunks of one byte', 1, 4_095],
])('D2-24: %s pass', async (_what, bytes, count) => {
  const socket = openSocket(f.url);
  socket.write(`${head('POST', '/x', 'honest')}${chunk(bytes).repeat(count)}0\r\n\r\n`);
  const [data] = await once(socket, 'data');
  expect(String(data)).toMatch(/^HTTP\/1.1 200 /);
  expect(upstream.seen.at(-1)?.body).toHaveLength(bytes * count);
  socket.destroy();
});

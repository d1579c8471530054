import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type Forwarder, startForwarder, startUpstream, type TestUpstream } from '../support/gateway/forwarder.ts';
import { begun, request, sendRaw } from '../support/gateway/raw.ts';

let upstream: TestUpstream;
let f: Forwarder;

beforeAll(async () => {
  // Says back whom it answers: an answer at the wrong place shows.
  upstream = await startUpstream((req, res) => {
    req.on('end', () => res.end(`[${req.url}]`)).resume();
  });
  f = await startForwarder({ services: { a: { at: upstream.url, connections: 1 } } });
});
afterAll(async () => {
  await f[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const EVIL = 'GET /evil HTTP/1.1\r\nHost: a\r\n\r\n';
const CHUNKS = '3\r\nabc\r\n0\r\n\r\n';

function post(...fields: string[]): string {
  return `POST /x HTTP/1.1\r\nHost: a\r\n${fields.map((field) => `${field}\r\n`).join('')}\r\n`;
}

/** Bytes of a connection, and whether what stands behind the first request is a request of its own by the book. */
// raw-http.test.ts has those that the gateway rejects itself, before there is a request to forward.
const rows: [name: string, bytes: string, isNext?: 'next'][] = [
  ['gzip before chunked', `${post('Transfer-Encoding: gzip, chunked')}${CHUNKS}${EVIL}`],
  ['chunked in HTTP/1.0', `POST /x HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${CHUNKS}${EVIL}`],
  ['a chunk longer than it says', `${post('Transfer-Encoding: chunked')}3\r\nabcd\r\n0\r\n\r\n${EVIL}`],
  ['trailers that set a length', `${post('Transfer-Encoding: chunked')}0\r\nContent-Length: 5\r\n\r\n${EVIL}`],
  [
    'an upgrade to HTTP/2',
    `GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n${EVIL}`,
  ],
  [
    'an upgrade of another kind',
    `GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n${EVIL}`,
  ],
  ['CONNECT', `CONNECT evil:80 HTTP/1.1\r\nHost: a\r\n\r\n${EVIL}`],
  ['TRACE', `TRACE /x HTTP/1.1\r\nHost: a\r\n\r\n${EVIL}`, 'next'],
  [
    'a GET with a body that looks like a request',
    `GET /x HTTP/1.1\r\nHost: a\r\nContent-Length: ${EVIL.length}\r\n\r\n${EVIL}`,
  ],
  ['a POST whose body looks like a request', `${post(`Content-Length: ${EVIL.length}`)}${EVIL}`],
  [
    'a chunk that looks like a request',
    `${post('Transfer-Encoding: chunked')}${EVIL.length.toString(16)}\r\n${EVIL}\r\n0\r\n\r\n`,
  ],
  [
    'a length that a Connection field names',
    `${post('Connection: Content-Length', `Content-Length: ${EVIL.length}`)}${EVIL}`,
  ],
  [
    'a coding that a Connection field names',
    `${post('Connection: Transfer-Encoding', 'Transfer-Encoding: chunked')}${CHUNKS}${EVIL}`,
    'next',
  ],
  ['an expectation and a body at once', `${post('Expect: 100-continue', `Content-Length: ${EVIL.length}`)}${EVIL}`],
  ['another expectation', `${post('Expect: 200-ok', 'Content-Length: 3')}abc${EVIL}`, 'next'],
  ['an underscore for a dash', `${post('Content_Length: 3', 'Content-Length: 0')}${EVIL}`, 'next'],
  ['two requests, one after the other', `${post('Content-Length: 3')}abc${EVIL}`, 'next'],
];

it.each(rows)('D2-10: %s: gateway and upstream agree where the request ends', async (_name, bytes, isNext) => {
  upstream.seen.length = 0;
  const { socket, text, isOpen } = begun(f.url, bytes);
  const answered = isNext ? /HTTP\/1\.1 [\s\S]*HTTP\/1\.1 / : /HTTP\/1\.1 (?!100)/;
  await vi.waitFor(() => expect(!isOpen() || answered.test(text())).toBe(true));
  const after = await sendRaw(f.url, request('GET', '/after'));
  expect([after.status, after.body]).toEqual([200, '[/after]']);
  socket.destroy();
  const statuses = [...text().matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
  expect(statuses.every((status) => status < 500)).toBe(true);
  const urls = upstream.seen.map(({ url }) => url);
  expect(urls.filter((url) => url === '/evil').length).toBe(isNext ? 1 : 0);
  expect(urls.at(-1)).toBe('/after');
  if (bytes.includes('gzip')) expect(urls).not.toContain('/x');
  for (const { rawHeaders } of upstream.seen) {
    const framing = rawHeaders.filter((name, at) => at % 2 === 0 && /^(content-length|transfer-encoding)$/i.test(name));
    expect(framing.length).toBeLessThan(2);
  }
});

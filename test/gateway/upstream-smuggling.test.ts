import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type Forwarder, startForwarder, startUpstream, type TestUpstream } from '../support/gateway/forwarder.ts';
import { openSocket, request, sendRaw } from '../support/gateway/raw.ts';

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
const rows: [name: string, bytes: string, isNext?: 'next'][] = [
  ['a length and chunks', `${post('Content-Length: 4', 'Transfer-Encoding: chunked')}0\r\n\r\n${EVIL}`],
  ['chunks and a length', `${post('Transfer-Encoding: chunked', 'Content-Length: 4')}0\r\n\r\n${EVIL}`],
  ['a length of nothing and chunks', `${post('Content-Length: 0', 'Transfer-Encoding: chunked')}${CHUNKS}${EVIL}`],
  ['two lengths', `${post('Content-Length: 3', `Content-Length: ${3 + EVIL.length}`)}abc${EVIL}`],
  ['the same length twice', `${post('Content-Length: 3', 'Content-Length: 3')}abc${EVIL}`],
  ['lengths in a list', `${post('Content-Length: 3, 3')}abc${EVIL}`],
  ['a length with a sign', `${post('Content-Length: +3')}abc${EVIL}`],
  ['a negative length', `${post('Content-Length: -3')}${EVIL}`],
  ['a length in hexadecimal', `${post('Content-Length: 0x3')}abc${EVIL}`],
  ['a length with a fraction', `${post('Content-Length: 3.0')}abc${EVIL}`],
  ['an empty length', `${post('Content-Length:')}${EVIL}`],
  ['a length of words', `${post('Content-Length: three')}abc${EVIL}`],
  ['a length beyond all', `${post(`Content-Length: ${'9'.repeat(30)}`)}abc${EVIL}`],
  ['a length with a space in it', `${post('Content-Length: 3 3')}abc${EVIL}`],
  ['a space before the colon of the length', `${post('Content-Length : 3')}abc${EVIL}`],
  ['a space before the colon of the coding', `${post('Transfer-Encoding : chunked')}${CHUNKS}${EVIL}`],
  ['a length with a tab in its name', `${post('Content-\tLength: 3')}abc${EVIL}`],
  ['a folded length', `${post('Content-Length:\r\n 3')}abc${EVIL}`],
  ['a folded coding', `${post('Transfer-Encoding:\r\n chunked')}${CHUNKS}${EVIL}`],
  ['a coding that is not the last', `${post('Transfer-Encoding: chunked, identity')}${CHUNKS}${EVIL}`],
  ['a coding that is none', `${post('Transfer-Encoding: xchunked')}${CHUNKS}${EVIL}`],
  ['a coding in quotes', `${post('Transfer-Encoding: "chunked"')}${CHUNKS}${EVIL}`],
  ['a coding with a control character', `${post('Transfer-Encoding: \x0bchunked')}${CHUNKS}${EVIL}`],
  ['a coding with a parameter', `${post('Transfer-Encoding: chunked;a=b')}${CHUNKS}${EVIL}`],
  ['chunked twice', `${post('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked')}${CHUNKS}${EVIL}`],
  ['chunked twice in a list', `${post('Transfer-Encoding: chunked, chunked')}${CHUNKS}${EVIL}`],
  ['identity and a length', `${post('Transfer-Encoding: identity', 'Content-Length: 3')}abc${EVIL}`],
  ['an empty coding and a length', `${post('Transfer-Encoding:', 'Content-Length: 3')}abc${EVIL}`],
  ['gzip before chunked', `${post('Transfer-Encoding: gzip, chunked')}${CHUNKS}${EVIL}`],
  ['chunked in HTTP/1.0', `POST /x HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${CHUNKS}${EVIL}`],
  ['a chunk size with a sign', `${post('Transfer-Encoding: chunked')}+3\r\nabc\r\n0\r\n\r\n${EVIL}`],
  ['a chunk size with 0x', `${post('Transfer-Encoding: chunked')}0x3\r\nabc\r\n0\r\n\r\n${EVIL}`],
  ['a chunk size with a space', `${post('Transfer-Encoding: chunked')}3 \r\nabc\r\n0\r\n\r\n${EVIL}`],
  ['a negative chunk size', `${post('Transfer-Encoding: chunked')}-1\r\nabc\r\n0\r\n\r\n${EVIL}`],
  ['a chunk size beyond all', `${post('Transfer-Encoding: chunked')}${'f'.repeat(17)}\r\nabc\r\n0\r\n\r\n${EVIL}`],
  ['an empty chunk size', `${post('Transfer-Encoding: chunked')}\r\nabc\r\n0\r\n\r\n${EVIL}`],
  ['a chunk longer than it says', `${post('Transfer-Encoding: chunked')}3\r\nabcd\r\n0\r\n\r\n${EVIL}`],
  ['a chunk size ended by a line feed alone', `${post('Transfer-Encoding: chunked')}3\nabc\r\n0\r\n\r\n${EVIL}`],
  ['a chunk ended by a line feed alone', `${post('Transfer-Encoding: chunked')}3\r\nabc\n0\r\n\r\n${EVIL}`],
  ['a chunk extension with a line feed', `${post('Transfer-Encoding: chunked')}3;a\nb\r\nabc\r\n0\r\n\r\n${EVIL}`],
  ['trailers that set a length', `${post('Transfer-Encoding: chunked')}0\r\nContent-Length: 5\r\n\r\n${EVIL}`],
  ['lines ended by a line feed alone', `POST /x HTTP/1.1\nHost: a\nContent-Length: 0\n\n${EVIL}`],
  ['a carriage return in a field', `${post('X-A: b\rTransfer-Encoding: chunked')}${CHUNKS}${EVIL}`],
  ['a line feed in a field', `${post('X-A: b\nContent-Length: 3')}abc${EVIL}`],
  ['a null byte in a field', `${post('X-A: b\0c')}${EVIL}`],
  ['a field without a colon', `${post('X-A')}${EVIL}`],
  ['a field without a name', `${post(': x')}${EVIL}`],
  ['a field that begins with a space', `POST /x HTTP/1.1\r\n Host: a\r\n\r\n${EVIL}`],
  ['two hosts', `GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n${EVIL}`],
  ['a space in the target', `GET /x /evil HTTP/1.1\r\nHost: a\r\n\r\n`],
  ['a line in the target', `GET /x\r\nX: HTTP/1.1\r\nHost: a\r\n\r\n${EVIL}`],
  ['HTTP/0.9', `GET /x\r\n\r\n${EVIL}`],
  ['HTTP/1.2', `GET /x HTTP/1.2\r\nHost: a\r\n\r\n${EVIL}`],
  ['HTTP/2 by its preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
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

it.each(rows)('D2-10: %s: both sides agree where it ends', async (_name, bytes, isNext) => {
  upstream.seen.length = 0;
  const socket = openSocket(f.url);
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  let isClosed = false;
  socket.on('error', () => undefined);
  socket.on('close', () => {
    isClosed = true;
  });
  socket.write(bytes, 'latin1');
  const answered = isNext ? /HTTP\/1\.1 [\s\S]*HTTP\/1\.1 / : /HTTP\/1\.1 (?!100)/;
  await vi.waitFor(() => expect(isClosed || answered.test(text)).toBe(true));
  const after = await sendRaw(f.url, request('GET', '/after'));
  expect([after.status, after.body]).toEqual([200, '[/after]']);
  socket.destroy();
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
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

import { randomUUID } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import { afterEach, expect, it } from 'vitest';
import { OwnerError, TransactionOwner } from '../../src/features/transactions/transaction-lookups.service.ts';
import { listening } from '../support/gateway/forwarder.ts';
import { type RawUpstream, startRawUpstream } from '../support/gateway/raw-upstream.ts';

const BEARER = 'a-token-that-nobody-may-see';
const NODE = randomUUID();
const open: AsyncDisposable[] = [];

afterEach(async () => {
  for (const one of open.splice(0)) await one[Symbol.asyncDispose]();
});

function registrationOf(id: string): object {
  return { id, collection: 'token_transactions', type: 1, node_id: NODE };
}

function ownerAt(url: string, { timeoutMs = 10_000 } = {}): TransactionOwner {
  const owner = new TransactionOwner({ url, timeoutMs, bearer: BEARER, connections: 4 });
  open.unshift({ [Symbol.asyncDispose]: () => owner.close() });
  return owner;
}

/** An owner that answers as Node does; gives the targets and bearers that came. */
async function honest(answer: RequestListener) {
  const asked: { target: string; authorization: string | undefined }[] = [];
  const server = createServer((req, res) => {
    asked.push({ target: req.url ?? '', authorization: req.headers.authorization });
    answer(req, res);
  });
  open.push({ [Symbol.asyncDispose]: async () => void server.close(() => undefined).closeAllConnections() });
  return { url: await listening(server), asked };
}

async function raw(answer: Parameters<typeof startRawUpstream>[0]): Promise<RawUpstream> {
  const upstream = await startRawUpstream(answer);
  open.push(upstream);
  return upstream;
}

const never = () => new AbortController().signal;

it('D6-20: the owner gets the percent-encoded id and the bearer token, and its response is the registration', async () => {
  const { url, asked } = await honest((req, res) => {
    res.end(JSON.stringify(registrationOf(decodeURIComponent(req.url?.slice('/base/'.length) ?? ''))));
  });
  const owner = ownerAt(`${url}/base`);
  const ids = ['plain', '../../admin', 'a/b?c=d#e', '%2e%2e', '...', 'ü😀\r\nX-Bad: 1', ' ', "'()*!~", '\\..\\'];
  for (const id of ids) {
    expect(await owner.find(id, never())).toEqual({
      id,
      nodeId: NODE,
      collection: 'token_transactions',
      type: 1,
      assetId: null,
    });
  }
  expect(asked.map(({ target }) => target)).toEqual(ids.map((id) => `/base/${encodeURIComponent(id)}`));
  expect(new Set(asked.map(({ authorization }) => authorization))).toEqual(new Set([`Bearer ${BEARER}`]));
});

it('D6-20: an id that percent-encoding cannot protect (. or ..) is unknown, without a request', async () => {
  const { url, asked } = await honest((_req, res) => res.end('{}'));
  const owner = ownerAt(url);
  for (const id of ['.', '..']) expect(await owner.find(id, never())).toBeUndefined();
  expect(asked).toEqual([]);
});

it('D6-20: a 404 means that the owner does not know the id', async () => {
  const { url } = await honest((_req, res) => res.writeHead(404).end('whatever'));
  expect(await ownerAt(url).find('id', never())).toBeUndefined();
});

const OK = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n';
const valid = (more: object = {}) => JSON.stringify({ ...registrationOf('id'), ...more });
const whole = (body: string, head = OK) => `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const huge = ' '.repeat(64 * 1024);

const hostile: [name: string, answer: string, fault: RegExp][] = [
  ['another id', whole(valid({ id: 'other' })), /another id/],
  ['malformed JSON', whole('{"id": "id",'), /not a registration/],
  ['no object', whole('null'), /not a registration/],
  ['malformed UTF-8', whole('{"id":"id","x":"\xff"}'), /not a registration|closed|SOCKET/],
  ['no node', whole(JSON.stringify({ id: 'id', collection: 'token_transactions', type: 1 })), /not a registration/],
  ['an unknown collection', whole(valid({ collection: 'x' })), /not a registration/],
  ['an empty body', whole(''), /not a registration/],
  ['500', whole(valid(), 'HTTP/1.1 500 Oops\r\n'), /status 500/],
  ['204', 'HTTP/1.1 204 No Content\r\n\r\n', /status 204/],
  ['401', whole('', 'HTTP/1.1 401 Unauthorized\r\n'), /status 401/],
  ['a declared answer over 64 KiB', whole(`${valid()}${huge}`), /more than 65536 bytes/],
  ['a 404 over 64 KiB', whole(`${huge}${huge}`, 'HTTP/1.1 404 Not Found\r\n'), /more than 65536 bytes/],
  ['bytes that are no HTTP', 'SSH-2.0-OpenSSH_9.6\r\n\r\n', /no answer/],
  ['a head without end', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(128 * 1024)}`, /no answer/],
  ['a compressed answer', whole(valid(), `${OK}Content-Encoding: gzip\r\n`).replace(valid(), '\x1f\x8b\x08'), /./],
];

it.each(hostile)(
  'D6-20: a response with %s is an OwnerError, which does not contain the bearer token',
  async (_n, text, fault) => {
    const upstream = await raw((socket) => socket.end(Buffer.from(text, 'latin1')));
    const failure = await ownerAt(upstream.url)
      .find('id', never())
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(OwnerError);
    expect(String(failure)).toMatch(fault);
    expect(JSON.stringify([String(failure), failure])).not.toContain(BEARER);
  },
);

it('D6-20: a redirect is not followed, so the bearer token goes nowhere else', async () => {
  const elsewhere = await honest((_req, res) => res.end(valid()));
  const { url } = await honest((_req, res) => res.writeHead(302, { location: `${elsewhere.url}/id` }).end());
  await expect(ownerAt(url).find('id', never())).rejects.toThrow(/status 302/);
  expect(elsewhere.asked).toEqual([]);
});

it('D6-20: an endless response is aborted at the size limit', async () => {
  const upstream = await raw((socket) => {
    socket.write(`${OK}Transfer-Encoding: chunked\r\n\r\n`);
    const more = () => socket.write(`4000\r\n${' '.repeat(0x4000)}\r\n`, (error) => error ?? setImmediate(more));
    more();
  });
  await expect(ownerAt(upstream.url).find('id', never())).rejects.toThrow(/more than 65536 bytes/);
});

it.each([
  ['does not respond', () => undefined],
  [
    'stops in the middle of its response',
    (socket: { write(text: string): unknown }) => socket.write(`${OK}Content-Length: 9\r\n\r\n{`),
  ],
])('D6-20: a request to an owner that %s times out', async (_name, answer) => {
  const upstream = await raw(answer);
  await expect(ownerAt(upstream.url, { timeoutMs: 50 }).find('id', never())).rejects.toThrow(/in time/);
});

it('D6-20: an unreachable owner is an error', async () => {
  const { url } = await honest(() => undefined);
  await open.pop()?.[Symbol.asyncDispose]();
  await expect(ownerAt(url).find('id', never())).rejects.toThrow(/ECONNREFUSED/);
});

it('D6-20: an aborted request is rejected with the reason of its signal', async () => {
  const stop = new AbortController();
  const upstream = await raw(() => stop.abort(new Error('stopping')));
  await expect(ownerAt(upstream.url).find('id', stop.signal)).rejects.toThrow('stopping');
});

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { REQUEST_BYTES } from '../../src/platform/held-memory.ts';
import { startForwarder, startUpstream } from '../support/gateway/forwarder.ts';
import { begun, openSocket, readAnswer, request, sendRaw, UPGRADE, watched } from '../support/gateway/raw.ts';
import { beforeTests } from '../support/harness/before-tests.ts';

type Handler = (req: IncomingMessage, res: ServerResponse) => void;

let handle: Handler;
const upstream = beforeTests(() => startUpstream((req, res) => handle(req, res)));
const f = beforeTests(() =>
  startForwarder({ services: { plain: { at: upstream.url, max_body_bytes: 0, websockets: 1 } } }),
);

describe('an upstream response', () => {
  it('D2-10: its head is passed on before its body begins', async () => {
    let res: ServerResponse | undefined;
    handle = (_req, answer) => {
      res = answer;
      answer.setHeader('Content-Length', 2);
      answer.flushHeaders();
    };
    const got = begun(f.url, request('GET', '/x'));
    const { socket } = got;
    await vi.waitFor(() => expect(got.text()).toContain('\r\n\r\n'));
    res?.end('ok');
    await vi.waitFor(() => expect(got.text()).toMatch(/ok$/));
    socket.destroy();
  });

  it('D2-10: each event of a stream is passed on as it is sent, and the record is written when it ends', async () => {
    let res: ServerResponse | undefined;
    handle = (_req, answer) => {
      res = answer;
      answer.writeHead(200, { 'content-type': 'text/event-stream' });
      answer.write('data: 1\n\n');
    };
    const before = f.ended.length;
    const got = begun(f.url, request('GET', '/x', { Accept: 'text/event-stream' }));
    for (const event of [2, 3]) {
      await vi.waitFor(() => expect(got.text()).toContain(`data: ${event - 1}\n\n`));
      res?.write(`data: ${event}\n\n`);
    }
    await vi.waitFor(() => expect(got.text()).toContain('data: 3\n\n'));
    expect(f.ended.length).toBe(before);
    res?.end();
    await vi.waitFor(() => expect(got.text()).toMatch(/0\r\n\r\n$/));
    expect(f.ended.slice(before)).toMatchObject([{ aborted: false, status: 200 }]);
    expect(String(f.ended[before]?.exchange().audit.capture.response.content)).toBe(
      'data: 1\n\ndata: 2\n\ndata: 3\n\n',
    );
  });

  it('D2-10: the upstream pauses while the client does not read, and resumes when it does', async () => {
    let isOver = false;
    let sent = 0;
    handle = (_req, res) => {
      const write = () => {
        while (!isOver) {
          sent += 65_536;
          if (!res.write(Buffer.alloc(65_536))) return void res.once('drain', write);
        }
        res.end();
      };
      write();
    };
    const socket = openSocket(f.url);
    socket.write(request('GET', '/x'));
    await once(socket, 'readable');
    let before = -1;
    // Full buffers everywhere, however large those of the kernel are: nothing more is sent.
    await vi.waitFor(
      () => {
        const isStill = before === sent;
        before = sent;
        expect(isStill).toBe(true);
      },
      { interval: 200 },
    );
    isOver = true;
    let bytes = 0;
    for await (const chunk of socket) bytes += chunk.length;
    expect(bytes).toBeGreaterThan(sent);
  });

  it('D2-10: early hints are passed on only to a client that supports them', async () => {
    handle = (_req, res) => {
      res.writeEarlyHints({ link: '</a.css>; rel=preload' }, () => res.end('ok'));
    };
    const got = watched(f.url);
    const { socket: modern } = got;
    modern.write(request('GET', '/x'));
    await vi.waitFor(() => expect(got.isOpen()).toBe(false));
    expect(got.text()).toMatch(
      /^HTTP\/1\.1 103 Early Hints\r\nlink: <\/a\.css>; rel=preload\r\n\r\nHTTP\/1\.1 200 OK\r\n/,
    );
    const oldGot = watched(f.url);
    const { socket: old } = oldGot;
    old.write('GET /x HTTP/1.0\r\nHost: a\r\n\r\n');
    await vi.waitFor(() => expect(oldGot.isOpen()).toBe(false));
    expect(oldGot.text()).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(oldGot.text()).toMatch(/\r\n\r\nok$/);
  });

  it.each([
    ['eight of them are passed on', 20, 8],
    ['16,384 characters of them are passed on, and charged', 6_000, 2],
  ])('D2-10 D6-25: of a thousand interim responses %s, and then the response', async (_what, length, passed) => {
    const hint = `HTTP/1.1 103 Early Hints\r\nX-Hint: ${'a'.repeat(length)}\r\n\r\n`;
    let service: Socket | undefined;
    handle = ({ socket }) => {
      service = socket;
      socket.write(hint.repeat(1_000));
    };
    const got = watched(f.url);
    got.socket.write(request('GET', '/x'));
    const statuses = () => got.text().match(/(?<=^HTTP\/1.1 )\d+/gm);
    await vi.waitFor(() => expect(statuses()).toHaveLength(passed));
    expect(f.memory.bytes).toBeGreaterThan(REQUEST_BYTES + passed * length);
    service?.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    await vi.waitFor(() => expect(got.isOpen()).toBe(false), { timeout: 5_000 });
    expect(statuses()).toEqual([...Array(passed).fill('103'), '200']);
    expect(got.text()).toMatch(/\r\n\r\nok$/);
  });

  it('D2-10: trailers are dropped', async () => {
    handle = (_req, res) => {
      res.writeHead(200, { Trailer: 'X-Sum' });
      res.write('ok');
      res.addTrailers({ 'X-Sum': '1' });
      res.end();
    };
    const got = begun(f.url, request('GET', '/x', { TE: 'trailers' }));
    await vi.waitFor(() => expect(got.isOpen()).toBe(false));
    expect(got.text().toLowerCase()).not.toContain('x-sum');
    expect(got.text()).toMatch(/2\r\nok\r\n0\r\n\r\n$/);
  });
});

describe('an upstream request', () => {
  it('D2-10: its body is forwarded while it arrives, with new framing', async () => {
    handle = (req, res) => req.on('end', () => res.end('done'));
    const before = upstream.seen.length;
    const socket = openSocket(f.url);
    socket.write(
      'POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3;ext=1\r\nabc\r\n',
    );
    await vi.waitFor(() => expect(upstream.seen[before]?.body).toBe('abc'));
    socket.write('2\r\nde\r\n0\r\nX-Trailer: 1\r\n\r\n');
    const got = await readAnswer(socket);
    expect(got).toMatchObject({ status: 200, body: 'done' });
    expect(upstream.seen[before]).toMatchObject({ body: 'abcde', headers: { 'transfer-encoding': 'chunked' } });
    expect(upstream.seen[before]?.headers).not.toHaveProperty('x-trailer');
  });

  it('D2-10: 100 Continue is sent once the upstream is ready for the body', async () => {
    handle = (req, res) => req.on('end', () => res.end('done'));
    const got = begun(
      f.url,
      'POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n',
    );
    const { socket } = got;
    await vi.waitFor(() => expect(got.text()).toBe('HTTP/1.1 100 Continue\r\n\r\n'));
    socket.write('ok');
    await vi.waitFor(() => expect(got.isOpen()).toBe(false));
    expect(got.text().match(/HTTP\/1\.1 /g)).toHaveLength(2);
    expect(got.text()).toContain('HTTP/1.1 200 OK');
    expect(upstream.seen.at(-1)?.headers).not.toHaveProperty('expect');
  });

  it('D2-10: a response sent before the end of the request body arrives complete, and closes the connection', async () => {
    handle = (_req, res) => res.writeHead(409).end('early');
    const { socket } = begun(f.url, 'POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nabc');
    const got = await readAnswer(socket);
    expect(got).toMatchObject({ status: 409, headers: { connection: 'close' }, body: '5\r\nearly\r\n0\r\n\r\n' });
  });

  it('D2-10: an early response arrives in full at a client that keeps sending', async () => {
    const text = 'a'.repeat(300_000);
    handle = (_req, res) => res.writeHead(409).end(text);
    for (let round = 0; round < 5; round++) {
      const got = await fetch(`${f.url}/x`, { method: 'POST', body: Buffer.alloc(4_000_000) });
      expect([got.status, (await got.text()).length]).toEqual([409, text.length]);
    }
  });

  it.each(['GET', 'DELETE'])('D2-10: a %s may have a body, and gets none if it had none', async (method) => {
    handle = (req, res) => req.on('end', () => res.end('done')).resume();
    const length = await sendRaw(f.url, `${request(method, '/x', { 'Content-Length': '2' })}ok`);
    expect([length.status, upstream.seen.at(-1)?.body]).toEqual([200, 'ok']);
    await sendRaw(f.url, request(method, '/x'));
    expect(upstream.seen.at(-1)?.headers).not.toHaveProperty('transfer-encoding');
    expect(upstream.seen.at(-1)?.headers).not.toHaveProperty('content-length');
  });

  it('D2-10: a POST without a body has Content-Length: 0', async () => {
    handle = (_req, res) => res.end('done');
    expect((await sendRaw(f.url, request('POST', '/x', { 'Content-Length': '0' }))).status).toBe(200);
    expect(upstream.seen.at(-1)?.headers).toMatchObject({ 'content-length': '0' });
  });
});

describe('a WebSocket', () => {
  const sockets = new WebSocketServer({ noServer: true });

  beforeAll(() => {
    upstream.server.on('upgrade', (req, socket, head) => {
      upstream.seen.push({ ...req, url: req.url ?? '', method: 'GET', headers: req.headers } as never);
      if (req.url === '/refused') return void socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno');
      sockets.handleUpgrade(req, socket, head, (accepted) => {
        accepted.send('welcome');
        accepted.on('message', (data, isBinary) => accepted.send(data, { binary: isBinary }));
      });
    });
  });

  const place = (path: string) => `${f.url.replace('http', 'ws')}${path}`;

  it('D2-10 D2-06: is passed through with the headers of both sides, and leaves one record when it closes', async () => {
    const before = f.ended.length;
    const socket = new WebSocket(place('/live?a=1'), ['chat'], { headers: { authorization: 'Bearer abc' } });
    const messages: string[] = [];
    socket.on('message', (data) => messages.push(String(data)));
    const [[response]] = (await Promise.all([once(socket, 'upgrade'), once(socket, 'open')])) as [
      [IncomingMessage],
      [],
    ];
    socket.send('x'.repeat(200_000));
    await vi.waitFor(() => expect(messages.map(({ length }) => length)).toEqual([7, 200_000]));
    expect([socket.protocol, response.headers['x-correlation-id']]).toEqual([
      'chat',
      expect.stringMatching(/^[0-9a-f-]{36}$/),
    ]);
    expect(upstream.seen.at(-1)).toMatchObject({
      url: '/live?a=1',
      headers: {
        connection: 'upgrade',
        upgrade: 'websocket',
        authorization: 'Bearer abc',
        'x-correlation-id': response.headers['x-correlation-id'],
        'x-forwarded-for': '127.0.0.1',
      },
    });
    expect([f.ended.length, f.upstream('plain').sockets.held()]).toEqual([before, 1]);
    socket.close(4000, 'bye');
    expect(await once(socket, 'close')).toEqual([4000, Buffer.from('bye')]);
    await vi.waitFor(() => expect(f.upstream('plain').sockets.held()).toBe(0));
    expect(f.ended.slice(before)).toMatchObject([{ aborted: false, status: 101 }]);
  });

  it('D2-10: that the upstream rejects is rejected with its response', async () => {
    const socket = new WebSocket(place('/refused'));
    const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
    expect(response.statusCode).toBe(403);
    expect(String(await response.toArray())).toBe('no');
    await vi.waitFor(() => expect(f.upstream('plain').sockets.held()).toBe(0));
  });

  it.each([
    ['Content-Length', '5', 'abcde'],
    ['Transfer-Encoding', 'chunked', '5\r\nabcde\r\n0\r\n\r\n'],
  ])('D2-10 D2-13: with a body (%s: %s) never reaches the upstream', async (field, value, body) => {
    const before = upstream.seen.length;
    const got = await sendRaw(f.url, request('GET', '/live', { ...UPGRADE, [field]: value }) + body);
    expect([got.status, JSON.parse(got.body).errors]).toEqual([
      400,
      [{ path: field, message: 'must be absent: an upgrade request has no body' }],
    ]);
    expect(upstream.seen.length).toBe(before);
  });

  it('D2-10: is rejected beyond the limit; if one side is lost the other is closed', async () => {
    const first = new WebSocket(place('/live'));
    await once(first, 'open');
    const second = new WebSocket(place('/live'));
    const [, response] = (await once(second, 'unexpected-response')) as [unknown, IncomingMessage];
    expect([response.statusCode, response.headers['retry-after']]).toEqual([503, '1']);
    response.resume();
    const [theirs] = sockets.clients;
    if (!theirs) throw new Error('there is one');
    first.terminate();
    await once(theirs, 'close');
    const third = new WebSocket(place('/live'));
    await once(third, 'open');
    for (const client of sockets.clients) client.terminate();
    expect(await once(third, 'close')).toEqual([1006, Buffer.alloc(0)]);
  });

  it('D2-10 D1-13: is closed on both sides by a stop', async () => {
    await vi.waitFor(() => expect(f.upstream('plain').sockets.held()).toBe(0));
    const socket = new WebSocket(place('/live'));
    await once(socket, 'open');
    const [theirs] = sockets.clients;
    if (!theirs) throw new Error('there is one');
    f.upstreams.stopStreams();
    await Promise.all([once(socket, 'close'), once(theirs, 'close')]);
    await vi.waitFor(() => expect(f.upstream('plain').streams.size).toBe(0));
  });
});

import { once } from 'node:events';
import { Agent, createServer, get, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { closeGracefully, listen } from '../../src/app/listen.ts';
import { baseUrlOf } from '../../src/lib/ip-address.ts';

const LARGE = 30 * 1024 * 1024;
const LATE_MS = 60_000;

async function listening(server: Server): Promise<number> {
  await listen(server, { host: '127.0.0.1', port: 0, variable: 'PORT' });
  return (server.address() as AddressInfo).port;
}

async function answerOf(port: number, agent: Agent): Promise<IncomingMessage> {
  const [response] = await once(get({ port, host: '127.0.0.1', agent }), 'response');
  return response;
}

async function bytesOf(response: IncomingMessage): Promise<number> {
  let bytes = 0;
  for await (const chunk of response) bytes += (chunk as Buffer).length;
  return bytes;
}

it('D1-13: a shutdown waits until the client has read a complete response', async () => {
  const server = createServer((_req, res) => res.end(Buffer.alloc(LARGE)));
  const agent = new Agent({ keepAlive: true });
  const response = await answerOf(await listening(server), agent);
  const closed = closeGracefully(server, LATE_MS);
  expect(await bytesOf(response)).toBe(LARGE);
  await closed;
  agent.destroy();
});

it('D1-13: a shutdown closes idle connections, and busy ones after a response with Connection: close', async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const server = createServer((req, res) => {
    if (req.url === '/slow') void released.then(() => res.end('late'));
    else res.end('now');
  });
  const port = await listening(server);
  const agent = new Agent({ keepAlive: true });
  await bytesOf(await answerOf(port, agent));
  const slow = once(get({ port, host: '127.0.0.1', path: '/slow', agent: new Agent({ keepAlive: true }) }), 'response');
  await once(server, 'request');
  const idle = connect(port, '127.0.0.1');
  await once(idle, 'connect');
  const closed = closeGracefully(server, LATE_MS);
  await once(idle.resume(), 'close');
  release();
  const [response] = (await slow) as [IncomingMessage];
  expect(response.headers.connection).toBe('close');
  expect(await bytesOf(response)).toBe(4);
  await closed;
  agent.destroy();
});

it('D1-13: requests sent on idle connections just before a shutdown are answered with Connection: close', async () => {
  const server = createServer((_req, res) => res.end('heard'));
  const port = await listening(server);
  const agents = Array.from({ length: 5 }, () => new Agent({ keepAlive: true }));
  for (const agent of agents) await bytesOf(await answerOf(port, agent));
  const asked = agents.map((agent) => answerOf(port, agent));
  const closed = closeGracefully(server, LATE_MS);
  for (const response of await Promise.all(asked)) {
    expect([await bytesOf(response), response.headers.connection]).toEqual([5, 'close']);
  }
  await closed;
});

it('D1-13: a request after a keep-alive response in progress at the shutdown is answered with Connection: close', async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const server = createServer((req, res) => {
    if (req.url === '/behind') {
      res.end('heard');
      return;
    }
    res.writeHead(200, { 'Content-Length': 3 }).write('be');
    void released.then(() => res.end('!'));
  });
  const socket = connect(await listening(server), '127.0.0.1');
  socket.write('GET /begun HTTP/1.1\r\nHost: here\r\n\r\n');
  const [begun] = await once(socket, 'data');
  expect(`${begun}`).toContain('Connection: keep-alive');
  const closed = closeGracefully(server, LATE_MS);
  release();
  expect(`${await once(socket, 'data')}`).toBe('!');
  socket.write('GET /behind HTTP/1.1\r\nHost: here\r\n\r\n');
  const [behind] = await once(socket, 'data');
  expect(`${behind}`).toMatch(/^HTTP\/1.1 200 OK.*Connection: close.*heard$/s);
  await closed;
});

it('a request that offers an upgrade is answered normally when the server has no upgrade handler', async () => {
  const server = createServer((_req, res) => res.end('as ever'));
  const port = await listening(server);
  const headers = {
    Connection: 'Upgrade, HTTP2-Settings',
    Upgrade: 'h2c',
    'HTTP2-Settings': 'AAMAAABkAAQAoAAAAAIAAAAA',
  };
  const [response] = (await once(get({ port, host: '127.0.0.1', headers }), 'response')) as [IncomingMessage];
  expect([response.statusCode, await bytesOf(response)]).toEqual([200, 7]);
  await closeGracefully(server, LATE_MS);
});

it('at the deadline open requests and upgraded connections are cut, and not before', async () => {
  const server = createServer(() => undefined);
  server.on('upgrade', (_req, socket) => {
    socket.on('error', () => undefined);
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n');
  });
  const port = await listening(server);
  const upgraded = connect(port, '127.0.0.1');
  upgraded.write('GET / HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n');
  await once(upgraded, 'data');
  const hanging = get({ port, host: '127.0.0.1' }).on('error', () => undefined);
  await once(server, 'request');
  const ends = Promise.all([
    once(upgraded.resume(), 'close'),
    new Promise((resolve) => hanging.once('close', resolve)),
  ]);
  let isClosed = false;
  const closed = closeGracefully(server, 50).then(() => {
    isClosed = true;
  });
  await new Promise(setImmediate);
  expect(isOpen(upgraded)).toBe(true);
  expect(isClosed).toBe(false);
  await Promise.all([closed, ends]);
});

function isOpen(socket: Socket): boolean {
  return !socket.destroyed && socket.writable;
}

it.each([
  ['127.0.0.1', 'http://127.0.0.1:80'],
  ['::1', 'http://[::1]:80'],
  ['gate.example', 'http://gate.example:80'],
])('the base URL of %s is %s', (host, url) => {
  expect(baseUrlOf(host, 80)).toBe(url);
});

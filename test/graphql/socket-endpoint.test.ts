import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { parse } from 'yaml';
import { gatewayFile } from '../support/gateway/gateway-file.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';

const SHIPPED = parse(readFileSync(join(import.meta.dirname, '../../gateway.yaml'), 'utf8'));
const QUERY = '{ me { subject } }';

let p: Portcullis;
let file: Awaited<ReturnType<typeof gatewayFile>>;
const open: WebSocket[] = [];

beforeAll(async () => {
  file = await gatewayFile({});
  p = await startPortcullis({ env: { GATEWAY_CONFIG: file.path } });
});
afterEach(() => {
  for (const socket of open.splice(0)) socket.terminate();
});
afterAll(async () => {
  await p[Symbol.asyncDispose]();
  await file[Symbol.asyncDispose]();
});

/** Puts these settings of `/graphql` in force; undefined: there is none. */
async function asks(settings: object | undefined): Promise<void> {
  const others = SHIPPED.endpoints.filter(({ path }: { path: string }) => path !== '/graphql');
  const [shipped] = SHIPPED.endpoints.filter(({ path }: { path: string }) => path === '/graphql');
  const endpoints = settings === undefined ? others : [...others, { ...shipped, ...settings }];
  await writeFile(file.path, JSON.stringify({ ...SHIPPED, endpoints }));
  await p.service.reload();
}

/** A socket of a token, once its first message is answered, and the code that it was closed with, if it was. */
async function connect(token: string): Promise<{ socket: WebSocket; code: number | undefined }> {
  const socket = new WebSocket(`${p.url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws');
  open.push(socket);
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }));
  const code = await Promise.race([
    once(socket, 'message').then(() => undefined),
    once(socket, 'close').then(([closed]) => Number(closed)),
  ]);
  return { socket, code };
}

/** What an operation on a socket is answered with: its type, or the code of its error. */
async function ask(socket: WebSocket): Promise<string> {
  const id = randomUUID();
  const { promise, resolve } = Promise.withResolvers<{ type: string; payload: { extensions: { code: string } }[] }>();
  socket.on('message', (data) => {
    const message = JSON.parse(String(data));
    if (message.id === id) resolve(message);
  });
  socket.send(JSON.stringify({ type: 'subscribe', id, payload: { query: QUERY } }));
  const { type, payload } = await promise;
  return (type === 'error' && payload[0]?.extensions.code) || type;
}

const statusOf = async (token: string) => (await p.call('POST', '/graphql', { token, json: { query: QUERY } })).status;
const tokenOf = (tokenClass: 'user' | 'legacy' | 'discover') =>
  signed(p, apiClaims(p), { secret: p.service.context.secrets.jwt[tokenClass].current });

/** What gateway.yaml asks, the class of a token with accounts:read, and what HTTP and a socket answer it with. */
const rows: [settings: object, tokenClass: 'user' | 'legacy' | 'discover', status: number, code: number | undefined][] =
  [
    [{}, 'user', 200, undefined],
    [{}, 'legacy', 200, undefined],
    [{}, 'discover', 401, 4401],
    [{ tokens: ['user'] }, 'user', 200, undefined],
    [{ tokens: ['user'] }, 'legacy', 401, 4401],
    [{ tokens: ['legacy'] }, 'user', 401, 4401],
    [{ tokens: ['discover'] }, 'discover', 200, undefined],
    [{ permissions: ['accounts:read'] }, 'user', 200, undefined],
    [{ permissions: ['accounts:read', 'audit:read'] }, 'user', 403, 4403],
    [{ permissions: ['audit:read'], tokens: ['legacy'] }, 'user', 401, 4401],
  ];

describe('what gateway.yaml asks of /graphql', () => {
  it.each(rows)('DG-14: %j answers a token of class %s on HTTP with %i, and on a socket with %s', async (...row) => {
    const [settings, tokenClass, status, code] = row;
    await asks(settings);
    const token = tokenOf(tokenClass);
    expect(await statusOf(token)).toBe(status);
    const connected = await connect(token);
    expect(connected.code).toBe(code);
    if (code === undefined) expect(await ask(connected.socket)).toBe('next');
  });

  it('DG-14 D2-16: holds for each operation of an open socket from the moment that it is in force', async () => {
    await asks({});
    const { socket } = await connect(tokenOf('user'));
    expect(await ask(socket)).toBe('next');
    const steps: [settings: object | undefined, answer: string][] = [
      [{ permissions: ['audit:read'] }, 'FORBIDDEN'],
      [{ tokens: ['legacy'] }, 'UNAUTHENTICATED'],
      [undefined, 'UNAUTHENTICATED'],
      [{ permissions: ['accounts:read'] }, 'next'],
    ];
    for (const [settings, answer] of steps) {
      await asks(settings);
      expect([settings, await ask(socket)]).toEqual([settings, answer]);
    }
  });
});

import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { watched } from '../support/gateway/raw.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';

let p: Portcullis;
beforeAll(async () => {
  p = await startPortcullis();
});
afterAll(() => p[Symbol.asyncDispose]());

const BODY = 1_000_000;
const MOST = 64 * 1_048_576;
const BLANK = Buffer.alloc(BODY, ' ');
const OPERATIONS = Buffer.from('--b\r\nContent-Disposition: form-data; name="operations"\r\n\r\n'.padEnd(BODY));
const WAIT = { timeout: 10_000 };
const JSON_TYPE = 'Content-Type: application/json\r\n';

interface Half {
  socket: Socket;
  answer(): string;
}

/** Sends a request but for the last byte of its body. */
async function half(headers: string, body = BLANK): Promise<Half> {
  const { socket, text: answer } = watched(p.url);
  await once(socket, 'connect');
  const head = `POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Length: ${BODY}\r\n${headers}\r\n`;
  socket.write(head);
  await new Promise((resolve) => socket.write(body.subarray(0, BODY - 1), resolve));
  return { socket, answer };
}

it('D7-13: incomplete bodies of a tenant take at most 64 MiB; the oldest of more are refused, and complete ones are not', async () => {
  const authorization = `Authorization: Bearer ${await p.clientToken()}\r\n`;
  const other = `Authorization: Bearer ${await p.clientToken(p.demo.other_node.client)}\r\n`;
  const halves: Half[] = [];
  try {
    halves.push(await half(JSON_TYPE + other));
    for (let at = 0; at < Math.floor(MOST / BODY) + 2; at += 1) halves.push(await half(JSON_TYPE + authorization));
    const [others, ...own] = halves;
    await vi.waitFor(
      () => expect(own.filter(({ answer }) => answer().startsWith('HTTP/1.1 503'))).toHaveLength(2),
      WAIT,
    );
    for (const { answer, socket } of own.slice(0, 2)) {
      expect(answer()).toContain('"message":"service_unavailable"');
      await vi.waitFor(() => expect(socket.closed).toBe(true), WAIT);
    }
    expect(others?.answer()).toBe('');
    expect(own.slice(2).map(({ answer }) => answer())).toEqual(own.slice(2).map(() => ''));
    const { status } = await p.call('GET', '/v1/accounts', {
      headers: { authorization: authorization.slice(15).trim() },
    });
    expect(status).toBe(200);
    const query = JSON.stringify({ query: '{ me { subject } }' }).padEnd(BODY);
    expect(
      (
        await p.call('POST', '/graphql', {
          token: await p.clientToken(),
          headers: { 'content-type': 'application/json' },
          body: query,
        })
      ).status,
    ).toBe(200);
  } finally {
    for (const { socket } of halves) socket.destroy();
  }
});

it('what is refused, complete or given up counts no more', async () => {
  const token = await p.clientToken();
  const authorization = `Authorization: Bearer ${token}\r\n`;
  for (let round = 0; round < 3; round += 1) {
    const halves = await Promise.all(Array.from({ length: 30 }, () => half(JSON_TYPE + authorization)));
    expect(halves.map(({ answer }) => answer())).toEqual(halves.map(() => ''));
    for (const [at, { socket }] of halves.entries()) {
      if (at % 2) socket.destroy();
      else {
        socket.write(' ');
        await once(socket, 'data');
        socket.destroy();
      }
    }
  }
});

it('D7-13: forms count until their file begins', async () => {
  const authorization = `Authorization: Bearer ${await p.clientToken()}\r\n`;
  const boundary = 'Content-Type: multipart/form-data; boundary=b\r\n';
  const halves: Half[] = [];
  try {
    for (let at = 0; at < Math.floor(MOST / BODY) + 2; at += 1)
      halves.push(await half(authorization + boundary, OPERATIONS));
    await vi.waitFor(
      () =>
        expect(halves.map(({ answer }) => answer().startsWith('HTTP/1.1 503'))).toEqual(
          halves.map((_half, at) => at < 2),
        ),
      WAIT,
    );
  } finally {
    for (const { socket } of halves) socket.destroy();
  }
});

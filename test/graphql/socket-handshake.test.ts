import { describe, expect, it } from 'vitest';
import { recordOf } from '../support/audit/records.ts';
import { openSocket, type RawAnswer, request, sendRaw } from '../support/gateway/raw.ts';
import { openStream } from '../support/graphql/event-reader.ts';
import { socketClient } from '../support/graphql/sockets.ts';
import { usePortcullis } from '../support/harness.ts';
import { notify } from '../support/realtime/live.ts';

const p = usePortcullis();

const UPGRADE = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==',
  Origin: 'https://app.example',
};

const PROTOCOL = 'Sec-WebSocket-Protocol';
const EXTENSIONS = 'Sec-WebSocket-Extensions';

const REFUSED: [field: string, value: string, behind: string][] = [
  [PROTOCOL, 'a,,b', ''],
  [PROTOCOL, 'a a', ''],
  [PROTOCOL, '', ''],
  [PROTOCOL, 'a,', ''],
  [PROTOCOL, 'graphql-transport-ws, graphql-transport-ws', ''],
  [EXTENSIONS, 'permessage-deflate; x="', ''],
  [EXTENSIONS, 'permessage-deflate;', ''],
  [EXTENSIONS, '', ''],
  ['Content-Length', '5', 'abcde'],
  ['Content-Length', '5', ''],
  ['Transfer-Encoding', 'chunked', '5\r\nabcde\r\n0\r\n\r\n'],
  ['Transfer-Encoding', 'chunked', 'ZZZ\r\n'],
];

describe('a WebSocket handshake', () => {
  it.each([
    ['an invalid token', '/graphql', { Authorization: 'Bearer nonsense' }, 401],
    ['an unknown path', '/elsewhere', {}, 404],
  ])('DG-08: with %s is rejected before the upgrade', async (_what, path, headers, status) => {
    expect(await sendRaw(p.url, request('GET', path, { ...UPGRADE, ...headers }))).toMatchObject({ status });
  });

  it.each(REFUSED)('D2-06 D2-07 D2-13: with %s: %s is rejected and recorded as other requests are', async (...row) => {
    const [field, value, behind] = row;
    const id = `handshake-${REFUSED.findIndex((other) => other.every((cell, at) => cell === row[at]))}`;
    const head = request('GET', '/graphql', { ...UPGRADE, 'X-Correlation-ID': id, [field]: value });
    const { status, headers, body }: RawAnswer = await sendRaw(p.url, head + behind);
    expect(status).toBe(400);
    expect(headers).toMatchObject({
      'x-correlation-id': id,
      'content-type': 'application/json; charset=utf-8',
      'access-control-allow-origin': expect.any(String),
    });
    expect(JSON.parse(body)).toMatchObject({ code: -1, message: 'invalid_request', errors: [{ path: field }] });
    expect(await recordOf(p, id)).toMatchObject({ status_code: 400, aborted: false });
  });

  it.each([
    ['no subprotocol', {}],
    ['several subprotocols', { [PROTOCOL]: 'a , graphql-transport-ws,b' }],
    ['an extension', { [EXTENSIONS]: 'permessage-deflate; client_max_window_bits; x = "a\\b", other' }],
    ['an empty body', { 'Content-Length': '0' }],
  ])('D2-16: with %s is accepted', async (_what, headers) => {
    const socket = openSocket(p.url);
    socket.write(request('GET', '/graphql', { ...UPGRADE, ...headers }));
    const [first] = await new Promise<[Buffer]>((resolve) => socket.once('data', (data: Buffer) => resolve([data])));
    socket.destroy();
    expect(String(first)).toMatch(/^HTTP\/1\.1 101 /);
  });
});

it('DG-08 D6-07: a notification reaches subscribers over SSE and WebSocket, with gas as a decimal string', async () => {
  const query =
    'subscription { transactionUpdates(after: "0") { cursor correlationId transaction { id status gasUsed } } }';
  const [token, id] = [await p.clientToken(), p.demo.transactions.user_transactions];
  await using reader = await openStream(p, token, query);
  const client = socketClient(p, token);
  const updates = client.iterate({ query });
  await notify(p, id, 3, { gas_used: 21_000 });
  const transaction = { id, status: 'DONE', gasUsed: '21000' };
  const [cursor, correlationId] = [expect.stringMatching(/^\d+$/), expect.stringMatching(/^[0-9a-f-]{36}$/)];
  const expected = { data: { transactionUpdates: { cursor, correlationId, transaction } } };
  expect(await reader.nextJson()).toEqual(expected);
  expect((await updates.next()).value).toEqual(expected);
  await client.dispose();
});

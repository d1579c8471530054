import { once } from 'node:events';
import { print } from 'graphql';
import { type Client, CloseCode, createClient } from 'graphql-ws';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import type { Database } from '../../src/platform/database/database.ts';
import { scratchDatabase } from '../harness/databases.ts';
import { TransactionStatesDocument, TransactionUpdatesDocument } from './generated/graphql.ts';
import { OTHER_NODE, type Stand, startStandOn, until } from './stand.ts';

let database: Database;
let stand: Stand;
const clients: Client[] = [];
const sockets: WebSocket[] = [];

beforeAll(async () => {
  database = await scratchDatabase();
});

afterAll(() => database[Symbol.asyncDispose]());

beforeEach(async () => {
  stand = await startStandOn(database);
  await stand.register('t');
});

afterEach(async () => {
  vi.restoreAllMocks();
  for (const client of clients.splice(0)) await client.dispose();
  for (const socket of sockets.splice(0)) socket.terminate();
  await stand[Symbol.asyncDispose]();
});

function connect(token = stand.token): Client {
  const client = createClient({
    url: stand.url.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${token}` },
    retryAttempts: 0,
  });
  clients.push(client);
  return client;
}

/** A socket without a client library; `received` has every message. */
async function rawSocket() {
  const socket = new WebSocket(stand.url.replace('http', 'ws'), 'graphql-transport-ws');
  sockets.push(socket);
  // biome-ignore lint/suspicious/noExplicitAny: tests look into messages of many shapes.
  const received: any[] = [];
  socket.on('message', (data) => received.push(JSON.parse(String(data))));
  const closed = once(socket, 'close') as Promise<[number, Buffer]>;
  closed.catch(() => undefined);
  await once(socket, 'open');
  const send = (message: object) => socket.send(JSON.stringify(message));
  return { socket, received, closed, send };
}

async function initialised(token = stand.token) {
  const raw = await rawSocket();
  raw.send({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } });
  await until(() => raw.received.length === 1);
  expect(raw.received.shift()).toEqual({ type: 'connection_ack' });
  return raw;
}

const UPDATES = print(TransactionUpdatesDocument);

describe('graphql-transport-ws', () => {
  it('DG-08: the token comes in connection_init; queries and mutations are answered', async () => {
    const { value } = await connect().iterate({ query: '{ me { nodeId } transaction(id: "t") { id } }' }).next();
    expect(value).toEqual({ data: { me: { nodeId: expect.any(String) }, transaction: { id: 't' } } });
  });

  it.each([
    ['no payload', undefined],
    ['no token', {}],
    ['an unknown token', { authorization: 'Bearer nonsense' }],
    ['another scheme', { authorization: 'Basic dTpw' }],
    ['a number', { authorization: 7 }],
  ])('DG-08: connection_init with %s is closed with 4401', async (_name, payload) => {
    const { send, closed } = await rawSocket();
    send({ type: 'connection_init', payload });
    expect((await closed)[0]).toBe(4401);
  });

  it('DG-08: a token that resets a password, or one that has been revoked, is closed with 4401', async () => {
    const ended = stand.newToken();
    stand.revoke(ended);
    for (const token of [stand.newToken({ use: 'forgot_password' }), ended]) {
      const { send, closed } = await rawSocket();
      send({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } });
      expect((await closed)[0]).toBe(4401);
    }
  });

  it('DG-08: an operation before connection_init is closed with 4401', async () => {
    const { send, closed } = await rawSocket();
    send({ type: 'subscribe', id: '1', payload: { query: '{ me { nodeId } }' } });
    expect((await closed)[0]).toBe(CloseCode.Unauthorized);
  });

  it('D6-10: updates replay what was missed and go live', async () => {
    await stand.notify('t', 1);
    const updates = connect().iterate({ query: UPDATES, variables: { after: '0' } });
    expect((await updates.next()).value?.data).toMatchObject({
      transactionUpdates: { cursor: '1', previousStatus: null },
    });
    await stand.notify('t', 3);
    expect((await updates.next()).value?.data).toMatchObject({
      transactionUpdates: { cursor: '2', previousStatus: 'STARTED' },
    });
    await updates.return?.();
    await until(() => stand.streams.load.streams === 0);
  });

  it('D6-11: a transaction is told at once, at each change, and completes at Error', async () => {
    const seen: unknown[] = [];
    const states = connect().iterate({ query: print(TransactionStatesDocument), variables: { id: 't' } });
    for (const status of [2, 4]) {
      seen.push((await states.next()).value?.data);
      await stand.notify('t', status, status === 4 ? { error: 'out of gas' } : {});
    }
    for await (const { data } of states) seen.push(data);
    expect(seen.map((data) => (data as { transaction: { status: string } }).transaction.status)).toEqual([
      null,
      'IN_PROGRESS',
      'ERROR',
    ]);
  });

  it.each<[string, { query: string; operationName?: string }]>([
    ['several operations and no name', { query: 'query A { me { nodeId } } query B { me { nodeId } }' }],
    ['a name that it has not', { query: 'query A { me { nodeId } } query B { me { nodeId } }', operationName: 'C' }],
    ['no operation', { query: 'fragment F on Query { me { nodeId } }' }],
    ['a syntax error', { query: '{ me { nodeId }' }],
    ['an unknown field', { query: '{ you { nodeId } }' }],
  ])('DG-08: a document with %s is told as over HTTP', async (_name, { query, operationName }) => {
    const { json } = await stand.query(query, operationName === undefined ? {} : { operationName });
    expect(json.errors[0].extensions.code).toEqual(expect.any(String));
    const { send, received } = await initialised();
    send({ type: 'subscribe', id: '1', payload: { query, operationName } });
    await until(() => received.length === 1);
    expect(received[0]).toEqual({ id: '1', type: 'error', payload: json.errors });
  });

  it("DG-08: refusals are the operation's error message, and the socket stays", async () => {
    const token = stand.newToken({ permissions: [] });
    await stand.register('foreign', OTHER_NODE);
    const { send, received } = await initialised(token);
    const refused = [
      ['FORBIDDEN', UPDATES],
      ['GRAPHQL_VALIDATION_FAILED', '{ you { nodeId } }'],
      ['LIMIT_EXCEEDED', '{ accounts(first: 101) { totalCount } }'],
    ] as const;
    for (const [code, query] of refused) {
      send({ type: 'subscribe', id: 'x', payload: { query } });
      await until(() => received.length > 0);
      const message = received.shift();
      expect(message).toMatchObject({ id: 'x', type: 'error' });
      expect(message.payload[0].extensions?.code).toBe(code);
      expect(JSON.stringify(message)).not.toContain('"http"');
    }
    send({ type: 'subscribe', id: 'x', payload: { query: '{ me { subject } }' } });
    await until(() => received.length > 1);
    expect(received.map(({ type }) => type)).toEqual(['next', 'complete']);
  });

  it('DG-08: each operation needs a token that is still good: UNAUTHENTICATED, and the socket stays', async () => {
    const token = stand.newToken();
    const { send, received, socket } = await initialised(token);
    stand.revoke(token);
    send({ type: 'subscribe', id: '1', payload: { query: '{ nonsense }' } });
    await until(() => received.length > 0);
    expect(received[0]).toMatchObject({ type: 'error', payload: [{ extensions: { code: 'UNAUTHENTICATED' } }] });
    expect(socket.readyState).toBe(WebSocket.OPEN);
  });

  it('DG-08: a subscription ends with its token, and the socket stays', async () => {
    const { send, received, socket } = await initialised(stand.newToken({ expiresAtMs: Date.now() + 200 }));
    send({ type: 'subscribe', id: '1', payload: { query: UPDATES } });
    await until(() => received.length > 0);
    expect(received).toEqual([
      { id: '1', type: 'error', payload: [expect.objectContaining({ extensions: { code: 'UNAUTHENTICATED' } })] },
    ]);
    expect(socket.readyState).toBe(WebSocket.OPEN);
  });

  it('D6-10: cursor_expired is an error message', async () => {
    const { send, received } = await initialised();
    send({ type: 'subscribe', id: '1', payload: { query: UPDATES, variables: { after: '9' } } });
    await until(() => received.length > 0);
    expect(received[0].payload[0]).toMatchObject({ message: 'cursor_expired', extensions: { code: 'CURSOR_EXPIRED' } });
  });

  it('DG-05: unexpected errors are masked', async () => {
    vi.spyOn(stand.transactions, 'register').mockRejectedValue(new Error('select secret'));
    const query =
      'mutation { registerTransaction(input: {id: "x", collection: OTC_TRANSACTIONS, type: 1}) { __typename } }';
    const { value } = await connect().iterate({ query }).next();
    expect(value?.errors?.[0]).toMatchObject({
      message: 'internal error',
      extensions: { code: 'INTERNAL_SERVER_ERROR' },
    });
    expect(stand.faults).toHaveLength(1);
  });

  it('DG-08: a frame over 64 KiB closes the socket with 1009', async () => {
    const { send, closed } = await initialised();
    send({ type: 'ping', payload: { filler: 'x'.repeat(64 * 1024) } });
    expect((await closed)[0]).toBe(1009);
  });

  it('DG-08: 100 operations run at once, and one more is refused', async () => {
    const { send, received } = await initialised();
    for (let id = 0; id <= 100; id += 1) {
      send({ type: 'subscribe', id: String(id), payload: { query: 'subscription { transactionUpdates { cursor } }' } });
    }
    await until(() => received.length === 1 && stand.streams.load.streams === 100);
    expect(received[0]).toMatchObject({ id: '100', type: 'error' });
    send({ type: 'complete', id: '0' });
    await until(() => stand.streams.load.streams === 99);
  });

  it('DG-08: a socket that breaks ends its subscriptions', async () => {
    const { send, socket } = await initialised();
    send({ type: 'subscribe', id: '1', payload: { query: UPDATES } });
    await until(() => stand.streams.load.streams === 1);
    socket.terminate();
    await until(() => stand.streams.load.streams === 0);
  });

  it('DG-08: a stop closes sockets with 1012', async () => {
    const { closed } = await initialised();
    await stand.server.stop();
    expect((await closed)[0]).toBe(1012);
  });

  it('DG-08: each operation leaves one record, with what was asked and what was sent', async () => {
    const token = stand.newToken({ permissions: [] });
    const { send, received } = await initialised(token);
    send({
      type: 'subscribe',
      id: '1',
      payload: { query: 'query ($a: Boolean!) { me { subject @include(if: $a) } }', variables: { a: true } },
    });
    send({ type: 'subscribe', id: '2', payload: { query: UPDATES } });
    await until(() => received.length === 3);
    expect(stand.records).toHaveLength(2);
    const [good, bad] = [true, false].map((ok) => stand.records.find((record) => record.ok === ok));
    expect(good?.params).toEqual({
      query: 'query ($a: Boolean!) { me { subject @include(if: $a) } }',
      variables: { a: true },
    });
    expect(good?.principal.tokenId).toBe(token);
    expect(good?.responseText).toBe('{"data":{"me":{"subject":"somebody"}}}');
    expect(bad?.responseText).toContain('FORBIDDEN');
  });
});

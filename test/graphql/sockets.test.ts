import { setImmediate as nextTurn } from 'node:timers/promises';
import { print } from 'graphql';
import { type Client, CloseCode } from 'graphql-ws';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Principal } from '../../src/access/identity/callers.ts';
import { SocketOperations } from '../../src/api/graphql/sockets/socket-operations.ts';
import { runCooperatively } from '../../src/lib/yielding.ts';
import { serviceUnavailable } from '../../src/platform/errors.ts';
import { MemoryAccounts } from '../../src/platform/held-memory.ts';
import { type Fixture, NODE, OTHER_NODE, startFixtureOn, until } from '../support/graphql/fixture.ts';
import { closeSockets, openSocket, rawSocket, socketClient } from '../support/graphql/sockets.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { scratchDatabase } from '../support/harness/databases.ts';
import { TransactionUpdatesDocument } from './generated/graphql.ts';

const database = beforeTests(scratchDatabase);
let fixture: Fixture;
const clients: Client[] = [];

beforeEach(async () => {
  fixture = await startFixtureOn(database);
  await fixture.register('t');
});

afterEach(async () => {
  vi.restoreAllMocks();
  for (const client of clients.splice(0)) await client.dispose();
  closeSockets();
  await fixture[Symbol.asyncDispose]();
});

function connect(): Client {
  const client = socketClient(fixture, fixture.token);
  clients.push(client);
  return client;
}

const UPDATES = print(TransactionUpdatesDocument);
const REGISTER =
  'mutation { registerTransaction(input: {id: "x", collection: OTC_TRANSACTIONS, type: 1}) { __typename } }';
/** What a close with 4401 says. */
const NAMES_THE_PLACE = expect.stringMatching(/"authorization": "Bearer .*connection_init.*Authorization.*upgrade/);

/** The same, with a good token for TOKEN. */
function withToken<Value>(value: Value): Value {
  return value === undefined ? value : JSON.parse(JSON.stringify(value).replaceAll('TOKEN', fixture.token));
}

describe('graphql-transport-ws', () => {
  it('DG-08: the token is sent in connection_init, and queries and mutations are answered', async () => {
    const { value } = await connect().iterate({ query: '{ me { nodeId } transaction(id: "t") { id } }' }).next();
    expect(value).toEqual({ data: { me: { nodeId: expect.any(String) }, transaction: { id: 't' } } });
  });

  it.each<[name: string, payload: unknown, upgrade?: Record<string, string>]>([
    ['no payload', undefined],
    ['no token', {}],
    ['an unknown token', { authorization: 'Bearer nonsense' }],
    ['another scheme', { authorization: 'Basic dTpw' }],
    ['a number', { authorization: 7 }],
    ['a token without its scheme', { authorization: 'TOKEN' }],
    ['a token in an unknown member', { token: 'Bearer TOKEN' }],
    ['headers that are a string', { headers: 'Authorization: Bearer TOKEN' }],
    ['headers that are a list', { headers: ['Authorization', 'Bearer TOKEN'] }],
    ['headers without it', { headers: { Cookie: 'a=b' } }],
    ['an empty text before a good one', { authorization: '', Authorization: 'Bearer TOKEN' }],
    [
      'an unknown token before a good one',
      { Authorization: 'Bearer nonsense', headers: { Authorization: 'Bearer TOKEN' } },
    ],
    [
      'an unknown token before that of the upgrade',
      { headers: { authorization: 'Bearer x' } },
      { Authorization: 'Bearer TOKEN' },
    ],
    ['an unknown token in the upgrade', {}, { Authorization: 'Bearer nonsense' }],
  ])(
    'DG-08 DG-15: connection_init with %s is closed with 4401, which says where to put the token',
    async (_name, payload, upgrade) => {
      const { send, closed } = await rawSocket(fixture, { headers: withToken(upgrade) });
      send(withToken({ type: 'connection_init', payload }));
      const [code, reason] = await closed;
      expect([code, String(reason)]).toEqual([4401, NAMES_THE_PLACE]);
      expect(reason.length).toBeLessThanOrEqual(123);
    },
  );

  it.each<[name: string, payload: unknown, upgrade?: Record<string, string>]>([
    ['authorization', { authorization: 'Bearer TOKEN' }],
    ['Authorization', { Authorization: 'Bearer TOKEN' }],
    ['headers.Authorization', { headers: { Authorization: 'Bearer TOKEN' } }],
    ['headers.authorization', { headers: { authorization: 'bearer  TOKEN', 'x-a': 1 } }],
    ['the upgrade and no payload', undefined, { Authorization: 'Bearer TOKEN' }],
    ['the upgrade and other members', { headers: {}, lang: 'en' }, { authorization: 'Bearer TOKEN' }],
    [
      'headers, after null members',
      { authorization: null, Authorization: null, headers: { Authorization: 'Bearer TOKEN' } },
    ],
    [
      'authorization, before other members',
      { authorization: 'Bearer TOKEN', Authorization: 'x', headers: 7 },
      { Authorization: 'Bearer x' },
    ],
  ])('DG-15: a token in %s is accepted', async (_name, payload, upgrade) => {
    const { send, received } = await rawSocket(fixture, { headers: withToken(upgrade) });
    send(withToken({ type: 'connection_init', payload }));
    await until(() => received.length === 1);
    expect(received[0]).toEqual({ type: 'connection_ack' });
  });

  it('DG-08: a password reset token or a revoked one is closed with 4401', async () => {
    const ended = fixture.newToken();
    fixture.revoke(ended);
    for (const token of [fixture.newToken({ use: 'forgot_password' }), ended]) {
      const { init, closed } = await rawSocket(fixture);
      init(token);
      expect((await closed)[0]).toBe(4401);
    }
  });

  it('DG-08: an operation before connection_init is closed with 4401', async () => {
    const { subscribe, closed } = await rawSocket(fixture);
    subscribe('1', '{ me { nodeId } }');
    const [code, reason] = await closed;
    expect([code, String(reason)]).toEqual([CloseCode.Unauthorized, NAMES_THE_PLACE]);
  });

  it.each<[string, { query: string; operationName?: string }]>([
    ['several operations and no name', { query: 'query A { me { nodeId } } query B { me { nodeId } }' }],
    ['an unknown operation name', { query: 'query A { me { nodeId } } query B { me { nodeId } }', operationName: 'C' }],
    ['no operation', { query: 'fragment F on Query { me { nodeId } }' }],
    ['a syntax error', { query: '{ me { nodeId }' }],
    ['an unknown field', { query: '{ you { nodeId } }' }],
  ])('DG-08: a document with %s gets the same errors as over HTTP', async (_name, { query, operationName }) => {
    const { json } = await fixture.query(query, operationName === undefined ? {} : { operationName });
    expect(json.errors[0].extensions.code).toEqual(expect.any(String));
    const { send, received } = await openSocket(fixture, fixture.token);
    send({ type: 'subscribe', id: '1', payload: { query, operationName } });
    await until(() => received.length === 1);
    expect(received[0]).toEqual({ id: '1', type: 'error', payload: json.errors });
  });

  it('DG-08: rejections are error messages of the operation, and the socket stays open', async () => {
    const token = fixture.newToken({ permissions: [] });
    await fixture.register('foreign', OTHER_NODE);
    const { subscribe, received } = await openSocket(fixture, token);
    const refused = [
      ['FORBIDDEN', UPDATES],
      ['GRAPHQL_VALIDATION_FAILED', '{ you { nodeId } }'],
      ['LIMIT_EXCEEDED', '{ accounts(first: 101) { totalCount } }'],
    ] as const;
    for (const [code, query] of refused) {
      subscribe('x', query);
      await until(() => received.length > 0);
      const message = received.shift();
      expect(message).toMatchObject({ id: 'x', type: 'error' });
      expect(message?.payload[0].extensions?.code).toBe(code);
      expect(JSON.stringify(message)).not.toContain('"http"');
    }
    subscribe('x', '{ me { subject } }');
    await until(() => received.length > 1);
    expect(received.map(({ type }) => type)).toEqual(['next', 'complete']);
  });

  it('DG-15: an operation whose token was revoked closes the socket with 4403, without an error, and is recorded', async () => {
    const token = fixture.newToken();
    const { subscribe, received, closed } = await openSocket(fixture, token);
    subscribe('1', UPDATES);
    await until(() => fixture.streams.load.streams === 1);
    fixture.revoke(token);
    subscribe('2', '{ nonsense }');
    const [code, reason] = await closed;
    expect([code, String(reason), received]).toEqual([4403, 'token revoked', []]);
    await until(() => fixture.streams.load.streams === 0);
    await expect.poll(() => fixture.records.map(({ ok }) => ok)).toEqual([false, true]);
  });

  it('DG-15: an operation whose token has expired since closes the socket with 4403, without an error', async () => {
    const expiresAtMs = Date.now() + 60_000;
    const { subscribe, received, closed } = await openSocket(fixture, fixture.newToken({ expiresAtMs }));
    vi.spyOn(Date, 'now').mockReturnValue(expiresAtMs);
    subscribe('1', '{ me { nodeId } }');
    const [code, reason] = await closed;
    expect([code, String(reason), received]).toEqual([4403, 'token expired', []]);
  });

  it.each([
    ['idle', []],
    ['with subscriptions', ['1', '2']],
  ])(
    'DG-15 D2-29: a socket that is %s closes with 4403 when its token expires, without an error',
    async (_name, ids) => {
      const { subscribe, received, closed } = await openSocket(
        fixture,
        fixture.newToken({ expiresAtMs: Date.now() + 300 }),
      );
      for (const id of ids) subscribe(id, UPDATES);
      const [code, reason] = await closed;
      expect([code, String(reason), received]).toEqual([4403, 'token expired', []]);
      await until(() => fixture.streams.load.streams === 0 && fixture.watch.size === 0);
    },
  );

  it('DG-15: a mutation running when the token expires is answered before the socket closes', async () => {
    const expiresAtMs = Date.now() + 2_000;
    const { subscribe, received, closed } = await openSocket(fixture, fixture.newToken({ expiresAtMs }));
    const registering = fixture.transactions.register.bind(fixture.transactions);
    vi.spyOn(fixture.transactions, 'register').mockImplementation(async (transaction) => {
      await new Promise((resolve) => setTimeout(resolve, expiresAtMs + 100 - Date.now()));
      return registering(transaction);
    });
    subscribe('1', REGISTER);
    expect((await closed)[0]).toBe(4403);
    expect(received).toMatchObject([
      { id: '1', type: 'next', payload: { data: { registerTransaction: { __typename: 'Transaction' } } } },
      { id: '1', type: 'complete' },
    ]);
  });

  it('DG-15 D2-29: a client that reads nothing is disconnected when its token expires', async () => {
    const { socket } = await openSocket(fixture, fixture.newToken({ expiresAtMs: Date.now() + 300 }));
    socket.pause();
    await vi.waitFor(async () => expect(await fixture.connections()).toBe(0));
  });

  it('DG-15: a rejected client that does not confirm the close is disconnected', async () => {
    const { send, socket } = await rawSocket(fixture);
    send({ type: 'connection_init', payload: {} });
    socket.pause();
    await vi.waitFor(async () => expect(await fixture.connections()).toBe(0));
  });

  it('DG-15: a connection_init whose token cannot be checked is closed with 1013, so that clients reconnect', async () => {
    await using failing = await startFixtureOn(database, {
      authenticateSocket: () => Promise.reject(new Error('away')),
    });
    const { init, closed } = await rawSocket(failing);
    init('any');
    expect((await closed)[0]).toBe(1013);
    expect(failing.faults).toHaveLength(1);
  });

  it('D6-25: a message that is refused while it waits for its turn closes the socket with 1013, so that clients reconnect', async () => {
    const { closed, subscribe } = await openSocket(fixture, fixture.token);
    const { open } = MemoryAccounts.prototype;
    vi.spyOn(MemoryAccounts.prototype, 'open').mockImplementation(function (this: MemoryAccounts, ...account) {
      const held = open.apply(this, account);
      held.refuse(serviceUnavailable());
      return held;
    });
    let isOpen = true;
    const work = async () => {
      while (isOpen) await runCooperatively(() => undefined, { key: NODE });
    };
    const others = [work(), work()];
    subscribe('1', '{ me { nodeId } }');
    expect((await closed)[0]).toBe(1013);
    expect(fixture.faults).toEqual([]);
    isOpen = false;
    await Promise.all(others);
  });

  it('DG-15: a socket that closes while its token is checked leaves no token watched', async () => {
    const [asked, checked] = [Promise.withResolvers<void>(), Promise.withResolvers<Principal>()];
    const authenticateSocket = () => {
      asked.resolve();
      return checked.promise;
    };
    await using slow = await startFixtureOn(database, { authenticateSocket });
    const { init, socket } = await rawSocket(slow);
    init('any');
    await asked.promise;
    socket.terminate();
    await vi.waitFor(async () => expect(await slow.connections()).toBe(0));
    checked.resolve({ tokenUse: 'api', subject: 'somebody' } as Principal);
    await checked.promise;
    await new Promise((resolve) => setImmediate(resolve));
    expect(slow.watch.size).toBe(0);
  });

  it('DG-05: internal errors are masked', async () => {
    vi.spyOn(fixture.transactions, 'register').mockRejectedValue(new Error('select secret'));
    const { value } = await connect().iterate({ query: REGISTER }).next();
    expect(value?.errors?.[0]).toMatchObject({
      message: 'internal error',
      extensions: { code: 'INTERNAL_SERVER_ERROR' },
    });
    expect(fixture.faults).toHaveLength(1);
  });

  it('DG-08: a frame over 64 KiB closes the socket with 1009', async () => {
    const { send, closed } = await openSocket(fixture, fixture.token);
    send({ type: 'ping', payload: { filler: 'x'.repeat(64 * 1024) } });
    expect((await closed)[0]).toBe(1009);
  });

  it('DG-08: 100 operations run at once, and one more is rejected', async () => {
    const { send, subscribe, received } = await openSocket(fixture, fixture.token);
    for (let id = 0; id <= 100; id += 1) {
      subscribe(String(id), 'subscription { transactionUpdates { cursor } }');
    }
    await until(() => received.length === 1 && fixture.streams.load.streams === 100);
    expect(received[0]).toMatchObject({ id: '100', type: 'error' });
    send({ type: 'complete', id: '0' });
    await until(() => fixture.streams.load.streams === 99);
  });

  it('D6-24: the end of an operation wakes one message of its id, however many wait', async () => {
    const record = { recordOperation: async () => undefined, isAuditFull: () => false };
    const operations = new SocketOperations(Object(undefined), record);
    const ends: (() => void)[] = [];
    for (let at = 0; at < 100; at += 1) {
      void operations.inTurn({ type: 'subscribe', id: 'again' }, () => new Promise<void>((end) => ends.push(end)));
      void operations.inTurn({ type: 'complete', id: 'again' }, async () => undefined);
    }
    for (let turns = 0; turns < 5; turns += 1) await nextTurn();
    const { get } = Map.prototype;
    let lookups = 0;
    Map.prototype.get = function (key) {
      lookups += Number(key === 'again');
      return get.call(this, key);
    };
    ends[0]?.();
    for (let turns = 0; turns < 5; turns += 1) await nextTurn();
    Map.prototype.get = get;
    expect(ends).toHaveLength(2);
    expect(lookups).toBeLessThan(10);
  });

  it('DG-08: an id that is used again is that of another operation, which ends and is recorded by itself', async () => {
    const { messagesOf, send, subscribe, socket } = await openSocket(fixture, fixture.token);
    const live = 'subscription { transactionUpdates { cursor } }';
    const queries = [REGISTER, live, UPDATES, '{ me { subject } }', live];
    for (const query of queries) {
      subscribe('a', query);
      send({ type: 'complete', id: 'a' });
    }
    await until(() => fixture.records.length === queries.length);
    expect(fixture.records.map(({ params }) => params.query)).toEqual(queries);
    subscribe('a', live);
    subscribe('b', live);
    await until(() => fixture.streams.load.streams === 2);
    send({ type: 'complete', id: 'a' });
    subscribe('a', live);
    expect(await messagesOf({ query: '{ me { subject } }' })).toHaveLength(2);
    await until(() => fixture.records.length === queries.length + 2 && fixture.streams.load.streams === 2);
    socket.terminate();
    await until(() => fixture.streams.load.streams === 0);
  });

  it('DG-08: a broken socket ends its subscriptions', async () => {
    const { subscribe, socket } = await openSocket(fixture, fixture.token);
    subscribe('1', UPDATES);
    await until(() => fixture.streams.load.streams === 1);
    socket.terminate();
    await until(() => fixture.streams.load.streams === 0);
  });

  it('DG-08: a stop closes sockets with 1012', async () => {
    const { closed } = await openSocket(fixture, fixture.token);
    await fixture.server.stop();
    expect((await closed)[0]).toBe(1012);
  });

  it('DG-08: each operation leaves one record, with its request and what it was sent', async () => {
    const token = fixture.newToken({ permissions: [] });
    const { subscribe, received } = await openSocket(fixture, token);
    const good = { query: 'query ($a: Boolean!) { me { subject @include(if: $a) } }', variables: { a: true } };
    subscribe('1', good.query, good.variables);
    subscribe('2', UPDATES);
    await until(() => received.length === 3);
    expect(fixture.records).toHaveLength(2);
    const recorded = (ok: boolean) => fixture.records.find((record) => record.ok === ok);
    const responseText = '{"data":{"me":{"subject":"somebody"}}}';
    expect(recorded(true)).toMatchObject({ params: good, principal: { tokenId: token }, responseText });
    expect(recorded(false)?.responseText).toContain('FORBIDDEN');
  });
});

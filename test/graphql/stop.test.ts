import { once } from 'node:events';
import { Readable } from 'node:stream';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { MigrationFiles } from '../../src/domain/user-migrations/migration-files.service.ts';
import type { Database } from '../../src/platform/database/database.ts';
import { NODE, type Stand, startStandOn, until } from '../support/graphql/stand.ts';
import { scratchDatabase } from '../support/harness/databases.ts';

const UPDATES = 'subscription { transactionUpdates { cursor } }';
const PROGRESS = 'subscription ($id: ID!) { migrationProgress(id: $id) { processed } }';
const REGISTER =
  'mutation { registerTransaction(input: {id: "x", collection: OTC_TRANSACTIONS, type: 1}) { __typename } }';

let database: Database;
let stand: Stand;
const sockets: WebSocket[] = [];

beforeAll(async () => {
  database = await scratchDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());
beforeEach(async () => {
  stand = await startStandOn(database);
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const socket of sockets.splice(0)) socket.terminate();
  await stand[Symbol.asyncDispose]();
});

/** A socket that has been acknowledged; `received` has what came since. */
async function acknowledged() {
  const socket = new WebSocket(stand.url.replace('http', 'ws'), 'graphql-transport-ws');
  sockets.push(socket);
  const received: { id: string; type: string }[] = [];
  socket.on('message', (data) => received.push(JSON.parse(String(data))));
  const closed = once(socket, 'close') as Promise<[number, Buffer]>;
  closed.catch(() => undefined);
  await once(socket, 'open');
  const send = (message: object) => socket.send(JSON.stringify(message));
  send({ type: 'connection_init', payload: { authorization: `Bearer ${stand.token}` } });
  await until(() => received.length === 1);
  received.length = 0;
  /** Waits until what has been sent has been read. */
  const read = async () => {
    socket.ping();
    await once(socket, 'pong');
  };
  return { received, closed, send, read };
}

it('D1-13: lets mutations of sockets in flight be answered, begins no more, and then closes with 1012', async () => {
  const { received, closed, send, read } = await acknowledged();
  const held = Promise.withResolvers<'registered'>();
  const register = vi.spyOn(stand.transactions, 'register').mockReturnValue(held.promise);
  send({ type: 'subscribe', id: 'stream', payload: { query: UPDATES } });
  send({ type: 'subscribe', id: 'in flight', payload: { query: REGISTER } });
  await until(() => stand.streams.load.streams === 1 && register.mock.calls.length === 1);
  const stopped = stand.server.stop();
  send({ type: 'subscribe', id: 'late', payload: { query: REGISTER } });
  await read();
  expect(received).toEqual([]);
  held.resolve('registered');
  expect((await closed)[0]).toBe(1012);
  await stopped;
  expect(received.map(({ id, type }) => [id, type])).toEqual([
    ['in flight', 'next'],
    ['in flight', 'complete'],
  ]);
  expect(register).toHaveBeenCalledOnce();
});

it('D1-13: whoever follows a migration over a socket is sent elsewhere, and told of no failure', async () => {
  const files = new MigrationFiles({ db: database.db, nowMs: Date.now, notify: () => undefined });
  const caller = { nodeId: NODE, subject: 'somebody', correlationId: 'c' };
  // Nobody works on it here.
  const { id } = await files.start(caller, Readable.from([Buffer.from('wallet_address,email\n0x1,a@example.com\n')]));
  const { received, closed, send } = await acknowledged();
  send({ type: 'subscribe', id: 'progress', payload: { query: PROGRESS, variables: { id } } });
  await until(() => received.length === 1);
  expect(received).toMatchObject([{ id: 'progress', type: 'next' }]);
  await stand.server.stop();
  expect((await closed)[0]).toBe(1012);
  expect(received).toHaveLength(1);
});

it('D1-13: an event stream that begins while it stops ends at once, without complete', async () => {
  await using before = await stand.stream(UPDATES);
  await stand.server.stop();
  await using during = await stand.stream(UPDATES);
  expect(await during.next()).toBeUndefined();
  expect(await before.next()).toBeUndefined();
  await until(() => stand.streams.load.streams === 0);
});

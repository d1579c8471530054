import { once } from 'node:events';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { MigrationFiles } from '../../src/features/user-migrations/migration-files.service.ts';
import { type Fixture, NODE, startFixtureOn, until } from '../support/graphql/fixture.ts';
import { closeSockets, openSocket } from '../support/graphql/sockets.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { scratchDatabase } from '../support/harness/databases.ts';

const UPDATES = 'subscription { transactionUpdates { cursor } }';
const PROGRESS = 'subscription ($id: ID!) { migrationProgress(id: $id) { processed } }';
const REGISTER =
  'mutation { registerTransaction(input: {id: "x", collection: OTC_TRANSACTIONS, type: 1}) { __typename } }';

const database = beforeTests(scratchDatabase);
let fixture: Fixture;

beforeEach(async () => {
  fixture = await startFixtureOn(database);
});
afterEach(async () => {
  vi.restoreAllMocks();
  closeSockets();
  await fixture[Symbol.asyncDispose]();
});

it('D1-13: a stop lets running mutations of sockets finish, starts no more, and then closes with 1012', async () => {
  const { socket, received, closed, subscribe } = await openSocket(fixture, fixture.token);
  const held = Promise.withResolvers<'registered'>();
  const register = vi.spyOn(fixture.transactions, 'register').mockReturnValue(held.promise);
  subscribe('stream', UPDATES);
  subscribe('in flight', REGISTER);
  await until(() => fixture.streams.load.streams === 1 && register.mock.calls.length === 1);
  const stopped = fixture.server.stop();
  subscribe('late', REGISTER);
  // Once it is answered, what was sent has been read.
  socket.ping();
  await once(socket, 'pong');
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

it('D1-13: a client that follows a migration over a socket is closed to reconnect, without an error', async () => {
  const files = new MigrationFiles({ db: database.db, nowMs: Date.now, notify: () => undefined });
  const caller = { nodeId: NODE, subject: 'somebody', correlationId: 'c' };
  // Nobody works on it here.
  const { id } = await files.start(caller, Readable.from([Buffer.from('wallet_address,email\n0x1,a@example.com\n')]));
  const { received, closed, subscribe } = await openSocket(fixture, fixture.token);
  subscribe('progress', PROGRESS, { id });
  await until(() => received.length === 1);
  expect(received).toMatchObject([{ id: 'progress', type: 'next' }]);
  await fixture.server.stop();
  expect((await closed)[0]).toBe(1012);
  expect(received).toHaveLength(1);
});

it('D1-13: an event stream that begins during a stop ends at once, without complete', async () => {
  await using before = await fixture.stream(UPDATES);
  await fixture.server.stop();
  await using during = await fixture.stream(UPDATES);
  expect(await during.next()).toBeUndefined();
  expect(await before.next()).toBeUndefined();
  await until(() => fixture.streams.load.streams === 0);
});

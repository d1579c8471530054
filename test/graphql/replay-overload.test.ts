import { once } from 'node:events';
import { connect } from 'node:net';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { TransactionPages } from '../../src/features/transactions/transaction-pages.service.ts';
import { serviceUnavailable } from '../../src/platform/errors.ts';
import { type Fixture, startFixtureOn, until } from '../support/graphql/fixture.ts';
import { openSocket } from '../support/graphql/sockets.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { scratchDatabase } from '../support/harness/databases.ts';

const SUBSCRIPTIONS = 12;
const FIELDS = ['a', 'b', 'c'];
const EVENTS = FIELDS.map((alias) => `${alias}: events(last: 1) { edges { node { cursor } } }`).join(' ');
const REPLAY = `subscription { transactionUpdates(after: "0") { cursor transaction { ${EVENTS} } } }`;
const STATE = `subscription { transaction(id: "t") { id ${EVENTS} } }`;

const database = beforeTests(scratchDatabase);
let fixture: Fixture;
/** How many more reads of events are refused, as when the tenant's connections are used up. */
let refusals: number;
/** Reads that are under way, and the most that were at once. */
let reading: number;
let mostReading: number;

beforeEach(async () => {
  [refusals, reading, mostReading] = [0, 0, 0];
  const transactionPages = new TransactionPages(database.db);
  const { events } = transactionPages;
  const pages: typeof events.pages = async (...given) => {
    refusals -= 1;
    if (refusals >= 0) throw serviceUnavailable();
    reading += 1;
    mostReading = Math.max(mostReading, reading);
    try {
      return await events.pages(...given);
    } finally {
      reading -= 1;
    }
  };
  fixture = await startFixtureOn(database, {
    services: { transactionPages: Object.assign(transactionPages, { events: { ...events, pages } }) },
  });
  for (const id of ['t', 'u']) await fixture.register(id);
  await fixture.notify('t', 1);
  await fixture.notify('t', 2);
  await fixture.notify('u', 1);
});
afterEach(() => fixture[Symbol.asyncDispose]());

/** The messages of each of so many subscriptions of one socket, once each has had `count` of them. */
async function overSocket(query: string, subscriptions: number, count: number): Promise<string[][]> {
  using socket = await openSocket(fixture, fixture.token);
  const ids = Array.from({ length: subscriptions }, (_, id) => String(id));
  for (const id of ids) socket.subscribe(id, query);
  const textsOf = (id: string) => socket.texts.filter((_, at) => socket.received[at]?.id === id);
  await until(() => ids.every((id) => textsOf(id).length >= count));
  return ids.map(textsOf);
}

async function overSse(query: string, subscriptions: number, count: number): Promise<string[][]> {
  return Promise.all(
    Array.from({ length: subscriptions }, async () => {
      await using reader = await fixture.stream(query);
      const texts: string[] = [];
      while (texts.length < count) texts.push((await reader.next())?.data ?? 'nothing more');
      return texts;
    }),
  );
}

const TRANSPORTS = [
  ['a WebSocket', overSocket],
  ['SSE', overSse],
] as const;

it.each(TRANSPORTS)(
  'D6-24: over %s a replay whose connections are refused delivers each event once, without errors',
  async (_over, read) => {
    refusals = 20;
    for (const texts of await read(REPLAY, SUBSCRIPTIONS, 3)) {
      expect(texts.map((text) => /"transactionUpdates":\{"cursor":"(\d+)"/.exec(text)?.[1])).toEqual(['1', '2', '3']);
      expect(texts.join()).not.toContain('errors');
    }
    expect(refusals).toBeLessThanOrEqual(0);
  },
);

it.each(TRANSPORTS)('D6-24: over %s a tenant executes at most four replayed events at once', async (_over, read) => {
  await read(REPLAY, SUBSCRIPTIONS, 3);
  expect(mostReading).toBeGreaterThan(0);
  expect(mostReading).toBeLessThanOrEqual(4 * FIELDS.length);
});

it.each(TRANSPORTS)(
  'D6-11 D6-24: over %s the current state of a transaction is delivered after refused connections',
  async (_over, read) => {
    refusals = 20;
    const states = await read(STATE, SUBSCRIPTIONS, 1);
    for (const [text] of states) expect(text).toContain('"data":{"transaction":{"id":"t","a":{"edges"');
  },
);

/** A frame of a client, whose mask changes nothing. */
function frame(opcode: number, text: string): Buffer {
  return Buffer.concat([Buffer.from([0x80 | opcode, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)]);
}

it.each([
  ['pings of WebSocket', frame(9, '')],
  ['messages', frame(1, '{"type":"ping"}')],
])('D6-24: of thousands of %s in one segment, one is processed per iteration of the event loop', async (_what, one) => {
  const { hostname, port, host } = new URL(fixture.url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.write(
    `GET /graphql HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n` +
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n',
  );
  await once(socket, 'data');
  socket.on('data', () => undefined);
  const answers = [vi.spyOn(WebSocket.prototype, 'pong'), vi.spyOn(WebSocket.prototype, 'send')];
  const answered = () => answers.reduce((sum, { mock }) => sum + mock.calls.length, 0);
  socket.write(Buffer.concat(Array(2_000).fill(one)));
  let most = 0;
  for (let seen = 0; seen < 2_000; ) {
    await nextIteration();
    most = Math.max(most, answered() - seen);
    seen = answered();
  }
  for (const answer of answers) answer.mockRestore();
  socket.destroy();
  expect(most).toBeLessThanOrEqual(2);
});

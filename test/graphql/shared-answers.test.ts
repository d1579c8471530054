import { afterEach, beforeEach, expect, it } from 'vitest';
import { InvalidTokenError } from '../../src/access/identity/callers.ts';
import type { AccessWatch } from '../../src/access/revocation/access-watch.ts';
import { databaseEventLog, type EventLog } from '../../src/events/streams/event-log.ts';
import { EventStreams } from '../../src/events/streams/event-streams.ts';
import { MemoryWakeUps } from '../../src/events/streams/wake-ups.ts';
import type { EventReader, ServerEvent } from '../support/graphql/event-reader.ts';
import { type Fixture, NODE, OTHER_NODE, startFixtureOn, until } from '../support/graphql/fixture.ts';
import { closeSockets, openSocket } from '../support/graphql/sockets.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { scratchDatabase } from '../support/harness/databases.ts';

const UPDATES = `subscription ($after: String) {
  transactionUpdates(after: $after) { cursor correlationId transaction { id status } }
}`;

const database = beforeTests(scratchDatabase);
let fixture: Fixture;
let streams: EventStreams;
let wakeUps: MemoryWakeUps;
/** How often the field `correlationId` of an event was resolved: once for each execution. */
let executions: number;
/** Whether that field fails. */
let isFailing: boolean;
/** Reads of the log that are under way, those of a test before included. */
let reading = 0;
/** Ends a token that is watched. */
let endings: Map<string, () => void>;

beforeEach(async () => {
  [executions, isFailing, endings] = [0, false, new Map()];
  wakeUps = new MemoryWakeUps();
  streams = new EventStreams({ log: watchedLog(databaseEventLog(database.db)), wakeUps, onError: () => undefined });
  const watch: AccessWatch['watch'] = ({ tokenId = '' }, _request, onEnd) => {
    endings.set(tokenId, () => onEnd(new InvalidTokenError('revoked')));
    return () => endings.delete(tokenId);
  };
  fixture = await startFixtureOn(database, { services: { streams }, watch: { watch } });
  await fixture.register('t');
});

afterEach(async () => {
  closeSockets();
  await fixture[Symbol.asyncDispose]();
  streams.stop();
});

/** The same log; it tells when it is read, and its events when they are executed. */
function watchedLog(log: EventLog): EventLog {
  const watched = async <Result>(read: Promise<Result>): Promise<Result> => {
    reading += 1;
    return read.finally(() => {
      reading -= 1;
    });
  };
  return {
    headSeqs: (nodeIds) => watched(log.headSeqs(nodeIds)),
    oldestSeq: (nodeId) => watched(log.oldestSeq(nodeId)),
    readEvents: async (...place) => {
      const events = await watched(log.readEvents(...place));
      return events.map((event) => {
        const { correlation_id } = event;
        const get = () => {
          executions += 1;
          if (isFailing) throw new Error('the field fails');
          return correlation_id;
        };
        return Object.defineProperty(event, 'correlation_id', { get });
      });
    },
  };
}

async function notify(status: number, id = 't'): Promise<void> {
  await fixture.notify(id, status);
  for (const nodeId of [NODE, OTHER_NODE]) wakeUps.notify(nodeId, 1_000_000n);
}

/** Waits until so many subscribers listen to what comes. */
async function listening(count: number): Promise<void> {
  for (let quiet = 0; quiet < 3; ) {
    quiet = streams.load.streams === count && reading === 0 ? quiet + 1 : 0;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A socket with so many subscriptions; `textsOf` has what came for one of them, as it came. */
async function subscriptions(count: number) {
  const socket = await openSocket(fixture, fixture.token);
  for (let at = 0; at < count; at += 1) socket.subscribe(`"${at}`, UPDATES);
  return { ...socket, textsOf: (id: string) => socket.texts.filter((_, at) => socket.received[at]?.id === id) };
}

async function take(reader: EventReader, count: number): Promise<(ServerEvent | undefined)[]> {
  const taken = [];
  for (let at = 0; at < count; at += 1) taken.push(await reader.next());
  return taken;
}

it('D6-10: with 1,000 subscribers over WebSocket and two over SSE each event is executed and serialized once', async () => {
  const opened = await Promise.all(Array.from({ length: 10 }, () => subscriptions(100)));
  await using one = await fixture.stream(UPDATES);
  await using other = await fixture.stream(UPDATES);
  await listening(1_002);
  for (const status of [1, 2, 3]) await notify(status);
  const frames = await take(one, 3);
  expect(await take(other, 3)).toEqual(frames);
  expect(frames.map((frame) => frame?.id)).toEqual(['1', '2', '3']);
  await until(() => opened.every(({ texts }) => texts.length === 300));
  for (const { textsOf } of opened) {
    for (let at = 0; at < 100; at += 1) {
      const head = `{"id":"\\"${at}","type":"next","payload":`;
      expect(textsOf(`"${at}`)).toEqual(frames.map((frame) => `${head}${frame?.data}}`));
    }
  }
  expect(executions).toBe(3);
});

it('D6-10: a short, a longer and a non-ASCII message reach all subscribers of one socket', async () => {
  const { received, subscribe } = await openSocket(fixture, fixture.token);
  const short = 'subscription { transactionUpdates { event } }';
  const ids = Array.from({ length: 40 }, (_, at) => 'é'.repeat(at + 1));
  for (const id of ids) subscribe(id, short);
  for (const id of ids) subscribe(`${id}!`, UPDATES);
  await listening(80);
  await fixture.register('\u{1f600}');
  await notify(1, '\u{1f600}');
  await until(() => received.length === 80);
  const payloads = new Map(received.map(({ id, payload }) => [id, payload.data.transactionUpdates]));
  const transaction = { id: '\u{1f600}', status: 'STARTED' };
  for (const id of ids) {
    expect(payloads.get(id)).toEqual({ event: 'transaction.status.updated' });
    expect(payloads.get(`${id}!`)).toMatchObject({ cursor: '1', transaction });
  }
});

it('D6-10: a subscriber with a cursor replays on its own, and shares live events', async () => {
  await using first = await fixture.stream(UPDATES, { variables: { after: '0' } });
  await listening(1);
  await notify(1);
  await take(first, 1);
  await notify(2);
  await take(first, 1);
  expect(executions).toBe(2);
  await using back = await fixture.stream(UPDATES, { variables: { after: '1' } });
  await listening(2);
  expect(await take(back, 1)).toMatchObject([{ id: '2' }]);
  expect(executions).toBe(3);
  await notify(3);
  expect(await take(back, 1)).toEqual(await take(first, 1));
  expect(executions).toBe(4);
});

it('D6-10 D6-19: Last-Event-ID takes precedence over `after` for its own subscriber, and live events are shared', async () => {
  await fixture.register('u');
  for (const status of [1, 2]) await notify(status);
  await using all = await fixture.stream(UPDATES, { variables: { after: '0' } });
  await using back = await fixture.stream(UPDATES, { variables: { after: '0' }, headers: { 'last-event-id': '1' } });
  await listening(2);
  expect((await take(all, 2)).map((frame) => frame?.id)).toEqual(['1', '2']);
  expect((await take(back, 1)).map((frame) => frame?.id)).toEqual(['2']);
  const before = executions;
  await notify(3);
  await notify(1, 'u');
  const frames = await take(all, 2);
  expect(await take(back, 2)).toEqual(frames);
  expect(frames.map((frame) => frame?.id)).toEqual(['3', '4']);
  expect(executions - before).toBe(2);
});

it('D4-01: other permissions and other nodes have separate executions, and see only their data', async () => {
  await fixture.register('o', OTHER_NODE);
  const tokens = [
    fixture.newToken(),
    fixture.newToken({ permissions: ['transactions:read'] }),
    fixture.newToken({ permissions: ['transactions:read'] }),
    fixture.newToken({ use: 'login' }),
    fixture.newToken({ nodeId: OTHER_NODE }),
  ];
  const readers = await Promise.all(tokens.map((token) => fixture.stream(UPDATES, { token })));
  await listening(5);
  await notify(3);
  for (const reader of readers.slice(0, 4)) expect((await reader.nextJson()).data).not.toBeNull();
  expect(executions).toBe(3);
  await notify(1, 'o');
  const foreign = await readers[4]?.nextJson();
  expect(foreign?.data.transactionUpdates.transaction).toEqual({ id: 'o', status: 'STARTED' });
  expect(executions).toBe(4);
  for (const reader of readers) await reader[Symbol.asyncDispose]();
});

it('D6-12: when a token ends, even that of the first subscriber, only its own subscriptions end', async () => {
  const ended = fixture.newToken();
  await using first = await fixture.stream(UPDATES, { token: ended });
  await using second = await fixture.stream(UPDATES);
  await listening(2);
  await notify(1);
  expect(await take(first, 1)).toEqual(await take(second, 1));
  endings.get(ended)?.();
  expect(await first.next()).toBeUndefined();
  await notify(2);
  expect(await take(second, 1)).toMatchObject([{ id: '2' }]);
  expect(executions).toBe(2);
});

it('a failed execution is shared, and each subscriber gets its own correlation id', async () => {
  isFailing = true;
  const readers = await Promise.all(
    ['one', 'two'].map((id) => fixture.stream(UPDATES, { headers: { 'x-correlation-id': id } })),
  );
  const { received } = await subscriptions(1);
  await listening(3);
  await notify(1);
  const told = await Promise.all(readers.map((reader) => reader.nextJson()));
  expect(told.map(({ errors }) => errors[0].extensions)).toEqual(
    ['one', 'two'].map((correlationId) => ({ code: 'INTERNAL_SERVER_ERROR', correlationId })),
  );
  await until(() => received.length === 1);
  expect(received[0]?.payload.errors[0].extensions.correlationId).toBe('');
  expect(executions).toBe(1);
  for (const reader of readers) await reader[Symbol.asyncDispose]();
});

it('D2-07: the audit record of a subscription on a socket contains what it was sent', async () => {
  const { received, send } = await subscriptions(2);
  await listening(2);
  await notify(1);
  await until(() => received.length === 2);
  send({ type: 'complete', id: '"0' });
  await until(() => fixture.records.length === 1);
  expect(fixture.records[0]).toMatchObject({ responseText: JSON.stringify(received[0]?.payload), ok: true });
  await until(() => streams.load.streams === 1);
});

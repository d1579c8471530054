import { randomUUID } from 'node:crypto';
import { print } from 'graphql';
import { expect, vi } from 'vitest';
import type { EventStreamsOptions } from '../../../src/events/streams/event-streams.ts';
import { TransactionUpdatesDocument } from '../../graphql/generated/graphql.ts';
import { openStream } from '../graphql/event-reader.ts';
import { openSocket } from '../graphql/sockets.ts';
import type { Portcullis } from '../harness.ts';
import { basic, notification } from '../webhook/fixture.ts';

const UPDATES = print(TransactionUpdatesDocument);
const REGISTERED_AT_ONCE = 50;
const WAIT = { interval: 50 };

/** A subscriber to the changes of the demo's node, with what it was told so far. */
export interface Live extends AsyncDisposable {
  /** In the order of their coming. */
  cursors: string[];
  /** Codes of errors. */
  errors: string[];
  /** Resolves when nothing more comes, with the code of a close or an event that says that there is no more. */
  ended: Promise<unknown>;
}

interface LiveOptions {
  token: string;
  after?: string | undefined;
  headers?: Record<string, string>;
}

interface Told {
  data?: { transactionUpdates: { cursor: string } } | null;
  errors?: { extensions: { code: string } }[];
}

/** Subscribes over server-sent events; resolves once whatever is committed from then on is delivered. */
export async function overSse(p: Pick<Portcullis, 'url'>, { token, after, headers = {} }: LiveOptions): Promise<Live> {
  const reader = await openStream(p, token, UPDATES, { variables: { after }, headers });
  expect(reader.response.status).toBe(200);
  const told = toldInto();
  const read = async () => {
    for (;;) {
      const event = await reader.next();
      if (event?.event !== 'next') return event?.event;
      told.add(JSON.parse(event.data));
    }
  };
  return {
    ...told.seen,
    ended: read().catch(() => undefined),
    [Symbol.asyncDispose]: () => reader[Symbol.asyncDispose](),
  };
}

/** Subscribes over a WebSocket; resolves once whatever is committed from then on is delivered. */
export async function overSocket(p: Portcullis, { token, after }: LiveOptions): Promise<Live> {
  const { socket, subscribe, closed } = await openSocket(p, token);
  const told = toldInto();
  const ended = Promise.withResolvers<unknown>();
  socket.on('message', (data) => {
    const { type, payload } = JSON.parse(String(data));
    if (type === 'next') told.add(payload);
    if (type === 'error') told.add({ errors: payload });
    if (type === 'error' || type === 'complete') ended.resolve(type);
  });
  closed.then(([code]) => ended.resolve(code));
  const { watch, streams } = p.service.context;
  subscribe('1', UPDATES, { after });
  await vi.waitFor(() => expect(streams.load.streams).toBe(watch.size), WAIT);
  return {
    ...told.seen,
    ended: ended.promise,
    [Symbol.asyncDispose]: async () => {
      socket.terminate();
      await ended.promise;
    },
  };
}

export const TRANSPORTS = [
  ['SSE', overSse],
  ['a WebSocket', overSocket],
] as const;

function toldInto() {
  const seen = { cursors: [] as string[], errors: [] as string[] };
  const add = ({ data, errors = [] }: Told) => {
    if (data) seen.cursors.push(data.transactionUpdates.cursor);
    seen.errors.push(...errors.map(({ extensions }) => extensions.code));
  };
  return { seen, add };
}

/** Registers so many transactions of the demo's node. */
export async function registered(p: Portcullis, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => randomUUID());
  const { transactions } = p.service.context;
  const more = { nodeId: p.demo.node_id, collection: 'user_transactions', type: 1, assetId: null } as const;
  for (let at = 0; at < count; at += REGISTERED_AT_ONCE) {
    const some = ids.slice(at, at + REGISTERED_AT_ONCE);
    await Promise.all(some.map((id) => transactions.register({ id, ...more })));
  }
  return ids;
}

/** Logs so many events in one batch, three to a transaction. */
export async function logAtOnce(p: Portcullis, count: number): Promise<void> {
  const ids = await registered(p, Math.ceil(count / 3));
  const deliveries = [1, 2, 3].flatMap((status) =>
    ids.map((id) => ({ body: Buffer.from(JSON.stringify(notification({ id, status }))), correlationId: 'at once' })),
  );
  await p.service.context.transactions.applyBatch('transactions.user', deliveries.slice(0, count));
}

/** Notifies of a transaction, as the worker does: through the webhook, until it is taken. */
export async function notify(p: Portcullis, id: string, status: number, more: object = {}): Promise<void> {
  const { username, password } = p.webhook;
  const headers = { authorization: basic(username, password) };
  const json = notification({ id, status, ...more });
  await expect
    .poll(async () => (await p.call('POST', '/v2/webhooks/custodial', { json, headers })).status, WAIT)
    .toBe(200);
}

/** The cursors of the node's log. */
export async function logged(p: Portcullis): Promise<string[]> {
  const events = await p.service.context.database.db
    .forNode(p.demo.node_id)
    .run((k) => k.selectFrom('transaction_events').select('seq').orderBy('seq'));
  return events.map(({ seq }) => seq);
}

/** Waits until the log has so many events, and gives their cursors. */
export async function loggedSoon(p: Portcullis, count: number): Promise<string[]> {
  await vi.waitFor(async () => expect(await logged(p)).toHaveLength(count), WAIT);
  return logged(p);
}

/** Waits until a subscriber has got these, and no others. */
export async function hasGot(live: Live, cursors: readonly string[]): Promise<void> {
  await vi.waitFor(() => expect(live.cursors.length).toBeGreaterThanOrEqual(cursors.length), WAIT);
  expect(live.cursors).toEqual(cursors);
}

/** Wake-ups that are counted as they arrive in a process, and that its readers may be kept from. */
export function countedWakeUps({ dropped }: { dropped: boolean }) {
  const counted = { arrived: 0 };
  const streams = (options: EventStreamsOptions): EventStreamsOptions => ({
    ...options,
    wakeUps: {
      notify: (nodeId, seq) => options.wakeUps.notify(nodeId, seq),
      listen: (listener) =>
        options.wakeUps.listen((nodeId, seq) => {
          counted.arrived += 1;
          if (!dropped) listener(nodeId, seq);
        }),
      stop: () => options.wakeUps.stop(),
    },
  });
  return { counted, streams };
}

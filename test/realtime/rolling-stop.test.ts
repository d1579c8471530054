import { print } from 'graphql';
import { createClient as createSseClient } from 'graphql-sse';
import { createClient as createSocketClient } from 'graphql-ws';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { TransactionUpdatesDocument, type TransactionUpdatesSubscription } from '../graphql/generated/graphql.ts';
import { type Portcullis, startOnRealServers, startReplica } from '../support/harness.ts';
import { loggedSoon, notify, registered } from '../support/realtime/live.ts';
import { type FaultProxy, faultProxy } from '../support/services/fault-proxy.ts';
import { describeReal } from '../support/services/real.ts';

const UPDATES = print(TransactionUpdatesDocument);
const WAIT = { interval: 10 };

/** A subscriber by way of a client library, which comes back by itself; its variables then have the last cursor. */
interface Subscriber {
  cursors: string[];
  /** How its connections have ended. */
  ends: unknown[];
  /** How the subscription has. */
  over: unknown[];
  close(): void;
}

interface Result {
  data?: TransactionUpdatesSubscription | null | undefined;
}

function collector() {
  const variables = { after: '0' };
  const seen = { cursors: [] as string[], ends: [] as unknown[], over: [] as unknown[] };
  const sink = {
    next({ data }: Result) {
      const cursor = data?.transactionUpdates.cursor ?? 'none';
      seen.cursors.push(cursor);
      variables.after = cursor;
    },
    error: (error: unknown) => void seen.over.push(error),
    complete: () => void seen.over.push('complete'),
  };
  return { variables, seen, sink };
}

function overSocket(url: string, token: string): Subscriber {
  const { variables, seen, sink } = collector();
  const client = createSocketClient({
    url: url.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${token}` },
    retryWait: async () => undefined,
    on: { closed: (event) => void seen.ends.push((event as { code: number }).code) },
  });
  client.subscribe<TransactionUpdatesSubscription>({ query: UPDATES, variables }, sink);
  return { ...seen, close: () => void client.dispose() };
}

function overSse(url: string, token: string): Subscriber {
  const { variables, seen, sink } = collector();
  const client = createSseClient({
    url,
    headers: { authorization: `Bearer ${token}` },
    retry: async () => void seen.ends.push('cut'),
  });
  client.subscribe<TransactionUpdatesSubscription>({ query: UPDATES, variables }, sink);
  return { ...seen, close: () => client.dispose() };
}

describeReal(['postgres', 'redis', 'kafka'], 'a graceful stop', () => {
  let p: Portcullis;
  let replica: Portcullis;
  /** What stands before the replicas. */
  let balancer: FaultProxy;

  beforeAll(async () => {
    p = await startOnRealServers();
    replica = await startReplica(p);
    balancer = await faultProxy(Number(new URL(replica.url).port));
  });
  afterAll(async () => {
    await balancer[Symbol.asyncDispose]();
    await p[Symbol.asyncDispose]();
  });

  it('D1-13 D6-10: moves subscribers to another replica, where they continue without gap or duplicate', async () => {
    const token = await p.clientToken();
    const url = `${balancer.urlOf(replica.url)}graphql`;
    const subscribers = [overSocket(url, token), overSse(url, token)];
    const ids = await registered(p, 24);
    const tell = (from: number, to: number) => Promise.all(ids.slice(from, to).map((id) => notify(p, id, 2)));
    await tell(0, 6);
    await vi.waitFor(() => expect(subscribers.map(({ cursors }) => cursors.length)).toEqual([6, 6]), WAIT);
    // Some events come before the stop, some during it and some after it.
    const during = tell(6, 18);
    balancer.targetPort = Number(new URL(p.url).port);
    await replica[Symbol.asyncDispose]();
    await during;
    await tell(18, 24);
    const cursors = await loggedSoon(p, 24);
    await vi.waitFor(() => expect(subscribers.map((one) => one.cursors.length)).toEqual([24, 24]), WAIT);
    for (const subscriber of subscribers) expect(subscriber.cursors).toEqual(cursors);
    expect(subscribers.map(({ over }) => over)).toEqual([[], []]);
    expect(subscribers.map(({ ends }) => ends)).toEqual([[1012], ['cut']]);
    for (const subscriber of subscribers) subscriber.close();
  });
});

import { createRequire } from 'node:module';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { restWhenNothingWaits } from '../../src/lib/fast/kafka-timers.ts';

const load = createRequire(import.meta.url);
const PATHS = ['network/requestQueue', 'network/requestQueue/socketRequest', 'cluster'].map((path) =>
  load.resolve(`kafkajs/src/${path}`),
);
const [QUEUE = '', , CLUSTER = ''] = PATHS;
const REQUEST_TIMEOUT_MS = 1_000;

interface Queue {
  push(request: object): void;
  fulfillRequest(response: object): void;
  rejectAll(error: Error): void;
  maybeThrottle(ms: number): void;
  scheduleRequestTimeoutCheck(): void;
  destroy(): void;
}

type QueueClass = new (options: object) => Queue;

interface Cluster {
  brokerPool: object;
  metadata(of: { topics: string[] }): Promise<unknown>;
}

/** The module as kafkajs has it, in a copy: tests before may have patched the one that the process shares. */
function library<Exported>(path: string): Exported {
  const shared = PATHS.map((each) => load.cache[each]);
  for (const each of PATHS) delete load.cache[each];
  const exported: Exported = load(path);
  for (const [at, each] of PATHS.entries()) {
    if (shared[at]) load.cache[each] = shared[at];
    else delete load.cache[each];
  }
  return exported;
}

function own<Exported>(path: string): Exported {
  restWhenNothingWaits();
  return load(path);
}

/** Returns a request queue that calls `sent` with the id of each request that it sends. */
function queueOf(RequestQueue: QueueClass, sent: (id: number) => void) {
  const log = { namespace: () => log, debug: () => undefined, warn: () => undefined };
  const queue = new RequestQueue({
    maxInFlightRequests: 1,
    requestTimeout: REQUEST_TIMEOUT_MS,
    enforceRequestTimeout: true,
    clientId: '',
    broker: '',
    logger: log,
  });
  // As a connection does once it is open.
  queue.scheduleRequestTimeoutCheck();
  const failed: number[] = [];
  const ask = (id: number, requestTimeout?: number) => {
    const entry = { correlationId: id, resolve: () => undefined, reject: () => failed.push(id) };
    queue.push({ entry, expectResponse: true, requestTimeout, sendRequest: () => sent(id) });
  };
  const answer = (id: number) => queue.fulfillRequest({ correlationId: id, payload: null, size: 0 });
  return { queue, ask, answer, failed };
}

describe.each([
  { way: 'our', load: own, timers: 0, questions: 1 },
  { way: 'the kafkajs', load: library, timers: 2, questions: 2 },
])('requests of a Kafka connection with $way timers', ({ load: loadFrom, timers, questions }) => {
  const queueClass = () => loadFrom<QueueClass>(QUEUE);

  beforeEach(() => {
    vi.useFakeTimers();
    return () => void vi.useRealTimers();
  });

  it(`D6-16: a connection without requests has ${timers} timers`, () => {
    const { ask, answer } = queueOf(queueClass(), () => undefined);
    ask(1);
    answer(1);
    vi.advanceTimersByTime(10_000);
    expect(vi.getTimerCount()).toBe(timers);
  });

  it('D6-16: a request over the in-flight limit is sent when another one is answered', () => {
    const sent: number[] = [];
    const { ask, answer } = queueOf(queueClass(), (id) => sent.push(id));
    ask(1, 60_000);
    ask(2);
    vi.advanceTimersByTime(10_000);
    expect(sent).toEqual([1]);
    answer(1);
    expect(sent).toEqual([1, 2]);
  });

  it('D6-16: a request that a broker throttles is sent when the throttling ends', () => {
    const sent: number[] = [];
    const { queue, ask, answer } = queueOf(queueClass(), (id) => sent.push(id));
    ask(1);
    queue.maybeThrottle(500);
    answer(1);
    vi.advanceTimersByTime(100);
    ask(2);
    vi.advanceTimersByTime(390);
    expect(sent).toEqual([1]);
    vi.advanceTimersByTime(30);
    expect(sent).toEqual([1, 2]);
  });

  it('D6-16: a request without an answer fails when its time is over, and the next one is sent', () => {
    const sent: number[] = [];
    const { ask, failed } = queueOf(queueClass(), (id) => sent.push(id));
    ask(1, 3_000);
    ask(2);
    vi.advanceTimersByTime(2_990);
    expect({ sent, failed }).toEqual({ sent: [1], failed: [] });
    vi.advanceTimersByTime(120);
    expect({ sent, failed }).toEqual({ sent: [1, 2], failed: [1] });
    vi.advanceTimersByTime(REQUEST_TIMEOUT_MS + 110);
    expect(failed).toEqual([1, 2]);
  });

  it('D6-16: a connection that closes while requests wait leaves no timer', () => {
    const { queue, ask, failed } = queueOf(queueClass(), () => undefined);
    ask(1);
    ask(2);
    queue.rejectAll(new Error('closed'));
    queue.destroy();
    expect(failed).toEqual([1, 2]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it(`D6-16: metadata takes ${questions} questions`, async () => {
    const { brokerPool, cluster } = clusterOf(loadFrom(CLUSTER));
    expect(await cluster.metadata({ topics: ['a'] })).toEqual({ topicMetadata: ['a'] });
    expect(brokerPool.questions).toBe(questions);
  });

  it('D6-16: metadata is asked for at another broker when the list of brokers is old', async () => {
    const { brokerPool, cluster } = clusterOf(loadFrom(CLUSTER));
    brokerPool.isOld = true;
    expect(await cluster.metadata({ topics: ['a'] })).toEqual({ topicMetadata: ['a'] });
  });
});

/** A cluster whose brokers have been found before, as its pool of them sees it. */
function clusterOf({ prototype }: { prototype: object }) {
  const broker = {
    metadata: async (topics: string[]) => {
      brokerPool.questions += 1;
      return { topicMetadata: topics };
    },
  };
  const brokerPool = {
    questions: 0,
    isOld: false,
    metadata: {},
    async refreshMetadataIfNecessary(topics: string[]) {
      await broker.metadata(topics);
      this.isOld = false;
    },
    async withBroker(ask: (at: { broker: object }) => unknown) {
      return this.isOld ? null : ask({ broker });
    },
  };
  const retrier = (work: (bail: (error: unknown) => void) => unknown) => work(() => undefined);
  return { brokerPool, cluster: Object.assign(Object.create(prototype), { brokerPool, retrier }) as Cluster };
}

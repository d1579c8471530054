import { createRequire } from 'node:module';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { restWhenNothingWaits } from '../../src/lib/fast/kafka-timers.ts';

const load = createRequire(import.meta.url);
const PATH = load.resolve('kafkajs/src/network/requestQueue');

interface Queue {
  push(request: object): void;
  fulfillRequest(response: object): void;
  maybeThrottle(ms: number): void;
  destroy(): void;
}

type QueueClass = new (options: object) => Queue;

/** The class as kafkajs has it, in a copy of its module: tests before may have patched the one that the process shares. */
function libraryQueue(): QueueClass {
  const shared = load.cache[PATH];
  delete load.cache[PATH];
  const library: QueueClass = load(PATH);
  if (shared) load.cache[PATH] = shared;
  else delete load.cache[PATH];
  return library;
}

function ownQueue(): QueueClass {
  restWhenNothingWaits();
  return load(PATH);
}

/** Returns a request queue that calls `sent` with the id of each request that it sends. */
function queueOf(RequestQueue: QueueClass, sent: (id: number) => void) {
  const log = { namespace: () => log, debug: () => undefined, warn: () => undefined };
  const queue = new RequestQueue({
    maxInFlightRequests: 1,
    requestTimeout: 1_000,
    clientId: '',
    broker: '',
    logger: log,
  });
  const ask = (id: number) => {
    const entry = { correlationId: id, resolve: () => undefined, reject: () => undefined };
    queue.push({ entry, expectResponse: true, sendRequest: () => sent(id) });
  };
  return { queue, ask, answer: (id: number) => queue.fulfillRequest({ correlationId: id, payload: null, size: 0 }) };
}

describe.each([
  { way: 'our', queueClass: ownQueue, timers: 0 },
  { way: 'the kafkajs', queueClass: libraryQueue, timers: 1 },
])('requests of a Kafka connection with $way queue', ({ queueClass, timers }) => {
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
    ask(1);
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

  it('D6-16: a connection that closes while requests wait leaves no timer', () => {
    const { queue, ask } = queueOf(queueClass(), () => undefined);
    ask(1);
    ask(2);
    queue.destroy();
    expect(vi.getTimerCount()).toBe(0);
  });
});

import { createRequire } from 'node:module';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { restWhenNothingWaits } from '../../src/lib/fast/kafka-timers.ts';
import * as library from './library/kafka-timers.ts';

const load = createRequire(import.meta.url);
const PATH = load.resolve('kafkajs/src/network/requestQueue');

interface Queue {
  push(request: object): void;
  fulfillRequest(response: object): void;
  maybeThrottle(ms: number): void;
  destroy(): void;
}

/** A queue of kafkajs as a module of its own has it, `sent` being told the ids of the requests that leave it. */
function queueOf(rest: () => void, sent: (id: number) => void) {
  rest();
  const RequestQueue: new (options: object) => Queue = load(PATH);
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

/** The library first: what replaces it stays replaced. */
describe.each([
  { way: "kafkajs's own", rest: library.restWhenNothingWaits, timers: 1 },
  { way: 'ours', rest: restWhenNothingWaits, timers: 0 },
])('the requests of a connection to Kafka, $way way', ({ rest, timers }) => {
  beforeEach(() => {
    vi.useFakeTimers();
    return () => void vi.useRealTimers();
  });

  it(`a connection that nothing waits for has ${timers} timers`, () => {
    const { ask, answer } = queueOf(rest, () => undefined);
    ask(1);
    answer(1);
    vi.advanceTimersByTime(10_000);
    expect(vi.getTimerCount()).toBe(timers);
  });

  it('a request that waits for another one is sent when that has been answered', () => {
    const sent: number[] = [];
    const { ask, answer } = queueOf(rest, (id) => sent.push(id));
    ask(1);
    ask(2);
    vi.advanceTimersByTime(10_000);
    expect(sent).toEqual([1]);
    answer(1);
    expect(sent).toEqual([1, 2]);
  });

  it('requests that a broker throttles are sent when it lets them', () => {
    const sent: number[] = [];
    const { queue, ask, answer } = queueOf(rest, (id) => sent.push(id));
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

  it('no timer is left of a connection that has ended while requests waited', () => {
    const { queue, ask } = queueOf(rest, () => undefined);
    ask(1);
    ask(2);
    queue.destroy();
    expect(vi.getTimerCount()).toBe(0);
  });
});

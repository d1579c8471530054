import { describe, expect, it } from 'vitest';
import type { LoggedEvent } from '../../src/events/streams/event-log.ts';
import { EventQueue } from '../../src/events/streams/event-queue.ts';
import { ResultStream } from '../../src/lib/fast/result-stream.ts';
import { ResultStream as Mapped } from './library/result-stream.ts';

const END = { done: true, value: undefined };

/** Events that are pushed; whether they were given up is told. */
function source() {
  const queue = new EventQueue();
  queue.goLive(0n);
  const given = { up: 0 };
  const events: AsyncIterableIterator<LoggedEvent, undefined> = {
    next: () => queue.next(),
    async return() {
      given.up += 1;
      queue.end();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]: () => events,
  };
  const push = (seq: bigint) => queue.push({ seq, transaction: {} } as LoggedEvent);
  return { events, push, queue, given };
}

const answerOf = (event: unknown) => ({ data: { seq: String((event as LoggedEvent).seq) } });

describe.each([
  ['by our own stream', ResultStream],
  ['as graphql-js maps them', Mapped as unknown as typeof ResultStream],
])('the answers to the events of a subscription, %s', (_name, Stream) => {
  it('D6-10: come in the order of the events, whether they are there or still to be made', async () => {
    const { events, push } = source();
    const answers = new Stream(events, async (event) => answerOf(event));
    const first = answers.next();
    for (const seq of [1n, 2n]) push(seq);
    expect((await first).value).toEqual({ data: { seq: '1' } });
    expect((await answers.next()).value).toEqual({ data: { seq: '2' } });
  });

  it('end with what the events end with', async () => {
    const { events, queue } = source();
    const answers = new Stream(events, answerOf);
    const next = answers.next();
    const reason = new Error('the token has ended');
    queue.end(reason);
    await expect(next).rejects.toBe(reason);
    expect(await answers.next()).toEqual(END);
  });

  it('end with an event that cannot be answered, and the events are given up', async () => {
    const { events, push, given } = source();
    const fault = new Error('no answer');
    const answers = new Stream(events, () => {
      throw fault;
    });
    push(1n);
    await expect(answers.next()).rejects.toBe(fault);
    expect(given.up).toBe(1);
    expect(await answers.next()).toEqual(END);
  });
});

/** Whether a stream is over for whoever leaves it, while the answer to its first event is being made. */
async function endsAtOnce(Stream: typeof ResultStream): Promise<{ isOver: boolean; givenUp: number }> {
  const { events, push, given } = source();
  const made = Promise.withResolvers<object>();
  const answers = new Stream(events, () => made.promise);
  push(1n);
  const next = answers.next();
  let isOver = false;
  const left = answers.return().then(() => {
    isOver = true;
  });
  await new Promise(setImmediate);
  const ended = { isOver, givenUp: given.up };
  made.resolve({ data: {} });
  await Promise.all([next, left]);
  return ended;
}

describe('whoever leaves while an answer is being made', () => {
  it('is let go at once by our own stream', async () => {
    expect(await endsAtOnce(ResultStream)).toEqual({ isOver: true, givenUp: 1 });
  });

  it('waits for the answer where graphql-js maps the events', async () => {
    expect(await endsAtOnce(Mapped as unknown as typeof ResultStream)).toMatchObject({ isOver: false });
  });
});

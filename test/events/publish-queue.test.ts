import { stat } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { BusUnavailableError } from '../../src/events/bus/event-bus.ts';
import { PublishQueue } from '../../src/events/bus/publish-queue.ts';
import { message } from '../support/events/recorder.ts';

/** A queue over a send that waits until the test lets it go on. */
function gatedQueue(limits: { maxBatchMessages?: number; maxTopicBytes?: number } = {}) {
  const sent: string[][] = [];
  const gates: PromiseWithResolvers<void>[] = [];
  const queue = new PublishQueue({
    maxBatchMessages: 100,
    maxTopicBytes: 10_000,
    singlesAtOnce: 2,
    ...limits,
    send: (messages) => {
      sent.push(messages.map((one) => one.key));
      const gate = Promise.withResolvers<void>();
      gates.push(gate);
      return gate.promise;
    },
  });
  const gate = async (index: number) => {
    await expect.poll(() => gates.length, { interval: 1 }).toBeGreaterThan(index);
    return gates[index] as PromiseWithResolvers<void>;
  };
  return { queue, sent, gate };
}

it('messages published together are sent together; those published during a send wait for the next one', async () => {
  const { queue, sent, gate } = gatedQueue();
  const first = [queue.publish([message('t', 'a')]), queue.publish([message('t', 'b')])];
  const open = await gate(0);
  const second = [queue.publish([message('t', 'c')]), queue.publish([message('t', 'd')])];
  open.resolve();
  await Promise.all(first);
  (await gate(1)).resolve();
  await Promise.all(second);
  expect(sent).toEqual([
    ['a', 'b'],
    ['c', 'd'],
  ]);
});

it('a batch is limited in messages and bytes, and one call is never split', async () => {
  const { queue, sent, gate } = gatedQueue({ maxBatchMessages: 3, maxTopicBytes: 2_000 });
  const large = { value: Buffer.alloc(1_500) };
  const calls = [
    queue.publish([message('t', 'a'), message('t', 'b')]),
    queue.publish([message('t', 'c'), message('t', 'd')]),
    queue.publish([message('t', 'e', large)]),
    queue.publish([message('t', 'f', large)]),
    queue.publish([message('u', 'g', large)]),
  ];
  for (const index of [0, 1, 2]) (await gate(index)).resolve();
  await Promise.all(calls);
  expect(sent).toEqual([
    ['a', 'b'],
    ['c', 'd', 'e'],
    ['f', 'g'],
  ]);
});

it('the messages of a rejected batch are retried one by one, and only those rejected again fail', async () => {
  const { queue, sent, gate } = gatedQueue();
  const calls = ['a', 'b', 'c'].map((key) => queue.publish([message('t', key)]));
  const settled = Promise.allSettled(calls);
  (await gate(0)).reject(new Error('one is too large'));
  (await gate(1)).resolve();
  (await gate(2)).reject(new Error('this one'));
  (await gate(3)).resolve();
  const statuses = (await settled).map((result) => result.status);
  expect(statuses).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(sent).toEqual([['a', 'b', 'c'], ['a'], ['b'], ['c']]);
  await expect(calls[1]).rejects.toThrow(BusUnavailableError);
});

it('the deadline applies during a hanging send and to calls behind it, which are then not sent', async () => {
  const { queue, sent, gate } = gatedQueue();
  const hanging = queue.publish([message('t', 'hanging')], 30);
  const open = await gate(0);
  const waiting = queue.publish([message('t', 'waiting')], 30);
  await expect(hanging).rejects.toThrow(BusUnavailableError);
  await expect(waiting).rejects.toThrow('no acknowledgement in time');
  open.resolve();
  await queue.close();
  expect(sent).toEqual([['hanging']]);
});

it.each([
  ['10,000 messages', 100, Array.from({ length: 100 }, () => message('t', 'k'))],
  ['64 MiB', 63, [message('t', 'k', { value: Buffer.alloc(1024 * 1024) })]],
])('while %s wait, the next calls are rejected at once; later there is room again', async (_what, calls, each) => {
  const { queue, sent, gate } = gatedQueue({ maxBatchMessages: 1_000_000, maxTopicBytes: 2 ** 30 });
  const waiting = Array.from({ length: calls }, () => queue.publish(each, 60_000));
  const open = await gate(0);
  await expect(queue.publish(each, 60_000)).rejects.toThrow('the queue is full');
  await expect(queue.publish(each, 60_000)).rejects.toThrow(BusUnavailableError);
  open.resolve();
  await Promise.all(waiting);
  const next = queue.publish(each, 60_000);
  (await gate(1)).resolve();
  await next;
  expect(sent.map((batch) => batch.length)).toEqual([calls * each.length, each.length]);
});

it('a deadline that has passed rejects at once, and an empty call sends nothing', async () => {
  const { queue, sent } = gatedQueue();
  await expect(queue.publish([message('t', 'a')], 0)).rejects.toThrow(BusUnavailableError);
  await queue.publish([]);
  await setTimeout(1);
  expect(sent).toEqual([]);
});

it('close sends what is queued and accepts nothing more', async () => {
  const { queue, sent, gate } = gatedQueue();
  const queued = queue.publish([message('t', 'a')]);
  const closed = queue.close();
  await expect(queue.publish([message('t', 'b')])).rejects.toThrow('the bus is stopped');
  (await gate(0)).resolve();
  await Promise.all([queued, closed]);
  expect(sent).toEqual([['a']]);
});

it('7.3-01: an acknowledgement received while the process was suspended counts before the deadline is checked', async () => {
  const stillness = new Int32Array(new SharedArrayBuffer(4));
  const queue = new PublishQueue({
    maxBatchMessages: 100,
    maxTopicBytes: 10_000,
    singlesAtOnce: 2,
    send: async () => {
      const answered = stat(import.meta.dirname);
      Atomics.wait(stillness, 0, 0, 200);
      await answered;
    },
  });
  await queue.publish([message('t', 'a')], 100);
});

import { expect, it } from 'vitest';
import type { LoggedEvent } from '../../src/events/streams/event-log.ts';
import { EventQueue } from '../../src/events/streams/event-streams.ts';
import { settle } from '../support/realtime/model.ts';

const eventAt = (seq: number): LoggedEvent<object> => ({
  seq: BigInt(seq),
  transaction_id: 'a',
  correlation_id: '',
  traceparent: null,
  occurred_at: '2026-11-29T10:00:00Z',
  previous_status: null,
  status: 1,
  transaction: {},
});

it('D6-10: who resumes during a burst has taken the live events when they are taken, not when the replayed ones are', async () => {
  const queue = new EventQueue<object>();
  queue.replay(eventAt(1));
  for (let seq = 2; seq <= 4; seq += 1) queue.push(eventAt(seq));
  queue.goLive(1n);
  let isTaken = false;
  void queue.whenTaken()?.then(() => {
    isTaken = true;
  });
  for (const isLast of [false, false, false, true]) {
    await queue.next();
    await settle();
    expect(isTaken).toBe(isLast);
  }
});

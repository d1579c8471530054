import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { SlowConsumerError } from '../../src/events/streams/event-log.ts';
import { Gate, modelStreams, NODE, Reader, seqs, settle } from '../support/realtime/model.ts';

describe('the tailer of a node', () => {
  it('D6-10: is shared by all subscribers, starts with the first and stops with the last', async () => {
    const { log, clock, streams, subscribe, write } = modelStreams();
    const all = Array.from({ length: 50 }, () => subscribe());
    const readers = all.map((stream) => new Reader(stream));
    await settle();
    expect(streams.load).toEqual({ streams: 50, tailers: 1 });
    const before = log.reads;
    await write(3);
    expect(log.reads - before).toBe(1);
    expect(readers.map((reader) => reader.seqs)).toEqual(readers.map(() => seqs(1, 3)));
    for (const stream of all) await stream.return();
    expect(streams.load).toEqual({ streams: 0, tailers: 0 });
    const after = log.reads;
    await write();
    clock.advance(10_000);
    await settle();
    expect(log.reads).toBe(after);
  });

  it('D6-10: one poll asks for all tenants, and reads only the logs that have grown without a wake-up', async () => {
    const { log, clock, streams, subscribe } = modelStreams();
    const tenants = Array.from({ length: 100 }, (_, n) => `tenant ${n}`);
    const readers = tenants.map((nodeId) => new Reader(subscribe({ nodeId })));
    await settle();
    const readsOf = async (ms: number) => {
      const before = log.reads;
      clock.advance(ms);
      await settle();
      return log.reads - before;
    };
    expect([await readsOf(1_000), await readsOf(1_000)]).toEqual([1, 1]);
    log.append('tenant 7', 2);
    expect(await readsOf(1_000)).toBe(2);
    expect(readers.flatMap((reader, n) => (reader.seqs.length > 0 ? [[n, reader.seqs]] : []))).toEqual([
      [7, seqs(1, 2)],
    ]);
    streams.stop();
    expect(clock.timers).toBe(0);
  });

  it('D6-10: never has two reads in progress; wake-ups during a read cause one more', async () => {
    const { log, subscribe, write } = modelStreams();
    const reader = new Reader(subscribe());
    await settle();
    const gate = new Gate();
    log.reading = gate.reading;
    log.mostInFlight = 0;
    const before = log.reads;
    for (let i = 0; i < 20; i += 1) await write();
    expect(log.reads - before).toBe(1);
    await gate.letOne();
    await gate.letOne();
    expect(log.reads - before).toBe(2);
    expect(log.mostInFlight).toBe(1);
    expect(reader.seqs).toEqual(seqs(1, 20));
  });

  it('D6-10: a wake-up for an event it has already read causes no read', async () => {
    const { log, wakeUps, subscribe, write } = modelStreams();
    new Reader(subscribe());
    await settle();
    await write(2);
    const before = log.reads;
    wakeUps.notify(NODE, 2n);
    wakeUps.notify('another node', 7n);
    await settle();
    expect(log.reads).toBe(before);
  });

  it('D6-11: a subscriber of one transaction gets its events, and its filter is not called for others', async () => {
    const { streams, subscribe, write } = modelStreams();
    const asked: string[] = [];
    const follow = (transactionId: string) =>
      subscribe({
        transactionId,
        matches: (event) => {
          asked.push(`${transactionId} ${event.transaction_id}`);
          return event.transaction_id === transactionId;
        },
      });
    const all = new Reader(subscribe());
    const [first, second, other] = [follow('t2'), follow('t2'), follow('t3')];
    const readers = [first, second, other].map((stream) => new Reader(stream));
    await settle();
    await write(4);
    expect(all.seqs).toEqual(seqs(1, 4));
    expect(readers.map((reader) => reader.seqs)).toEqual([[2n], [2n], [3n]]);
    expect(asked).toEqual(['t2 t2', 't2 t2', 't3 t3']);
    await first.return();
    await write(1);
    expect(streams.load).toEqual({ streams: 3, tailers: 1 });
    streams.stop();
    expect(streams.load).toEqual({ streams: 0, tailers: 0 });
  });

  it('D6-10: finds events without a wake-up within a second', async () => {
    const { log, clock, subscribe } = modelStreams();
    const reader = new Reader(subscribe());
    await settle();
    log.append(NODE, 2);
    clock.advance(999);
    await settle();
    expect(reader.seqs).toEqual([]);
    clock.advance(1);
    await settle();
    expect(reader.seqs).toEqual([1n, 2n]);
  });

  it.each([
    ['many events', 3_000, ''],
    ['long events', 300, 'x'.repeat(10_000)],
  ])(
    'D6-19: %s at once are delivered as they are read; a subscriber that does not read is closed after a wait',
    async (_name, count, text) => {
      const { clock, subscribe, write } = modelStreams();
      const [lively, silent] = [subscribe(), subscribe()];
      const seen: bigint[] = [];
      const reading = (async () => {
        for await (const { seq } of lively) {
          seen.push(seq);
          await nextTurn();
          if (seen.length === count) return;
        }
      })();
      await settle();
      await write(count, { text });
      for (let turn = 1; !silent.signal.aborted; turn += 1) {
        await nextTurn();
        if (turn % (2 * count) === 0) clock.advance(1_000);
      }
      await reading;
      expect(seen).toEqual(seqs(1, count));
      await expect(silent.next()).rejects.toThrow(SlowConsumerError);
    },
  );

  it('D6-19: a subscriber that reads more slowly than events arrive is closed, and others get every event', async () => {
    const { clock, subscribe, write } = modelStreams();
    const [lively, slow] = [subscribe(), subscribe()];
    const fast = new Reader(lively);
    await settle();
    await write(3_000);
    let logged = 3_000;
    let taken = 0;
    const tenths = 80;
    for (let tenth = 0; tenth < tenths && !slow.signal.aborted; tenth += 1) {
      for (let n = 0; n < 40 && !slow.signal.aborted; n += 1) {
        await slow.next();
        taken += 1;
      }
      clock.advance(100);
      await write(100);
      logged += 100;
    }
    expect(slow.signal.aborted).toBe(true);
    expect(taken).toBeLessThan(logged);
    for (let turn = 0; turn < 100; turn += 1) await settle();
    expect(fast.seqs).toEqual(seqs(1, logged));
  });

  it('D6-10: an outage of the log delays events, loses and repeats none, and is reported once', async () => {
    const { log, clock, errors, subscribe, write } = modelStreams();
    const reader = new Reader(subscribe());
    await settle();
    await write(2);
    const outage = new Error('the database is away');
    log.reading = async () => {
      throw outage;
    };
    const late = new Reader(subscribe({ after: 1n }));
    for (let second = 0; second < 10; second += 1) {
      await write();
      clock.advance(1_000);
    }
    await settle();
    expect(errors).toEqual([outage]);
    log.reading = async (read) => read();
    for (let second = 0; second < 3; second += 1) {
      clock.advance(1_000);
      await settle();
    }
    expect(reader.seqs).toEqual(seqs(1, 12));
    expect(late.seqs).toEqual(seqs(2, 12));
  });

  it('D6-10: a new subscriber gets nothing older, even if the tailer has not read it yet', async () => {
    const { log, clock, subscribe } = modelStreams();
    const first = new Reader(subscribe());
    await settle();
    log.append(NODE, 3);
    const stream = subscribe();
    const reader = new Reader(stream);
    expect(await stream.started).toBe(3n);
    log.append(NODE, 1);
    clock.advance(1_000);
    await settle();
    expect(first.seqs).toEqual(seqs(1, 4));
    expect(reader.seqs).toEqual([4n]);
  });
});

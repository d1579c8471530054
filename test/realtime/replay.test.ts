import { describe, expect, it } from 'vitest';
import { CursorExpiredError, SlowConsumerError } from '../../src/events/streams/event-log.ts';
import { serviceUnavailable } from '../../src/platform/errors.ts';
import { Gate, modelStreams, NODE, Reader, seqs, settle } from '../support/realtime/model.ts';

describe('a replay of the event log', () => {
  it.each([
    ['the last deleted event', 10n, seqs(11, 20)],
    ['a stored event', 15n, seqs(16, 20)],
    ['the head', 20n, []],
    ['the beginning', 0n, seqs(11, 20)],
  ])('D6-10 D6-14: after %s it returns the stored events that follow', async (_, after, expected) => {
    const { log, subscribe } = modelStreams();
    log.append(NODE, 20);
    log.purge(NODE, 10n);
    const reader = new Reader(subscribe({ after }));
    await settle();
    expect(reader.seqs).toEqual(expected);
  });

  it.each([
    ['an event before the last deleted one', 9n],
    ['the first event', 1n],
    ['an event that never existed', 21n],
  ])('D6-17: after %s it ends with CursorExpiredError', async (_, after) => {
    const { log, subscribe } = modelStreams();
    log.append(NODE, 20);
    log.purge(NODE, 10n);
    const reader = new Reader(subscribe({ after }));
    expect(await reader.done).toBeInstanceOf(CursorExpiredError);
    expect(reader.seqs).toEqual([]);
  });

  it('D6-17: from an empty log, only the head and the beginning continue; earlier cursors are expired', async () => {
    const { log, subscribe, write } = modelStreams();
    log.append(NODE, 20);
    log.purge(NODE, 20n);
    const [atHead, atStart, before] = [20n, 0n, 19n].map((after) => new Reader(subscribe({ after })));
    await settle();
    await write();
    expect(await before?.done).toBeInstanceOf(CursorExpiredError);
    expect(atHead?.seqs).toEqual([21n]);
    expect(atStart?.seqs).toEqual([21n]);
  });

  it('D6-17: events deleted while it is read end it with CursorExpiredError instead of leaving a gap', async () => {
    const { log, subscribe } = modelStreams();
    log.append(NODE, 1_500);
    const stream = subscribe({ after: 0n });
    await settle();
    log.purge(NODE, 700n);
    const reader = new Reader(stream);
    expect(await reader.done).toBeInstanceOf(CursorExpiredError);
    expect(reader.seqs).toEqual(seqs(1, 50));
  });

  it('D6-10: a sequence number missing from the middle of the log is not a gap', async () => {
    const { log, subscribe } = modelStreams();
    log.append(NODE, 4);
    const moved = log.kept(NODE)[2];
    log.purge(NODE, 4n);
    log.append(NODE, 2);
    expect(moved?.seq).toBe(3n);
    const reader = new Reader(subscribe({ after: 4n }));
    await settle();
    expect(reader.seqs).toEqual([5n, 6n]);
  });

  it('D6-10 D6-24: at most eight pages are read at once, four of a tenant, and an idle reader does not block others', async () => {
    const { log, subscribe } = modelStreams();
    for (const nodeId of [NODE, 'other']) log.append(nodeId, 1_200);
    const idle = Array.from({ length: 20 }, () => subscribe({ after: 0n }));
    await settle();
    const gate = new Gate();
    log.reading = gate.reading;
    log.mostInFlight = 0;
    const readersOf = (nodeId: string) =>
      Array.from({ length: 20 }, () => new Reader(subscribe({ nodeId, after: 0n })));
    const readers = readersOf(NODE);
    await settle();
    expect(gate.held).toBe(4);
    readers.push(...readersOf('other'));
    await settle();
    expect(gate.held).toBe(8);
    while (gate.held > 0) await gate.letOne();
    expect(readers.map((reader) => reader.events.length)).toEqual(readers.map(() => 1_200));
    // The tailers' own reads come on top.
    expect(log.mostInFlight).toBeLessThanOrEqual(10);
    expect(idle.some((stream) => stream.signal.aborted)).toBe(false);
  });

  it('D6-24: reads rejected because of overload delay it, and are not reported as an outage', async () => {
    const { log, clock, errors, subscribe } = modelStreams();
    log.append(NODE, 3);
    let refusals = 3;
    log.reading = async (read) => {
      refusals -= 1;
      if (refusals >= 0) throw serviceUnavailable();
      return read();
    };
    const reader = new Reader(subscribe({ after: 0n }));
    await settle();
    expect(refusals).toBe(2);
    for (let second = 0; second < 3; second += 1) {
      clock.advance(1_000);
      await settle();
    }
    expect(reader.seqs).toEqual(seqs(1, 3));
    expect(errors).toEqual([]);
  });

  it('D6-24: a replay whose reads are rejected for 10 s ends with SlowConsumerError', async () => {
    const { log, clock, streams, subscribe } = modelStreams();
    log.append(NODE, 3);
    log.reading = async () => {
      throw serviceUnavailable();
    };
    const readers = Array.from({ length: 9 }, () => new Reader(subscribe({ after: 0n })));
    await settle();
    for (let second = 0; second < 9; second += 1) {
      clock.advance(1_000);
      await settle();
    }
    expect(streams.load.streams).toBe(9);
    for (let second = 0; second < 2; second += 1) {
      clock.advance(1_000);
      await settle();
    }
    for (const { done } of readers) expect(await done).toBeInstanceOf(SlowConsumerError);
    expect([streams.load, clock.timers]).toEqual([{ streams: 0, tailers: 0 }, 0]);
  });

  it('D6-19: of long events at most a mebibyte and one event are buffered for a reader that does not read', async () => {
    const { log, subscribe } = modelStreams();
    log.append(NODE, 20, { text: 'x'.repeat(300_000) });
    const stream = subscribe({ after: 0n });
    await settle();
    for (const seq of seqs(1, 3)) expect(await stream.next()).toMatchObject({ value: { seq } });
    await settle();
    expect(log.reads).toBe(1);
    expect(await stream.next()).toMatchObject({ value: { seq: 4n } });
    await settle();
    expect(log.reads).toBe(2);
    const reader = new Reader(stream);
    await settle();
    expect(reader.seqs).toEqual(seqs(5, 20));
    log.append(NODE, 600, { text: 'x'.repeat(3_000) });
    const late = new Reader(subscribe({ after: 0n }));
    await settle();
    expect(late.seqs).toEqual(seqs(1, 620));
  });

  it('D6-10: a reader that leaves while it waits to read does not block the others', async () => {
    const { log, streams, subscribe } = modelStreams();
    log.append(NODE, 3);
    const gate = new Gate();
    log.reading = gate.reading;
    const all = Array.from({ length: 20 }, () => subscribe({ after: 0n }));
    await settle();
    for (const stream of all) await stream.return();
    expect(streams.load).toEqual({ streams: 0, tailers: 0 });
    const reader = new Reader(subscribe({ after: 0n }));
    while (gate.held > 0) await gate.letOne();
    expect(reader.seqs).toEqual(seqs(1, 3));
  });
});

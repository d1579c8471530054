import { describe, expect, it } from 'vitest';
import { SlowConsumerError, StreamStoppedError } from '../../src/events/streams/event-log.ts';
import { kindOf, modelStreams, NODE, Reader, settle } from '../support/realtime/model.ts';

const NOTHING = { streams: 0, tailers: 0 };
const DONE = { done: true, value: undefined };
const KIBIBYTE = { text: 'x'.repeat(1_024) };

describe('the end of a stream', () => {
  it('D6-19: a reader may be 1,000 events behind; with one more it gets SlowConsumerError', async () => {
    const { streams, subscribe, writePast } = modelStreams();
    const stream = subscribe();
    await settle();
    await writePast(1_000);
    expect(await stream.next()).toMatchObject({ value: { seq: 1n } });
    await writePast(1);
    expect(stream.signal.aborted).toBe(false);
    await writePast(1);
    await expect(stream.next()).rejects.toThrow(SlowConsumerError);
    expect(await stream.next()).toEqual(DONE);
    expect(streams.load).toEqual(NOTHING);
  });

  it('D6-19: a reader may be a mebibyte behind, and no more', async () => {
    const { subscribe, writePast } = modelStreams();
    const stream = subscribe();
    await settle();
    await writePast(800, KIBIBYTE);
    expect(stream.signal.aborted).toBe(false);
    await writePast(100, KIBIBYTE);
    await expect(stream.next()).rejects.toThrow(SlowConsumerError);
  });

  it('D6-19: only events that match the filter count, and only until they are read', async () => {
    const { subscribe, writePast } = modelStreams();
    const picky = subscribe({ matches: (event) => kindOf(event) === 1 });
    const reader = new Reader(subscribe());
    await settle();
    for (let i = 0; i < 5; i += 1) await writePast(450, KIBIBYTE);
    expect(picky.signal.aborted).toBe(false);
    expect(reader.events).toHaveLength(2_250);
    await writePast(1_000, KIBIBYTE);
    await expect(picky.next()).rejects.toThrow(SlowConsumerError);
  });

  it('D6-19: a slow reader of a replay is not closed: no page is read before the previous one is consumed', async () => {
    const { log, subscribe } = modelStreams();
    log.append(NODE, 5_000, KIBIBYTE);
    const stream = subscribe({ after: 0n });
    await settle();
    expect(log.reads).toBe(1);
    const reader = new Reader(stream);
    await settle();
    expect(reader.events).toHaveLength(5_000);
  });

  it('return() ends the stream at once, even for a waiting reader, and frees everything', async () => {
    const { clock, streams, subscribe, write } = modelStreams();
    const stream = subscribe();
    await settle();
    const waiting = stream.next();
    expect(await stream.return()).toEqual(DONE);
    expect(await waiting).toEqual(DONE);
    await write();
    expect(await stream.next()).toEqual(DONE);
    expect(streams.load).toEqual(NOTHING);
    expect(clock.timers).toBe(0);
  });

  it('a stream that is left while its last page is filtered delivers nothing and frees everything', async () => {
    const { log, clock, streams, subscribe } = modelStreams();
    log.append(NODE, 3);
    const matches = () => {
      void stream.return();
      return true;
    };
    const stream = subscribe({ after: 0n, matches });
    const reader = new Reader(stream);
    expect(await reader.done).toBeUndefined();
    await settle();
    expect(reader.seqs).toEqual([]);
    expect(streams.load).toEqual(NOTHING);
    expect(clock.timers).toBe(0);
  });

  it('stop() ends every stream with StreamStoppedError, later ones too', async () => {
    const { clock, streams, subscribe } = modelStreams();
    const reader = new Reader(subscribe());
    await settle();
    streams.stop();
    expect(await reader.done).toBeInstanceOf(StreamStoppedError);
    await expect(subscribe().next()).rejects.toThrow(StreamStoppedError);
    expect(streams.load).toEqual(NOTHING);
    expect(clock.timers).toBe(0);
  });

  it('D6-10: a sender that throws ends only its own stream', async () => {
    const { subscribe, write } = modelStreams();
    const fault = new Error('fault of a sender');
    const faulty = subscribe();
    faulty.sendEventNow = () => {
      throw fault;
    };
    const readers = [faulty, subscribe()].map((stream) => new Reader(stream));
    await settle();
    await write(2);
    expect(await readers[0]?.done).toBe(fault);
    expect(readers.map(({ events }) => events.length)).toEqual([0, 2]);
  });

  it('a filter that throws ends only its own stream', async () => {
    const { subscribe, write } = modelStreams();
    const fault = new Error('fault of a filter');
    const faulty = new Reader(
      subscribe({
        matches: () => {
          throw fault;
        },
      }),
    );
    const reader = new Reader(subscribe());
    await settle();
    await write(2);
    expect(await faulty.done).toBe(fault);
    expect(reader.seqs).toEqual([1n, 2n]);
  });
});

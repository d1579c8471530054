import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  BusUnavailableError,
  type IncomingMessage,
  PoisonError,
  withDeadLetters,
} from '../../src/events/bus/event-bus.ts';
import { ObservedBus } from '../../src/events/bus/observed-bus.ts';
import { type Log, silentLog } from '../../src/lib/log.ts';
import { busByHand, message } from '../support/events/recorder.ts';

const TOPIC = 'topic';
/** The failures after which a batch is taken apart, and one less. */
const [TRACED, NOT_TRACED] = [8, 7];

function incoming(key: string, text: string, topic = TOPIC): IncomingMessage {
  return {
    ...message(topic, key, { value: Buffer.from(text), headers: { 'correlation-id': 'c' } }),
    partition: 3,
    offset: '42',
    timestampMs: 0,
  };
}

/** A consumer that throws what `errors` has for a text, and keeps the texts that it has applied. */
function consumer(errors: Record<string, () => unknown>) {
  const { bus, published } = busByHand();
  const publish = vi.spyOn(bus, 'publish');
  const applied: string[] = [];
  const handle = withDeadLetters(bus, async (batch) => {
    const texts = batch.map(({ value }) => String(value));
    for (const text of texts) if (errors[text]) throw errors[text]();
    applied.push(...texts);
    return texts.some((text) => text !== 'of no concern');
  });
  const dead = () => published.map(({ value }) => String(value));
  return { handle, applied, published, publish, dead };
}

const bug = () => new TypeError("cannot read 'secret'");

describe('an error that no one expects', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
  afterEach(() => void vi.useRealTimers());

  it('D6-18: repeats the whole batch until it has failed eight times', async () => {
    const { handle, applied, dead } = consumer({ bad: bug });
    const batch = [incoming('a', 'bad'), incoming('b', 'good')];
    for (const failures of [undefined, 1, NOT_TRACED]) await expect(handle(batch, failures)).rejects.toThrow(TypeError);
    expect([applied, dead()]).toEqual([[], []]);
  });

  it('D6-18: then becomes a dead letter with its name alone and its cause for the log; the others are applied', async () => {
    const { handle, applied, published, publish } = consumer({ bad: bug });
    await handle([incoming('a', 'bad'), incoming('b', 'good'), incoming('c', 'better')], TRACED);
    expect(applied).toEqual(['good', 'better']);
    expect(published).toEqual([
      {
        topic: `${TOPIC}.dlq`,
        key: 'a',
        value: Buffer.from('bad'),
        headers: {
          'correlation-id': 'c',
          error: 'unexpected TypeError',
          'original-topic': TOPIC,
          'original-partition': '3',
          'original-offset': '42',
        },
      },
    ]);
    expect(publish.mock.calls[0]?.[1]).toEqual({ cause: expect.any(TypeError) });
  });

  it('D6-18: names the SQLSTATE of a statement that the database does not understand', async () => {
    const { handle, published } = consumer({ bad: () => Object.assign(new Error('near "x"'), { code: '42601' }) });
    await handle([incoming('a', 'bad'), incoming('b', 'good')], TRACED);
    expect(published[0]?.headers.error).toBe('unexpected Error 42601');
  });

  it('D6-18: keeps the order of messages with the same key', async () => {
    const errors: Record<string, () => unknown> = { 'a 1': bug };
    const { handle, applied, dead } = consumer(errors);
    const batch = ['a 0', 'a 1', 'a 2', 'b 1', 'b 2'].map((text) => incoming(text.charAt(0), text));
    const handling = handle(batch, TRACED);
    await handling;
    expect(applied).toEqual(['a 0', 'b 1', 'b 2', 'a 2']);
    expect(dead()).toEqual(['a 1']);
  });

  it('D6-18: that every message meets makes no dead letters: the batch is repeated', async () => {
    const { handle, applied, dead } = consumer({ bad: bug, worse: bug });
    const batch = [incoming('a', 'bad'), incoming('b', 'worse')];
    for (const failures of [TRACED, 100, 1_000]) await expect(handle(batch, failures)).rejects.toThrow(TypeError);
    expect([applied, dead()]).toEqual([[], []]);
  });

  it('D6-18: that every message of this topic meets makes no dead letters, though others pass', async () => {
    const { handle, dead } = consumer({ bad: bug });
    await handle([incoming('a', 'good', 'another topic')]);
    const batch = [incoming('a', 'bad'), incoming('b', 'of no concern'), incoming('c', 'bad')];
    await expect(handle(batch, TRACED)).rejects.toThrow(TypeError);
    expect(dead()).toEqual([]);
  });

  it('D6-18: of a message alone is proven by another message of the topic, of any partition, within ten seconds', async () => {
    const { handle, dead } = consumer({ bad: bug });
    const batch = [incoming('a', 'bad')];
    await handle([incoming('b', 'good')]);
    vi.advanceTimersByTime(10_001);
    await expect(handle(batch, TRACED)).rejects.toThrow(TypeError);
    await handle([incoming('b', 'good')]);
    vi.advanceTimersByTime(9_999);
    await handle(batch, TRACED);
    expect(dead()).toEqual(['bad']);
  });

  it('D6-18: is found behind a message that cannot be parsed', async () => {
    const { handle, applied, dead } = consumer({ poison: () => new PoisonError('no JSON'), bad: bug });
    await handle([incoming('p', 'poison'), incoming('a', 'bad'), incoming('b', 'good')], TRACED);
    expect(applied).toEqual(['good']);
    expect(dead()).toEqual(['poison', 'bad']);
  });

  it.each(
    [
      ['08006', '25006', '28P01', '40001', '42501', '53100', '55P03', '57014', '58030'].map((code) =>
        Object.assign(new Error('away'), { code }),
      ),
      new BusUnavailableError('away'),
      Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }),
      new Error('Connection terminated unexpectedly'),
    ].flat(),
  )('D6-18: is not one of a store: the batch is repeated after any number of failures (%s)', async (error) => {
    const { handle, dead } = consumer({ bad: () => error });
    const batch = [incoming('b', 'good'), incoming('a', 'bad')];
    await expect(handle(batch, 1_000)).rejects.toThrow(error.message);
    expect(dead()).toEqual([]);
  });

  it('D6-18: repeats the batch if its dead letter cannot be published', async () => {
    const { handle, publish } = consumer({ bad: bug });
    publish.mockRejectedValueOnce(new BusUnavailableError('down'));
    const batch = [incoming(randomUUID(), 'bad'), incoming('b', 'good')];
    await expect(handle(batch, TRACED)).rejects.toThrow('down');
    await handle(batch, TRACED + 1);
    expect(publish).toHaveBeenCalledTimes(2);
  });

  it('D6-18: is logged with its stack, and its dead letter is counted', async () => {
    const hand = busByHand();
    const error = vi.fn();
    const observed = new ObservedBus({ bus: hand.bus, tracer: undefined, log: { ...silentLog, error } as Log });
    const handle = withDeadLetters(observed, async ([first]) => {
      if (String(first?.value) === 'bad') throw bug();
    });
    await observed.subscribe({ groupId: 'g', topics: [TOPIC], handle });
    await hand.handle(TOPIC, [incoming('a', 'bad'), incoming('b', 'good')], TRACED);
    expect(error.mock.calls).toEqual([
      [
        expect.objectContaining({
          topic: TOPIC,
          offset: '42',
          cause: 'unexpected TypeError',
          err: expect.any(TypeError),
        }),
        'could not apply a message; moved it to the dead letters',
      ],
    ]);
    const dead = observed.metrics.find((metric) => 'name' in metric && metric.name === 'portcullis_dead_letters_total');
    expect((await dead?.get())?.values).toMatchObject([{ value: 1 }]);
  });
});

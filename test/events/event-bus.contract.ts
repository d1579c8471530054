import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { deadLetterTopicOf, type EventBus, PoisonError, withDeadLetters } from '../../src/events/bus/event-bus.ts';
import { message, Recorder } from '../support/events/recorder.ts';

/** A store or cluster that outlives the buses on it. */
export interface BusFixture {
  /** A new instance, as after a restart of the process. */
  open(): EventBus;
  /** Makes topics as small as they may be, where making them is dear. */
  makeTopics?(topics: string[]): Promise<void>;
}

/** What every event bus promises, whatever carries it. `fixture` is asked in each test. */
export function eventBusContract(fixture: () => BusFixture, isThorough: boolean): void {
  const CALLS = isThorough ? 2_000 : 600;
  const ROUNDS = isThorough ? 20 : 6;
  let bus: EventBus;
  let topic: string;
  let other: string;

  beforeEach(async () => {
    topic = `first.${randomUUID()}`;
    other = `second.${randomUUID()}`;
    bus = fixture().open();
    const topics = [topic, other, deadLetterTopicOf(topic)];
    await fixture().makeTopics?.(topics);
    await bus.ensureTopics(topics);
  });
  afterEach(() => bus.stop());

  it('every group receives each message of its topics once', async () => {
    const [one, two] = [new Recorder(), new Recorder()];
    await one.follow(bus, [topic, other]);
    await two.follow(bus, topic);
    await bus.publish([message(topic, 'a'), message(other, 'b')]);
    await bus.publish([message(topic, 'c')]);
    await Promise.all([one.count(3), two.count(2)]);
    expect(one.messages.map((seen) => [seen.topic, seen.key]).sort()).toEqual(
      [
        [topic, 'a'],
        [topic, 'c'],
        [other, 'b'],
      ].sort(),
    );
    expect(two.keys.sort()).toEqual(['a', 'c']);
  });

  it('messages of one key arrive in the order of publication', async () => {
    const recorder = new Recorder();
    const keys = ['x', 'y', 'z'];
    await recorder.follow(bus, topic);
    for (let round = 0; round < ROUNDS; round += 1) {
      await bus.publish(keys.map((key) => message(topic, key, { value: Buffer.from(String(round)) })));
    }
    await recorder.count(keys.length * ROUNDS);
    const inOrder = Array.from({ length: ROUNDS }, (_, round) => String(round));
    for (const key of keys) {
      const texts = recorder.messages.filter((seen) => seen.key === key).map((seen) => seen.value?.toString());
      expect(texts).toEqual(inOrder);
    }
  });

  it.each([
    ['U+0000 and bytes that are not UTF-8', Buffer.from([0, 0xff, 0xfe, 0x80, 0x5c, 0x22, 0]), { 'event-id': 'x' }],
    ['no bytes and no headers', Buffer.alloc(0), {}],
    ['a tombstone', null, { note: '' }],
    [
      'JSON with unusual formatting',
      Buffer.from('{ "a":\n1e400, "b":"\\u0000ü" }'),
      { 'x-ü': '„ü“ \\ " {} ,', null: 'null' },
    ],
    ['200 KiB', Buffer.alloc(200 * 1024, 'portcullis'), { 'correlation-id': 'c'.repeat(1_024) }],
  ])('D6-16: value and headers arrive unchanged: %s', async (_name, value, headers) => {
    const recorder = new Recorder();
    await bus.publish([message(topic, 'key "\\ ü', { value, headers })]);
    await recorder.follow(bus, topic);
    await recorder.count(1);
    expect(recorder.messages).toEqual([
      {
        topic,
        partition: expect.any(Number),
        offset: expect.stringMatching(/^\d+$/),
        timestampMs: expect.any(Number),
        key: 'key "\\ ü',
        value,
        headers,
      },
    ]);
  });

  it('a failed batch is delivered again until it succeeds, and no later message overtakes it', async () => {
    const recorder = new Recorder(2);
    await recorder.follow(bus, topic);
    await bus.publish([message(topic, 'k', { value: Buffer.from('1') })]);
    await bus.publish([message(topic, 'k', { value: Buffer.from('2') })]);
    await recorder.count(2);
    expect(recorder.texts).toEqual(['1', '2']);
    expect(recorder.attempts.length).toBeGreaterThanOrEqual(3);
  });

  it('D6-18: a handler is told how often in a row it has failed before', async () => {
    const seen: (number | undefined)[] = [];
    await bus.publish([message(topic, 'k')]);
    await bus.subscribe({
      groupId: 'readers',
      topics: [topic],
      handle: async (_batch, failures) => {
        seen.push(failures);
        if (seen.length < 3) throw new TypeError('a bug');
      },
    });
    await vi.waitFor(() => expect(seen).toEqual([0, 1, 2]));
    await bus.publish([message(topic, 'k')]);
    await vi.waitFor(() => expect(seen).toEqual([0, 1, 2, 0]));
  });

  it('a group that stops resumes where it stopped', async () => {
    const [before, after] = [new Recorder(), new Recorder()];
    const first = await before.follow(bus, topic, 'readers');
    await bus.publish([message(topic, 'a')]);
    await before.count(1);
    await first.stop();
    await bus.publish([message(topic, 'b')]);
    await after.follow(bus, topic, 'readers');
    await after.count(1);
    expect(before.keys).toEqual(['a']);
    expect(after.keys).toEqual(['b']);
  });

  it('a restart neither loses a message nor repeats a processed one', async () => {
    const [before, after] = [new Recorder(), new Recorder()];
    await before.follow(bus, topic, 'readers');
    await bus.publish([message(topic, 'a'), message(topic, 'b')]);
    await before.count(2);
    await bus.stop();
    bus = fixture().open();
    await bus.publish([message(topic, 'c')]);
    await after.follow(bus, topic, 'readers');
    await after.count(1);
    expect(after.keys).toEqual(['c']);
  });

  it('stop waits for the running handler, whose batch is then acknowledged', async () => {
    const [entered, gate, after] = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), new Recorder()];
    let effects = 0;
    const subscription = await bus.subscribe({
      groupId: 'readers',
      topics: [topic],
      handle: async () => {
        entered.resolve();
        await gate.promise;
        effects += 1;
      },
    });
    await bus.publish([message(topic, 'a')]);
    await entered.promise;
    const stopped = subscription.stop().then(() => effects);
    gate.resolve();
    expect(await stopped).toBe(1);
    await bus.publish([message(topic, 'b')]);
    await after.follow(bus, topic, 'readers');
    await after.count(1);
    expect(after.keys).toEqual(['b']);
  });

  it('D6-18: a poison message goes to the dead letters with its headers and origin, and its neighbours are processed', async () => {
    const [recorder, letters] = [new Recorder(), new Recorder()];
    const handle = withDeadLetters(bus, async (batch) => {
      if (batch.some((one) => one.value?.includes('poison'))) throw new PoisonError('not\0 to be read');
      await recorder.handle(batch);
    });
    const poison = message(topic, 'k', { value: Buffer.from('\0 poison'), headers: { 'event-id': 'e-1' } });
    await bus.publish([message(topic, 'k'), poison, message(topic, 'k')]);
    await bus.subscribe({ groupId: 'readers', topics: [topic], handle });
    await letters.follow(bus, deadLetterTopicOf(topic));
    await Promise.all([recorder.count(2), letters.count(1)]);
    expect(recorder.texts).toEqual(['k', 'k']);
    expect(letters.messages).toHaveLength(1);
    const partition = recorder.messages[0]?.partition;
    const offsets = recorder.messages.map((seen) => BigInt(seen.offset));
    expect(letters.messages[0]).toMatchObject({ key: 'k', value: poison.value });
    expect(letters.messages[0]?.headers).toEqual({
      'event-id': 'e-1',
      error: 'PoisonError: not  to be read',
      'original-topic': topic,
      'original-partition': String(partition),
      'original-offset': String((offsets[0] ?? 0n) + 1n),
    });
  });

  it('D6-18: an outage of the store dead-letters nothing, and the batch is delivered again', async () => {
    const [recorder, letters] = [new Recorder(2), new Recorder()];
    const handle = withDeadLetters(bus, recorder.handle);
    await letters.follow(bus, deadLetterTopicOf(topic));
    await bus.subscribe({ groupId: 'readers', topics: [topic], handle });
    await bus.publish([message(topic, 'a')]);
    await recorder.count(1);
    await bus.publish([message(deadLetterTopicOf(topic), 'last')]);
    await letters.count(1);
    expect(letters.keys).toEqual(['last']);
  });

  it(`${CALLS} concurrent calls are all acknowledged and all arrive, in bounded batches`, async () => {
    const recorder = new Recorder();
    const keys = Array.from({ length: CALLS }, (_, index) => `key-${index}`);
    await Promise.all(keys.map((key) => bus.publish([message(topic, key), message(other, key)])));
    await recorder.follow(bus, [topic, other]);
    await recorder.count(2 * CALLS);
    expect(recorder.messages).toHaveLength(2 * CALLS);
    expect(new Set(recorder.messages.map((seen) => `${seen.topic} ${seen.key}`)).size).toBe(2 * CALLS);
    expect(Math.max(...recorder.batchSizes)).toBeLessThanOrEqual(500);
  });

  it('a group that starts after the newest message sees only later ones', async () => {
    const recorder = new Recorder();
    await bus.publish([message(topic, 'old')]);
    await bus.subscribe({ groupId: 'late', topics: [topic], handle: recorder.handle, fromBeginning: false });
    await expect
      .poll(async () => {
        await bus.publish([message(topic, 'new')]);
        return recorder.messages.length;
      })
      .toBeGreaterThan(0);
    expect(recorder.keys).not.toContain('old');
  });

  it('is healthy, and reports no topic missing after it has created them', async () => {
    await bus.checkHealth();
    await bus.ensureTopics([topic]);
    expect(await bus.missingTopics([topic, other])).toEqual([]);
  });

  it('rejects messages after stop', async () => {
    await bus.stop();
    await expect(bus.publish([message(topic, 'a')])).rejects.toThrow('the bus is stopped');
  });
}

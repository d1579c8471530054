import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  BusUnavailableError,
  deadLetterTopicOf,
  type EventBus,
  type LogReader,
  PoisonError,
  withDeadLetters,
} from '../../src/events/bus/event-bus.ts';
import { Replay, type ReplayPlan, type ReplayPositions } from '../../src/events/bus/replay.ts';
import { message, Recorder } from '../support/events/recorder.ts';

/** A store or cluster, and what remembers replays. */
export interface ReplayFixture {
  open(): EventBus;
  reader: LogReader;
  positions: ReplayPositions;
}

/** What a replay promises, whatever carries the events. `fixture` is asked in each test. */
export function replayContract(fixture: () => ReplayFixture, isThorough: boolean): void {
  /** More than a batch. */
  const LETTERS = isThorough ? 1_300 : 700;
  let bus: EventBus;
  let topic: string;
  let dead: string;
  let replay: Replay;

  beforeEach(async () => {
    const { open, reader, positions } = fixture();
    topic = `replayed.${randomUUID()}`;
    dead = deadLetterTopicOf(topic);
    bus = open();
    await bus.ensureTopics([topic, dead]);
    replay = new Replay({ bus, reader, positions });
  });
  afterEach(() => bus.stop());

  /** Runs a plan; gives how many messages it has published. */
  async function run(plan: ReplayPlan, signal = new AbortController().signal): Promise<number> {
    let replayed = 0;
    const onReplayed = (messages: number) => {
      replayed += messages;
    };
    await replay.run(plan, { signal, onReplayed });
    return replayed;
  }

  const runDead = async () => run(await replay.deadLetters(topic));

  it('D6-18: dead letters go back to their original topic and partition with unchanged key, bytes and headers', async () => {
    const recorder = new Recorder();
    const value = Buffer.from([0x7b, 0, 0xff, 0x7d]);
    const headers = { 'event-id': 'e-1', 'correlation-id': 'ü' };
    const death = { error: 'Error: x', 'original-topic': topic, 'original-partition': '3', 'original-offset': '42' };
    await bus.publish([message(dead, 'a', { value, headers: { ...headers, ...death } })]);
    await bus.publish([message(dead, 'b', { value: null })]);
    expect(await runDead()).toBe(2);
    await recorder.follow(bus, topic);
    await recorder.count(2);
    const [one, two] = ['a', 'b'].map((key) => recorder.messages.find((seen) => seen.key === key));
    const replayedFrom = expect.stringMatching(new RegExp(`^${dead.replaceAll('.', '\\.')}/\\d+/\\d+$`));
    expect(one).toMatchObject({ key: 'a', value });
    expect(one?.headers).toEqual({ ...headers, 'replayed-from': replayedFrom });
    expect(two).toMatchObject({ key: 'b', value: null, headers: { 'replayed-from': replayedFrom } });
  });

  it('D6-18: a second run publishes only letters that were added since', async () => {
    const recorder = new Recorder();
    expect(await runDead()).toBe(0);
    await bus.publish(['a', 'b', 'c'].map((key) => message(dead, key)));
    expect([await runDead(), await runDead()]).toEqual([3, 0]);
    await bus.publish(['b', 'd'].map((key) => message(dead, key)));
    expect((await replay.deadLetters(topic)).count).toBe(2);
    expect([await runDead(), await runDead()]).toEqual([2, 0]);
    await recorder.follow(bus, topic);
    await recorder.count(5);
    expect(recorder.keys.sort()).toEqual(['a', 'b', 'b', 'c', 'd']);
  });

  it('D6-18: a letter that fails again belongs to the next run, so that no run loops', async () => {
    const [letters, seen] = [new Recorder(), new Recorder()];
    const handle = withDeadLetters(bus, async (batch) => {
      await seen.handle(batch);
      throw new PoisonError('poison for ever');
    });
    await bus.subscribe({ groupId: 'readers', topics: [topic], handle });
    await letters.follow(bus, dead);
    await bus.publish(['a', 'b', 'c'].map((key) => message(topic, key)));
    await letters.count(3);
    // A consumer may see a message twice, so there may be more letters than were made: no run reads beyond its plan.
    for (let expected = 3, round = 0; round < 2; round += 1) {
      const plan = await replay.deadLetters(topic);
      expect(plan.count).toBeGreaterThanOrEqual(3);
      expect(await run(plan)).toBe(plan.count);
      expected += plan.count;
      await letters.count(expected);
    }
    expect(new Set(letters.keys)).toEqual(new Set(['a', 'b', 'c']));
    const last = letters.messages.at(-1);
    expect(last?.headers).toMatchObject({ 'original-topic': topic, error: 'PoisonError: poison for ever' });
    expect(last?.headers['replayed-from']).toContain(dead);
  });

  it('D6-18: after an interrupted run the next one publishes the rest, with at most one batch repeated', async () => {
    const recorder = new Recorder();
    const keys = Array.from({ length: LETTERS }, (_, index) => `key-${index}`);
    await Promise.all(keys.map((key) => bus.publish([message(dead, key)])));
    const controller = new AbortController();
    let before = 0;
    const onReplayed = (messages: number) => {
      before += messages;
      controller.abort();
    };
    await replay.run(await replay.deadLetters(topic), { signal: controller.signal, onReplayed });
    expect(before).toBeGreaterThan(0);
    expect(before).toBeLessThan(keys.length);
    const rest = await replay.deadLetters(topic);
    expect(rest.count).toBe(keys.length - before);
    expect([await run(rest), await runDead()]).toEqual([keys.length - before, 0]);
    await recorder.follow(bus, topic);
    await recorder.count(keys.length);
    expect(recorder.keys.sort()).toEqual(keys.toSorted());
  });

  it('D6-18: if the bus rejects messages, nothing counts as replayed, and the next run publishes them', async () => {
    const { reader, positions } = fixture();
    const refusing = new Replay({
      bus: { publish: () => Promise.reject(new BusUnavailableError('refused')) },
      reader,
      positions,
    });
    await bus.publish(['a', 'b'].map((key) => message(dead, key)));
    const { signal } = new AbortController();
    const refused = refusing.run(await refusing.deadLetters(topic), { signal, onReplayed: () => undefined });
    await expect(refused).rejects.toThrow('refused');
    expect(await runDead()).toBe(2);
  });

  it('D6-18: a time range is replayed from its first message up to its end, as often as requested', async () => {
    const [before, after] = [new Recorder(), new Recorder()];
    const times: number[] = [];
    for (const key of ['early', 'first', 'late']) {
      await setTimeout(30);
      times.push(Date.now());
      await setTimeout(30);
      await bus.publish([message(topic, `${key}-1`, { headers: { error: 'its own' } }), message(topic, `${key}-2`)]);
    }
    const [, fromMs = 0, toMs = 0] = times;
    await before.follow(bus, topic);
    await before.count(6);
    for (const _time of [1, 2]) expect(await run(await replay.between(topic, fromMs, toMs))).toBe(2);
    await after.follow(bus, topic);
    await after.count(10);
    const again = after.messages.filter(({ headers }) => headers['replayed-from'] !== undefined);
    expect(again.map(({ key }) => key).sort()).toEqual(['first-1', 'first-1', 'first-2', 'first-2']);
    expect(again.find(({ key }) => key === 'first-1')?.headers).toMatchObject({ error: 'its own' });
    expect(again.every(({ headers }) => headers['replayed-from']?.startsWith(`${topic}/`))).toBe(true);
  });

  it('D6-18: a range that ends in the future is replayed up to the messages that exist at the start', async () => {
    const fromMs = Date.now() - 60_000;
    await bus.publish(['a', 'b'].map((key) => message(topic, key)));
    const plan = await replay.between(topic, fromMs, Date.now() + 60_000);
    await bus.publish([message(topic, 'c')]);
    expect([plan.count, await run(plan)]).toEqual([2, 2]);
    expect((await replay.between(topic, fromMs - 120_000, fromMs)).count).toBe(0);
    // Before 1970, where Kafka's protocol has numbers of another meaning.
    const [all, none] = [
      await replay.between(topic, -1, Date.now()),
      await replay.between(topic, -62_135_596_800_000, -1),
    ];
    expect(all.count).toBe((await replay.between(topic, 0, Date.now())).count);
    expect([all.count > 0, none.count]).toEqual([true, 0]);
    expect((await replay.between(topic, Date.now() + 30_000, Date.now() + 60_000)).count).toBe(0);
  });
}

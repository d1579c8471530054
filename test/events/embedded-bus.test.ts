import { describe, expect, inject, it } from 'vitest';
import { EmbeddedBus } from '../../src/events/bus/embedded-bus.ts';
import { BusUnavailableError } from '../../src/events/bus/event-bus.ts';
import { message, Recorder } from '../support/events/recorder.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { embeddedDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeEmbedded } from '../support/harness/in-turn.ts';
import { describeReal } from '../support/services/real.ts';
import { eventBusContract } from './event-bus.contract.ts';

/** Messages of each of two instances. */
const CROSSING = inject('isThorough') ? 300 : 80;

const database = beforeTests(embeddedDatabase);
const open = () => new EmbeddedBus(database.db, () => undefined);

describeEmbedded('the embedded bus', () => eventBusContract(() => ({ open }), inject('isThorough')));

describeReal('postgres', 'the embedded bus on PostgreSQL', () => {
  const real = beforeTests(realDatabase);
  const openReal = () => new EmbeddedBus(real.db, () => undefined);

  eventBusContract(() => ({ open: openReal }), inject('isThorough'));
  boundedBatches(openReal);

  it('a reader skips no message of two instances that publish concurrently', async () => {
    const [one, two, recorder] = [openReal(), openReal(), new Recorder()];
    await recorder.follow(one, 'crossing');
    const keys = Array.from({ length: CROSSING }, (_, index) => String(index));
    const publishAll = async (bus: EmbeddedBus, name: string) => {
      for (const key of keys) await bus.publish([message('crossing', `${name}-${key}`)]);
    };
    await Promise.all([publishAll(one, 'one'), publishAll(two, 'two')]);
    await recorder.count(2 * CROSSING);
    expect(new Set(recorder.keys).size).toBe(2 * CROSSING);
    await Promise.all([one.stop(), two.stop()]);
  });
});

describe('the embedded bus and its database', () => {
  it('publishing inside a transaction neither waits for it nor takes part in it', async () => {
    const [bus, recorder] = [open(), new Recorder()];
    await recorder.follow(bus, 'apart');
    let published: Promise<void> = Promise.resolve();
    const failed = database.db.transaction(async () => {
      published = bus.publish([message('apart', 'a')]);
      await database.db.unscoped('test').raw((text) => text`select 1`);
      throw new Error('rolled back');
    });
    await expect(failed).rejects.toThrow('rolled back');
    await published;
    await recorder.count(1);
    await bus.stop();
  });

  it('each message reaches one member of a group, and another member after the first has stopped', async () => {
    const [bus, first, second] = [open(), new Recorder(), new Recorder()];
    const member = await first.follow(bus, 'shared', 'members');
    await second.follow(bus, 'shared', 'members');
    await bus.publish([message('shared', 'a')]);
    await first.count(1);
    await member.stop();
    await bus.publish([message('shared', 'b')]);
    await second.count(1);
    expect([first.keys, second.keys]).toEqual([['a'], ['b']]);
    await bus.stop();
  });

  it('other work runs between the batches of a backlog', async () => {
    const bus = open();
    const waiting = Array.from({ length: 1_800 }, (_, index) => message('backlog', String(index)));
    await bus.publish(waiting.slice(0, 900));
    await bus.publish(waiting.slice(900));
    let turns = 0;
    let isDone = false;
    const next = () => {
      turns += 1;
      if (!isDone) setImmediate(next);
    };
    setImmediate(next);
    const turnsAt: number[] = [];
    const all = Promise.withResolvers<void>();
    let taken = 0;
    await bus.subscribe({
      groupId: 'backlog',
      topics: ['backlog'],
      handle: async (batch) => {
        turnsAt.push(turns);
        taken += batch.length;
        if (taken === waiting.length) all.resolve();
      },
    });
    await all.promise;
    isDone = true;
    expect(turnsAt.length).toBe(4);
    expect(new Set(turnsAt).size).toBe(4);
    await bus.stop();
  });

  // A megabyte takes an embedded database long, and the statement is the same.
  if (inject('isThorough')) boundedBatches(open);

  it('removes messages that are past their age and read by every group, and nothing else', async () => {
    const [bus, quick] = [open(), new Recorder()];
    const door = database.db.unscoped('test');
    const keys = Array.from({ length: 1_500 }, (_, index) => String(index));
    await bus.subscribe({ groupId: 'stuck', topics: ['half'], handle: () => Promise.reject(new Error('stuck')) });
    await quick.follow(bus, ['aging', 'half']);
    await bus.publish([...keys.map((key) => message('aging', key)), message('half', 'unread')]);
    await quick.count(1_501);
    const age = (days: number) =>
      door.raw((text) => text`update bus_messages set created_at = now() - make_interval(days => ${days}::integer)`);
    await age(6);
    expect(await bus.removeRead()).toBe(0);
    await age(8);
    await bus.publish([message('aging', 'young'), message('aging.dlq', 'dead')]);
    await quick.count(1_502);
    await bus.removeRead();
    const kept = await door.raw<{ key: string }>(
      (text) => text`select key from bus_messages where topic in ('aging', 'aging.dlq', 'half') order by key`,
    );
    expect(kept.map((row) => row.key)).toEqual(['dead', 'unread', 'young']);
    await bus.stop();
  });

  it('7.3-01: publishing fails after the database is closed', async () => {
    const gone = await embeddedDatabase();
    const bus = new EmbeddedBus(gone.db, () => undefined);
    await bus.publish([message('t', 'a')]);
    await gone[Symbol.asyncDispose]();
    await expect(bus.publish([message('t', 'b')])).rejects.toThrow(BusUnavailableError);
    await expect(bus.checkHealth()).rejects.toThrow(BusUnavailableError);
    await bus.stop();
  });
});

function boundedBatches(openBus: () => EmbeddedBus): void {
  it('a batch has a size limit in bytes, and no message is skipped', async () => {
    const [bus, recorder] = [openBus(), new Recorder()];
    const value = Buffer.alloc(1024 * 1024, 'x');
    const sizes = [value, value, null, value, value, Buffer.alloc(0), value, null];
    await bus.publish(sizes.map((one, index) => message('large', String(index), { value: one })));
    await recorder.follow(bus, 'large');
    await recorder.count(sizes.length);
    expect(recorder.keys).toEqual(sizes.map((_, index) => String(index)));
    expect(recorder.batchSizes.length).toBeGreaterThan(1);
    await bus.stop();
  });
}

import { setImmediate as nextIteration } from 'node:timers/promises';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { StreamStoppedError } from '../../src/events/streams/event-log.ts';
import type { MigrationProgressRow } from '../../src/features/user-migrations/migration-files.service.ts';
import { ProgressFeeds, type ProgressStream } from '../../src/features/user-migrations/progress-feeds.service.ts';
import { ManualClock, settle } from '../support/realtime/model.ts';

const NODE = 'a-node';
const POLL_MS = 500;

type State = { success?: number; status?: MigrationProgressRow['migration']['status'] };

function rowOf({ success = 0, status = 'running' }: State): MigrationProgressRow {
  const times = { created_at: '2026-11-21', finished_at: null };
  const counts = { total: 10, success, skipped: 0, failed: 0 };
  const migration = {
    id: 'm',
    node_id: NODE,
    status,
    ...counts,
    dry_run: false,
    file_name: null,
    created_by: 'somebody',
    ...times,
  };
  return { migration, processed: success, total: 10, done: status !== 'running' };
}

let clock: ManualClock;
let states: Map<string, State>;
let reads: string[];
let faults: unknown[];
let read: (key: string) => Promise<MigrationProgressRow | undefined>;
let feeds: ProgressFeeds;

beforeEach(() => {
  clock = new ManualClock();
  states = new Map([[`${NODE}/m`, {}]]);
  reads = [];
  faults = [];
  read = async (key) => {
    const state = states.get(key);
    return state && rowOf(state);
  };
  feeds = new ProgressFeeds({
    progress: (nodeId, id) => {
      reads.push(`${nodeId}/${id}`);
      return read(`${nodeId}/${id}`);
    },
    onError: (error) => void faults.push(error),
  });
});

const become = (state: State) => states.set(`${NODE}/m`, state);

async function poll(times = 1): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    clock.advance(POLL_MS);
    await settle();
  }
}

async function follow(): Promise<ProgressStream> {
  const stream = await feeds.follow(NODE, 'm');
  if (!stream) throw new Error('there is one');
  return stream;
}

const taken = async (stream: ProgressStream) => {
  const { done, value } = await stream.next();
  return done ? 'complete' : value.processed;
};

describe('a follower of a migration', () => {
  it('DG-09: a follower gets the current progress at once, then each change, and the end', async () => {
    become({ success: 3 });
    const stream = await follow();
    expect(await taken(stream)).toBe(3);
    const next = taken(stream);
    await poll(2);
    become({ success: 7 });
    await poll();
    expect(await next).toBe(7);
    const last = stream.next();
    become({ success: 10, status: 'done' });
    await poll();
    expect(await last).toMatchObject({ done: false, value: { done: true, processed: 10 } });
    expect(await taken(stream)).toBe('complete');
  });

  it('D6-24: many followers are notified in slices, however long each takes', async () => {
    const streams = await Promise.all(Array.from({ length: 40 }, follow));
    await Promise.all(streams.map(taken));
    await nextIteration();
    // Later than what other files of this process have done.
    let nowMs = performance.now() + 1e6;
    let told = 0;
    const perIteration: number[] = [];
    const ticks = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    for (const stream of streams) {
      void stream.next().then(() => {
        told += 1;
        nowMs += 1;
      });
    }
    become({ success: 7 });
    clock.advance(POLL_MS);
    for (let seen = 0; told < streams.length && perIteration.length < 1_000; seen = told) {
      await nextIteration();
      perIteration.push(told - seen);
    }
    ticks.mockRestore();
    expect(told).toBe(streams.length);
    expect(Math.max(...perIteration)).toBeLessThanOrEqual(10);
  });

  it('DG-09: a follower of a finished migration gets one value, without a poll', async () => {
    become({ success: 10, status: 'cancelled' });
    const stream = await follow();
    expect(await taken(stream)).toBe(10);
    expect(await taken(stream)).toBe('complete');
    expect([feeds.size, clock.timers, reads.length]).toEqual([0, 0, 1]);
  });

  it('DG-09: following an unknown migration, or one of another node, returns undefined', async () => {
    expect(await feeds.follow('another', 'm')).toBeUndefined();
    expect(await feeds.follow(NODE, 'x')).toBeUndefined();
    expect([feeds.size, clock.timers]).toEqual([0, 0]);
  });

  it('DG-09: the followers of a migration share one read, and reading stops with the last one', async () => {
    const streams = await Promise.all([follow(), follow(), follow()]);
    expect(reads.length).toBe(3);
    await poll(4);
    expect(reads.length).toBe(7);
    await Promise.all(streams.slice(1).map((stream) => stream.return()));
    await poll();
    expect(reads.length).toBe(8);
    await streams[0]?.return();
    await poll(3);
    expect([reads.length, feeds.size, clock.timers]).toEqual([8, 0, 0]);
  });

  it('DG-09: a slow follower gets only the newest value, and none twice', async () => {
    const stream = await follow();
    for (const success of [1, 2, 3]) {
      become({ success });
      await poll();
    }
    expect(await taken(stream)).toBe(3);
    const next = taken(stream);
    await poll();
    await stream.return();
    expect(await next).toBe('complete');
  });

  it('DG-09: a follower never gets a lower value than before', async () => {
    const first = await follow();
    const late = Promise.withResolvers<MigrationProgressRow>();
    read = () => late.promise;
    await poll();
    read = async () => rowOf({ success: 5 });
    const stream = await follow();
    late.resolve(rowOf({ success: 2 }));
    await settle();
    expect([await taken(first), await taken(stream)]).toEqual([2, 5]);
    const next = taken(stream);
    become({ success: 6 });
    read = async () => rowOf({ success: 6 });
    await poll();
    expect(await next).toBe(6);
  });

  it('DG-09: a follower continues after an outage, which is reported once', async () => {
    const stream = await follow();
    expect(await taken(stream)).toBe(0);
    const next = taken(stream);
    const { promise, reject } = Promise.withResolvers<never>();
    reject(new Error('away'));
    promise.catch(() => undefined);
    const working = read;
    read = () => promise;
    await poll(3);
    read = working;
    become({ success: 4 });
    await poll();
    expect([await next, faults.length]).toEqual([4, 1]);
  });

  it('DG-08 DG-09: followers are closed when the process stops, and later ones are rejected', async () => {
    const stream = await follow();
    feeds.stop();
    await expect(stream.next()).rejects.toBeInstanceOf(StreamStoppedError);
    const late = await follow();
    await expect(late.next()).rejects.toBeInstanceOf(StreamStoppedError);
    expect([feeds.size, clock.timers]).toEqual([0, 0]);
  });
});

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { AuditWriter, type AuditWriterOptions } from '../../src/audit/audit-writer.ts';
import { AuditSpool } from '../../src/audit/spool.ts';

const PATIENT = { timeout: 10_000 };

let dir: string;
let spool: AuditSpool;
let batches: string[][];
let errors: unknown[];
let writers: AuditWriter[];

beforeEach(() => {
  vi.useFakeTimers();
  dir = mkdtempSync(join(tmpdir(), 'spool-'));
  spool = AuditSpool.open({ dir });
  batches = [];
  errors = [];
  writers = [];
});

afterEach(async () => {
  vi.useRealTimers();
  for (const writer of writers) await writer.stop(0);
  spool.close();
  rmSync(dir, { recursive: true, force: true });
});

function start(options: Partial<AuditWriterOptions> = {}): AuditWriter {
  const insert = async (lines: Buffer[]) => void batches.push(lines.map(String));
  const writer = new AuditWriter({ spool, insert, onError: (error) => errors.push(error), batchSize: 3, ...options });
  writers.push(writer);
  writer.start();
  return writer;
}

/** A store that refuses as long as `isDown`. */
function store() {
  const state = {
    isDown: true,
    calledTicks: [] as number[],
    insert: async (lines: Buffer[]) => {
      state.calledTicks.push(performance.now());
      if (state.isDown) throw new Error(`down ${state.calledTicks.length}`);
      batches.push(lines.map(String));
    },
  };
  return state;
}

describe('the audit writer', () => {
  it('D2-07: writes the lines of the spool at its start, and later lines after the interval', async () => {
    spool.append('a');
    start();
    await vi.advanceTimersByTimeAsync(0);
    expect(batches).toEqual([['a']]);
    spool.append('b');
    spool.append('c');
    await vi.advanceTimersByTimeAsync(199);
    expect(batches).toEqual([['a']]);
    await vi.advanceTimersByTimeAsync(1);
    expect(batches).toEqual([['a'], ['b', 'c']]);
  });

  it('D2-07: a full batch is written without waiting', async () => {
    start();
    await vi.advanceTimersByTimeAsync(0);
    for (const line of ['a', 'b', 'c']) spool.append(line);
    await vi.advanceTimersByTimeAsync(0);
    expect(batches).toEqual([['a', 'b', 'c']]);
  });

  it('D2-07: an outage is logged once, retried with growing pauses, and loses nothing', async () => {
    const down = store();
    // The pauses take real time.
    vi.useRealTimers();
    const writer = start({ insert: down.insert });
    spool.append('a');
    spool.append('b');
    await vi.waitFor(() => expect(down.calledTicks.length).toBeGreaterThanOrEqual(3), PATIENT);
    const [first = 0, second = 0, third = 0] = down.calledTicks;
    expect([second - first > 95, third - second > 190]).toEqual([true, true]);
    expect(errors).toEqual([new Error('down 1')]);
    expect(writer.isFailing).toBe(true);
    down.isDown = false;
    await vi.waitFor(() => expect(batches.flat()).toEqual(['a', 'b']), PATIENT);
    await vi.waitFor(() => expect(writer.isFailing).toBe(false));
    down.isDown = true;
    spool.append('c');
    await vi.waitFor(() => expect(errors).toHaveLength(2), PATIENT);
  });

  it('D2-07: lines that another process left are looked for at intervals', async () => {
    const other = AuditSpool.open({ dir });
    other.append('left');
    start({ adoptIntervalMs: 1_000 });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(batches).toEqual([]);
    other.close();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(batches).toEqual([['left']]);
  });

  it('D2-07: stop writes pending lines and none afterwards', async () => {
    const writer = start();
    await vi.advanceTimersByTimeAsync(0);
    spool.append('a');
    expect(await writer.stop(1_000)).toBe(true);
    spool.append('b');
    await vi.advanceTimersByTimeAsync(60_000);
    expect(batches).toEqual([['a']]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('D2-07: stop gives up at its deadline, and the lines stay for the next process', async () => {
    const writer = start({ insert: () => new Promise(() => {}) });
    spool.append('a');
    const stopped = writer.stop(1_000);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await stopped).toBe(false);
    expect(vi.getTimerCount()).toBe(0);
    spool.close();
    spool = AuditSpool.open({ dir });
    await spool.drain(async (lines) => void batches.push(lines.map(String)), { batchSize: 10 });
    expect(batches).toEqual([['a']]);
  });

  it('D2-07: stop during an outage tries once more', async () => {
    const down = store();
    const writer = start({ insert: down.insert });
    spool.append('a');
    await vi.advanceTimersByTimeAsync(0);
    expect(await writer.stop(1_000)).toBe(false);
    expect(down.calledTicks).toHaveLength(2);
    expect(vi.getTimerCount()).toBe(0);
  });
});

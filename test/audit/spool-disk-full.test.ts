import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { AuditWriter } from '../../src/audit/audit-writer.ts';
import { AuditSpool, type AuditSpoolOptions, SpoolFullError } from '../../src/audit/spool.ts';
import { disk, HEALTHY } from '../support/audit/spool-disk.ts';

vi.mock('node:fs', async (importOriginal) => {
  const { onDisk } = await import('../support/audit/spool-disk.ts');
  return onDisk(await importOriginal());
});

let dir: string;
let spools: AuditSpool[];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'spool-'));
  spools = [];
});

afterEach(() => {
  vi.useRealTimers();
  Object.assign(disk, HEALTHY);
  for (const spool of spools) spool.close();
  rmSync(dir, { recursive: true, force: true });
});

function open(options: Partial<AuditSpoolOptions> = {}): AuditSpool {
  const spool = AuditSpool.open({ dir, ...options });
  spools.push(spool);
  return spool;
}

async function drained(spool: AuditSpool): Promise<string[]> {
  const lines: string[] = [];
  await spool.drain(async (batch) => void lines.push(...batch.map(String)), { batchSize: 3 });
  return lines;
}

function segments(): string[] {
  return readdirSync(dir)
    .filter((name) => name.endsWith('.seg'))
    .sort()
    .map((name) => join(dir, name));
}

/** Whether the line has been kept. */
function append(spool: AuditSpool, line: string): boolean {
  try {
    spool.append(line);
    return true;
  } catch (error) {
    if (error instanceof SpoolFullError) return false;
    throw error;
  }
}

describe('a spool on a full disk', () => {
  // A line of 11 characters takes 21 bytes.
  it.each([
    ['the first line of a segment, no byte of it', 40, 0],
    ['the first line of a segment, in its middle', 40, 10],
    ['a later line, no byte of it', 100, 0],
    ['a later line, in its middle', 100, 10],
  ])('D2-07: refuses %s, leaves nothing of it, and goes on once there is room', async (_, segmentBytes, room) => {
    for (const memoryBytes of [0, 50, 1_000]) {
      const spool = open({ segmentBytes, memoryBytes });
      expect(['line 1 kept', 'line 2 kept'].map((line) => append(spool, line))).toEqual([true, true]);
      const files = segments().map((file) => readFileSync(file, 'utf8'));
      disk.room = room;
      expect(append(spool, 'line 3 lost')).toBe(false);
      expect([spool.isFull, spool.pendingLines]).toEqual([true, 2]);
      expect(segments().map((file) => readFileSync(file, 'utf8'))).toEqual(files);
      disk.room = HEALTHY.room;
      expect(await drained(spool)).toEqual(['line 1 kept', 'line 2 kept']);
      expect([spool.isFull, spool.bytesOnDisk, segments()]).toEqual([false, 0, []]);
      for (let line = 4; line < 20; line += 1) spool.append(`line ${line}`);
      expect(await drained(spool)).toHaveLength(16);
      expect([spool.bytesOnDisk, spool.damagedLines, segments()]).toEqual([0, 0, []]);
      spool.close();
      expect(readdirSync(dir)).toEqual([]);
    }
  });

  it('D2-07: stays full over drains as long as the disk has no room, and leaves no file by looking', async () => {
    const spool = open();
    disk.room = 21;
    expect([append(spool, 'line 1 kept'), append(spool, 'line 2 lost')]).toEqual([true, false]);
    expect(await drained(spool)).toEqual(['line 1 kept']);
    expect([spool.isFull, segments()]).toEqual([true, []]);
    disk.room = 1_000;
    await drained(spool);
    expect([spool.isFull, segments()]).toEqual([true, []]);
  });

  it('D2-07: the writer finds out by itself that there is room again, with nothing to write', async () => {
    vi.useFakeTimers();
    const spool = open();
    const writer = new AuditWriter({ spool, insert: async () => {}, onError: () => {} });
    writer.start();
    await vi.advanceTimersByTimeAsync(0);
    disk.room = 0;
    expect(append(spool, 'lost')).toBe(false);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(spool.isFull).toBe(true);
    disk.room = HEALTHY.room;
    await vi.advanceTimersByTimeAsync(200);
    expect(spool.isFull).toBe(false);
    await vi.advanceTimersByTimeAsync(200);
    expect(vi.getTimerCount()).toBe(1);
    await writer.stop(0);
  });
});

import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AuditSpool, type AuditSpoolOptions, SpoolFullError } from '../../src/audit/spool.ts';

let dir: string;
let spools: AuditSpool[];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'spool-'));
  spools = [];
});

afterEach(() => {
  for (const spool of spools) spool.close();
  rmSync(dir, { recursive: true, force: true });
});

function open(options: Partial<AuditSpoolOptions> = {}): AuditSpool {
  const spool = AuditSpool.open({ dir, ...options });
  spools.push(spool);
  return spool;
}

function lines(count: number, from = 0): string[] {
  return Array.from({ length: count }, (_, index) => `{"id":${from + index},"text":"é"}`);
}

async function drained(spool: AuditSpool, batchSize = 500): Promise<string[][]> {
  const batches: string[][] = [];
  await spool.drain(async (batch) => void batches.push(batch.map(String)), { batchSize });
  return batches;
}

describe('a spool', () => {
  it.each([
    ['from memory', {}],
    ['read back from files', { memoryBytes: 0 }],
    ['from memory first, then from files', { memoryBytes: 100 }],
    ['over many segments', { segmentBytes: 100 }],
    ['over many segments read back', { segmentBytes: 100, memoryBytes: 150 }],
  ])('D2-07: gives every line once, in order, in batches: %s', async (_, options) => {
    const spool = open(options);
    for (const line of lines(25)) spool.append(line);
    const batches = await drained(spool, 10);
    expect(batches.flat()).toEqual(lines(25));
    expect(Math.max(...batches.map((batch) => batch.length))).toBeLessThanOrEqual(10);
    expect(await drained(spool)).toEqual([]);
  });

  it('D2-07: a line is in its file when append returns', () => {
    const spool = open();
    spool.append('{"id":1}');
    const segment = readdirSync(dir).find((name) => name.endsWith('.seg')) ?? '';
    expect(statSync(join(dir, segment)).size).toBe(spool.pendingBytes);
    expect(statSync(join(dir, segment)).mode & 0o777).toBe(0o600);
  });

  it('of a process that could not settle is settled by the one that can, though it has no lines', async () => {
    const settled: string[] = [];
    const first = open();
    first.close(false);
    const failing = open({ onDrained: () => Promise.reject(new Error('the database is away')) });
    await expect(drained(failing)).rejects.toThrow('the database is away');
    failing.close();
    const next = open({ onDrained: async (owner) => void settled.push(owner) });
    await drained(next);
    next.close();
    expect(settled).toEqual([first.owner]);
    expect(readdirSync(dir)).toEqual([]);
  });

  it('D2-07: written segments are removed, and after close nothing is left', async () => {
    const spool = open({ segmentBytes: 100 });
    for (const line of lines(25)) spool.append(line);
    await drained(spool);
    expect([spool.bytesOnDisk, spool.pendingBytes, spool.pendingLines]).toEqual([0, 0, 0]);
    expect(readdirSync(dir).filter((name) => name.endsWith('.seg'))).toEqual([]);
    spool.close();
    expect(readdirSync(dir)).toEqual([]);
  });

  it('D2-07: a failed write leaves its batch for the next drain', async () => {
    const spool = open({ memoryBytes: 200 });
    for (const line of lines(20)) spool.append(line);
    let calls = 0;
    const write = async () => {
      calls += 1;
      if (calls > 1) throw new Error('down');
    };
    await expect(spool.drain(write, { batchSize: 3 })).rejects.toThrow('down');
    await expect(spool.drain(write, { batchSize: 3 })).rejects.toThrow('down');
    expect((await drained(spool)).flat()).toEqual(lines(17, 3));
  });

  it('D2-07: lines that come during a drain are given after those before them', async () => {
    const spool = open({ memoryBytes: 90 });
    const seen: string[] = [];
    spool.append('0');
    await spool.drain(
      async (batch) => {
        seen.push(...batch.map(String));
        if (seen.length < 10) for (const extra of ['a', 'b']) spool.append(`${seen.length}${extra}`);
      },
      { batchSize: 100 },
    );
    expect(seen).toEqual(['0', '1a', '1b', '3a', '3b', '5a', '5b', '7a', '7b', '9a', '9b']);
  });

  it('D2-07: two drains at once give no line twice', async () => {
    const spool = open();
    for (const line of lines(10)) spool.append(line);
    const both = await Promise.all([drained(spool, 3), drained(spool, 3)]);
    expect(both.flat(2)).toEqual(lines(10));
  });

  it('D2-07: over maxBytes a line is refused; it is full before, so that admitted requests still append', async () => {
    const spool = open({ maxBytes: 3_200, segmentBytes: 1_000 });
    const line = 'x'.repeat(90);
    while (!spool.isFull) spool.append(line);
    expect(spool.bytesOnDisk).toBe(3_000);
    spool.append(line);
    spool.append(line);
    expect(() => spool.append(line)).toThrow(SpoolFullError);
    expect(spool.bytesOnDisk).toBe(3_200);
    expect((await drained(spool)).flat()).toHaveLength(32);
    expect(spool.isFull).toBe(false);
    spool.append(line);
  });

  it('D2-07: a line feed in a line is refused', () => {
    expect(() => open().append('a\nb')).toThrow(TypeError);
  });

  it('D2-07: a closed spool takes no line', () => {
    const spool = open();
    spool.close();
    expect(() => spool.append('a')).toThrow('closed');
  });
});

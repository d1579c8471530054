import type * as fs from 'node:fs';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { AuditChain, type UnchainedRecord } from '../../src/audit/audit-record.ts';
import { AuditSpool } from '../../src/audit/spool.ts';

type Sync = { what: string; end(error?: Error): void };

/** The syncs that the disk has been asked for and has not ended; `opened` names what is open. */
const disk = vi.hoisted(() => ({ syncs: [] as Sync[], opened: new Map<number, string>(), refuses: false }));

vi.mock('node:fs', async (importOriginal) => {
  const real = await importOriginal<typeof fs>();
  const syncing = (kind: string) => (fd: number, done: (error?: Error) => void) => {
    const path = disk.opened.get(fd) ?? 'closed';
    disk.syncs.push({ what: `${kind} ${path.endsWith('.seg') ? path.slice(-7, -4) : 'folder'}`, end: done });
  };
  return {
    ...real,
    openSync: (path: string, flags: string, mode: number) => {
      const fd = real.openSync(path, flags, mode);
      disk.opened.set(fd, path);
      return fd;
    },
    closeSync: (fd: number) => {
      if (!disk.opened.delete(fd)) throw new Error('closed twice');
      real.closeSync(fd);
    },
    fdatasyncSync: () => {
      if (disk.refuses) throw new Error('EIO');
    },
    fdatasync: syncing('data'),
    fsync: syncing('names'),
  };
});

let dir: string;
let spool: AuditSpool;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'spool-'));
  spool = AuditSpool.open({ dir, isSynced: true, segmentBytes: 60 });
  Object.assign(disk, { syncs: [], refuses: false });
});
afterEach(() => {
  spool.close();
  rmSync(dir, { recursive: true, force: true });
});

/** Ends the next sync, and returns what it was of. */
async function ended(error?: Error): Promise<string> {
  await vi.waitFor(() => expect(disk.syncs).not.toEqual([]));
  const sync = disk.syncs.shift();
  sync?.end(error);
  for (let turns = 0; turns < 3; turns += 1) await turn();
  return sync?.what ?? '';
}

/** Appends a line; `told` gets the line once the sync has ended, or its error. */
function append(line: string, told: string[]): void {
  spool.append(line);
  spool.sync().then(
    () => told.push(line),
    (error: Error) => told.push(`${line} ${error.message}`),
  );
}

async function drained(): Promise<string[]> {
  const lines: string[] = [];
  await spool.drain(async (batch) => void lines.push(...batch.map(String)), { batchSize: 10 });
  return lines;
}

it('D1-18: one sync covers all waiting lines, and the first sync of a segment also its directory entry', async () => {
  const told: string[] = [];
  append('a', told);
  await turn();
  for (const line of ['b', 'c']) append(line, told);
  expect([await ended(), told]).toEqual(['data 001', []]);
  expect([await ended(), told]).toEqual(['names folder', ['a']]);
  expect([await ended(), told]).toEqual(['data 001', ['a', 'b', 'c']]);
  expect(disk.syncs).toEqual([]);
});

it('D1-18: a full segment is closed after its sync', async () => {
  const told: string[] = [];
  for (const line of ['x'.repeat(40), 'y'.repeat(40)]) append(line, told);
  const order = [await ended(), await ended(), await ended()];
  expect(told).toEqual([]);
  order.push(await ended());
  expect(order).toEqual(['data 001', 'names folder', 'data 002', 'names folder']);
  expect(told).toHaveLength(2);
  await drained();
  expect([...disk.opened.values()].filter((path) => path.endsWith('.seg'))).toEqual([]);
});

it('D1-18: after a failed sync the spool is full, takes no line for that segment, and ignores its later syncs', async () => {
  const told: string[] = [];
  append('a', told);
  await turn();
  append('b', told);
  expect(spool.isFull).toBe(false);
  await ended(new Error('EIO'));
  await vi.waitFor(() => expect(told).toEqual(['a EIO', 'b an earlier sync of this audit segment has failed']));
  expect([spool.isFull, disk.syncs]).toEqual([true, []]);
  append('c', told);
  expect([await ended(), await ended(), told.at(-1)]).toEqual(['data 002', 'names folder', 'c']);
  disk.refuses = true;
  expect([await drained(), spool.isFull]).toEqual([['a', 'b', 'c'], true]);
  disk.refuses = false;
  append('d', told);
  expect([await drained(), spool.isFull]).toEqual([['d'], false]);
  await ended();
  await ended();
  expect(readdirSync(dir).filter((name) => name.endsWith('.seg'))).toEqual([]);
});

it('D1-18: a response is sent only after the sync of its record; on a failed sync the record counts as lost first', async () => {
  const told: string[] = [];
  const onUnsynced = (error: unknown, { fixed }: UnchainedRecord) => void told.push(`${fixed} ${String(error)}`);
  const chain = new AuditChain('chain', spool, { sync: () => spool.sync(), onUnsynced });
  const add = (fixed: string) =>
    chain.add({ fixed, erasable: '', salts: '', digests: [], length: 1 }, () => told.push(`answered ${fixed}`));
  add('a');
  await ended();
  expect(told).toEqual([]);
  await ended();
  expect(told).toEqual(['answered a']);
  add('b');
  await ended(new Error('EIO'));
  expect(told.slice(1)).toEqual(['b Error: EIO', 'answered b']);
});

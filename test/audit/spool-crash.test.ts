import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AuditSpool } from '../../src/audit/spool.ts';

const SPOOL_MODULE = new URL('../../src/audit/spool.ts', import.meta.url).href;

let dir: string;
let children: ChildProcess[];
let spools: AuditSpool[];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'spool-'));
  children = [];
  spools = [];
});

afterEach(async () => {
  await Promise.all(children.map(kill));
  for (const spool of spools) spool.close();
  rmSync(dir, { recursive: true, force: true });
});

function open(): AuditSpool {
  const spool = AuditSpool.open({ dir, segmentBytes: 100 });
  spools.push(spool);
  return spool;
}

/** A process that has appended its lines and lives on with the spool open. */
async function startProcess(name: string, count: number): Promise<ChildProcess> {
  const code = `
    const { AuditSpool } = await import(${JSON.stringify(SPOOL_MODULE)});
    const spool = AuditSpool.open({ dir: ${JSON.stringify(dir)}, segmentBytes: 100 });
    for (let at = 0; at < ${count}; at += 1) spool.append('${name}' + at);
    process.stdout.write('ready');
    setInterval(() => {}, 60_000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  await once(child.stdout, 'data');
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

async function drained(spool: AuditSpool): Promise<string[]> {
  const seen: string[] = [];
  await spool.drain(async (batch) => void seen.push(...batch.map(String)), { batchSize: 7 });
  return seen;
}

function named(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, at) => `${name}${at}`);
}

function segments(): string[] {
  return readdirSync(dir)
    .filter((name) => name.endsWith('.seg'))
    .sort()
    .map((name) => join(dir, name));
}

describe('a spool after a crash', () => {
  it('D2-07: lines of a killed process are given to the next one on the folder, before its own', async () => {
    await kill(await startProcess('dead', 20));
    const spool = open();
    spool.append('own');
    expect(await drained(spool)).toEqual([...named('dead', 20), 'own']);
    spool.close();
    expect(readdirSync(dir)).toEqual([]);
  });

  it('D2-07: a living process keeps its lines; they are taken over once it is dead', async () => {
    const child = await startProcess('other', 20);
    const files = segments();
    const spool = open();
    spool.append('own');
    expect(spool.adopt()).toBe(0);
    expect(await drained(spool)).toEqual(['own']);
    expect(segments()).toEqual(files);
    await kill(child);
    expect(spool.adopt()).toBe(1);
    expect(await drained(spool)).toEqual(named('other', 20));
  });

  it('D2-07: of two processes that come after, one takes the leftovers, and the other after its end', async () => {
    await kill(await startProcess('dead', 5));
    const first = open();
    const second = open();
    expect(await drained(second)).toEqual([]);
    first.close();
    expect(second.adopt()).toBe(1);
    expect(await drained(second)).toEqual(named('dead', 5));
  });

  it('D2-07: two spools of one process keep apart', async () => {
    const first = open();
    const second = open();
    first.append('first');
    second.append('second');
    expect([first.adopt(), second.adopt()]).toEqual([0, 0]);
    expect([await drained(second), await drained(first)]).toEqual([['second'], ['first']]);
  });

  it('D2-07: leftovers count for the limit', async () => {
    await kill(await startProcess('dead', 20));
    const spool = AuditSpool.open({ dir, maxBytes: 300 });
    spools.push(spool);
    expect(spool.isFull).toBe(true);
    await drained(spool);
    expect(spool.isFull).toBe(false);
  });

  it.each([
    ['a torn last line', (file: string) => truncateSync(file, readFileSync(file).length - 2), 19, 1],
    ['half a line more', (file: string) => appendFileSync(file, '0123'), 20, 1],
    ['zeros of a power cut', (file: string) => appendFileSync(file, Buffer.alloc(4096)), 20, 1],
    ['a byte that has changed', (file: string) => writeFileSync(file, changed(readFileSync(file))), 19, 1],
    ['noise', (file: string) => writeFileSync(file, 'x\n\n\u00ff\n'), 18, 3],
  ])('D2-07: %s at the end is skipped and counted, the rest is given', async (_, damage, whole, damaged) => {
    await kill(await startProcess('dead', 20));
    const last = segments().at(-1) ?? '';
    damage(last);
    const spool = open();
    expect(await drained(spool)).toEqual(named('dead', whole));
    expect(spool.damagedLines).toBe(damaged);
    expect(segments()).toEqual([]);
  });

  it.each<[string, (file: string) => void]>([
    ['is cut to nothing', (file) => truncateSync(file, 0)],
    ['is cut', (file) => truncateSync(file, 3)],
    ['goes', (file) => rmSync(file)],
  ])('D2-07: a segment that %s after it was adopted is skipped and counted', async (_, damage) => {
    await kill(await startProcess('dead', 20));
    const spool = open();
    damage(segments()[1] ?? '');
    expect(await drained(spool)).toEqual(named('dead', 20).toSpliced(6, 6));
    expect([segments(), spool.bytesOnDisk, spool.damagedLines]).toEqual([[], 0, 1]);
  });

  it('D2-07: segments whose lock was deleted are adopted all the same', async () => {
    await kill(await startProcess('dead', 3));
    for (const name of readdirSync(dir).filter((file) => file.endsWith('.lock'))) rmSync(join(dir, name));
    expect(await drained(open())).toEqual(named('dead', 3));
  });
});

/** The bytes with the last but one, which is that of a line before its end, changed. */
function changed(bytes: Buffer): Buffer {
  const at = bytes.length - 2;
  return Buffer.concat([bytes.subarray(0, at), Buffer.of((bytes[at] ?? 0) ^ 1), bytes.subarray(at + 1)]);
}

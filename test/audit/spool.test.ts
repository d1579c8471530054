import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest';
import { AuditWriter } from '../../src/audit/audit-writer.ts';
import { AuditSpool, type AuditSpoolOptions, SpoolFullError } from '../../src/audit/spool.ts';
import { decodeLines } from '../../src/audit/spool-log.ts';
import { disk, HEALTHY } from '../support/audit/spool-disk.ts';

vi.mock('node:fs', async (importOriginal) => {
  const { onDisk } = await import('../support/audit/spool-disk.ts');
  return onDisk(await importOriginal());
});

const SPOOL_MODULE = new URL('../../src/audit/spool.ts', import.meta.url).href;

let root: string;
let dir: string;
let spools: AuditSpool[];
let children: ChildProcess[];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'spool-'));
  dir = mkdtempSync(join(root, 'run-'));
  spools = [];
  children = [];
});

afterEach(async () => {
  vi.useRealTimers();
  await Promise.all(children.map(kill));
  Object.assign(disk, HEALTHY);
  for (const spool of spools) spool.close();
  rmSync(root, { recursive: true, force: true });
});

function open(options: Partial<AuditSpoolOptions> = {}): AuditSpool {
  const spool = AuditSpool.open({ dir, ...options });
  spools.push(spool);
  return spool;
}

function segments(): string[] {
  return readdirSync(dir)
    .filter((name) => name.endsWith('.seg'))
    .sort()
    .map((name) => join(dir, name));
}

async function drained(spool: AuditSpool, batchSize = 3): Promise<string[]> {
  const lines: string[] = [];
  await spool.drain(async (batch) => void lines.push(...batch.map(String)), { batchSize });
  return lines;
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

function named(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, at) => `${name}${at}`);
}

/** Whether the lines have been kept. */
function append(spool: AuditSpool, lines: string[]): boolean {
  try {
    spool.append(...lines);
    return true;
  } catch (error) {
    if (error instanceof SpoolFullError) return false;
    throw error;
  }
}

/** Cuts one of the segments that a dead process left; the lines that it held behind the cut. */
function cut(at: number, part: number): string[] {
  const files = segments();
  const file = files[at % files.length];
  if (file === undefined) return [];
  const bytes = readFileSync(file);
  const size = Math.floor(bytes.length * part);
  truncateSync(file, size);
  const left = decodeLines(bytes.subarray(0, size), Number.MAX_VALUE);
  return decodeLines(bytes.subarray(left.bytes), Number.MAX_VALUE).lines.map(String);
}

const appendStep = fc.record({
  kind: fc.constant('append' as const),
  lengths: fc.array(fc.nat({ max: 60 }), { minLength: 1, maxLength: 3 }),
});
const drainStep = fc.constantFrom({ kind: 'drain' as const }, { kind: 'fail' as const }, { kind: 'reopen' as const });
const cutStep = fc.record({
  kind: fc.constant('cut' as const),
  at: fc.nat({ max: 5 }),
  part: fc.constantFrom(0, 0.4, 0.9),
});
const diskStep = fc.record({
  kind: fc.constant('disk' as const),
  state: fc.oneof(fc.constant(HEALTHY), fc.record({ room: fc.nat({ max: 150 }), isWorn: fc.boolean() })),
});

type Step =
  typeof appendStep | typeof drainStep | typeof cutStep | typeof diskStep extends fc.Arbitrary<infer S> ? S : never;

/** A spool, and what it must still give. */
class Model {
  readonly #options: Partial<AuditSpoolOptions>;
  #spool: AuditSpool;
  #pending: string[] = [];
  #appended = 0;
  #isRestarted = false;

  constructor(options: Partial<AuditSpoolOptions>) {
    this.#options = options;
    this.#spool = open(options);
  }

  async take(step: Step): Promise<void> {
    switch (step.kind) {
      case 'append':
        return this.#append(step.lengths);
      case 'disk':
        return void Object.assign(disk, step.state);
      case 'cut':
        return this.#reopen(() => cut(step.at, step.part));
      case 'reopen':
        return this.#reopen(() => []);
      default:
        return this.#drain(step.kind === 'fail');
    }
  }

  /** What is left comes, once the disk takes lines again, and nothing stays on it. */
  async end(): Promise<void> {
    Object.assign(disk, HEALTHY);
    await this.#drain(false);
    expect([this.#spool.isFull, this.#spool.bytesOnDisk]).toEqual([false, 0]);
    // What a worn disk did not remove goes with the next process.
    this.#reopen(() => []);
    await this.#drain(false);
    this.#spool.close();
    expect(readdirSync(dir)).toEqual([]);
  }

  #append(lengths: number[]): void {
    const lines = lengths.map((length, at) => `${this.#appended + at}:${'x'.repeat(length)}`);
    this.#appended += lines.length;
    if (append(this.#spool, lines)) this.#pending.push(...lines);
    else expect(disk.room).not.toBe(HEALTHY.room);
  }

  #reopen(damage: () => string[]): void {
    this.#spool.close();
    disk.isWorn = false;
    const lost = damage();
    this.#pending = this.#pending.filter((line) => !lost.includes(line));
    this.#spool = open(this.#options);
    this.#isRestarted = true;
  }

  async #drain(isFailing: boolean): Promise<void> {
    const write = async (lines: Buffer[]) => {
      const batch = lines.map(String);
      expect(batch.length).toBeLessThanOrEqual(3);
      if (isFailing && batch.length < 3) throw new Error('down');
      // Lines of a segment that a restart found half written may come again.
      const fresh = batch.filter((line) => this.#pending.includes(line));
      if (!this.#isRestarted) expect(fresh).toEqual(batch);
      expect(fresh).toEqual(this.#pending.slice(0, fresh.length));
      this.#pending = this.#pending.slice(fresh.length);
    };
    await this.#spool.drain(write, { batchSize: 3, batchBytes: 100 }).catch((error: Error) => {
      if (error.message !== 'down' && !(disk.isWorn && error.message === 'EIO')) throw error;
    });
    if (!isFailing && !disk.isWorn) expect(this.#pending).toEqual([]);
  }
}

describe('a spool', () => {
  it('D2-07: a line is in its file when append returns', () => {
    const spool = open();
    spool.append('{"id":1}');
    const segment = readdirSync(dir).find((name) => name.endsWith('.seg')) ?? '';
    expect(statSync(join(dir, segment)).size).toBe(spool.pendingBytes);
    expect(statSync(join(dir, segment)).mode & 0o777).toBe(0o600);
  });

  it('an unsettled spool is settled by the next process that can, even if it has no lines', async () => {
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

  it('D2-07: lines appended during a drain are delivered after earlier ones', async () => {
    const spool = open();
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

  it('D2-07: two concurrent drains deliver no line twice', async () => {
    const spool = open();
    const lines = Array.from({ length: 10 }, (_, at) => `{"id":${at}}`);
    for (const line of lines) spool.append(line);
    expect((await Promise.all([drained(spool), drained(spool)])).flat()).toEqual(lines);
  });

  it('D2-07: a line over maxBytes is rejected; the spool counts as full earlier, so that admitted requests still fit', async () => {
    const spool = open({ maxBytes: 3_200, segmentBytes: 1_000 });
    const line = 'x'.repeat(90);
    while (!spool.isFull) spool.append(line);
    expect(spool.bytesOnDisk).toBe(3_000);
    spool.append(line);
    spool.append(line);
    expect(() => spool.append(line)).toThrow(SpoolFullError);
    expect(spool.bytesOnDisk).toBe(3_200);
    expect(await drained(spool)).toHaveLength(32);
    expect(spool.isFull).toBe(false);
    spool.append(line);
  });

  it('D2-07: rejects a line with a line feed, and any line after it is closed', () => {
    const spool = open();
    expect(() => spool.append('a\nb')).toThrow(TypeError);
    spool.close();
    expect(() => spool.append('a')).toThrow('closed');
  });
});

describe('a spool on a full disk', () => {
  it('D2-07: stays full over drains while the disk has no room, and its checks leave no file', async () => {
    const spool = open();
    disk.room = 21;
    expect([append(spool, ['line 1 kept']), append(spool, ['line 2 lost'])]).toEqual([true, false]);
    expect(await drained(spool)).toEqual(['line 1 kept']);
    expect([spool.isFull, segments()]).toEqual([true, []]);
    disk.room = 1_000;
    await drained(spool);
    expect([spool.isFull, segments()]).toEqual([true, []]);
  });

  it('D2-07: the writer detects without new lines that there is room again', async () => {
    vi.useFakeTimers();
    const spool = open();
    const writer = new AuditWriter({ spool, insert: async () => {}, onError: () => {} });
    writer.start();
    await vi.advanceTimersByTimeAsync(0);
    disk.room = 0;
    expect(append(spool, ['lost'])).toBe(false);
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

it('D2-07: no order of appends, failures, full disks, restarts and cut segments loses or reorders other lines', async () => {
  const sizes = fc.record({ segmentBytes: fc.integer({ min: 1, max: 300 }) });
  const steps = fc.array(fc.oneof({ weight: 4, arbitrary: appendStep }, drainStep, diskStep, cutStep), {
    maxLength: 60,
    size: 'max',
  });
  const property = fc.asyncProperty(steps, sizes, async (taken, options) => {
    Object.assign(disk, HEALTHY);
    dir = mkdtempSync(join(root, 'run-'));
    const model = new Model(options);
    for (const step of taken) await model.take(step);
    await model.end();
  });
  await fc.assert(property, { numRuns: inject('isThorough') ? 150 : 40 });
});

describe('a spool after a crash', () => {
  it('D2-07: lines of a killed process go to the next process of the folder, before its own', async () => {
    await kill(await startProcess('dead', 20));
    const spool = open({ segmentBytes: 100 });
    spool.append('own');
    expect(await drained(spool)).toEqual([...named('dead', 20), 'own']);
    spool.close();
    expect(readdirSync(dir)).toEqual([]);
  });

  it('D2-07: a running process keeps its lines; another one takes them over after its death', async () => {
    const child = await startProcess('other', 20);
    const files = segments();
    const spool = open({ segmentBytes: 100 });
    spool.append('own');
    expect(spool.adopt()).toBe(0);
    expect(await drained(spool)).toEqual(['own']);
    expect(segments()).toEqual(files);
    await kill(child);
    expect(spool.adopt()).toBe(1);
    expect(await drained(spool)).toEqual(named('other', 20));
  });

  it('D2-07: of two later processes one takes the leftover lines, and the other takes them once the first has stopped', async () => {
    await kill(await startProcess('dead', 5));
    const first = open({ segmentBytes: 100 });
    const second = open({ segmentBytes: 100 });
    expect(await drained(second)).toEqual([]);
    first.close();
    expect(second.adopt()).toBe(1);
    expect(await drained(second)).toEqual(named('dead', 5));
  });

  it('D2-07: two spools of one process do not share lines', async () => {
    const first = open({ segmentBytes: 100 });
    const second = open({ segmentBytes: 100 });
    first.append('first');
    second.append('second');
    expect([first.adopt(), second.adopt()]).toEqual([0, 0]);
    expect([await drained(second), await drained(first)]).toEqual([['second'], ['first']]);
  });

  it('D2-07: leftover lines count toward the limit', async () => {
    await kill(await startProcess('dead', 20));
    const spool = open({ maxBytes: 300 });
    expect(spool.isFull).toBe(true);
    await drained(spool);
    expect(spool.isFull).toBe(false);
  });

  it.each([
    ['a torn last line', (file: string) => truncateSync(file, readFileSync(file).length - 2), 19, 1],
    ['half an additional line', (file: string) => appendFileSync(file, '0123'), 20, 1],
    ['zeros of a power cut', (file: string) => appendFileSync(file, Buffer.alloc(4096)), 20, 1],
    ['a changed byte', (file: string) => writeFileSync(file, changed(readFileSync(file))), 19, 1],
    ['noise', (file: string) => writeFileSync(file, 'x\n\n\u00ff\n'), 18, 3],
  ])(
    'D2-07: %s at the end is skipped and counted, and other lines are delivered',
    async (_, damage, whole, damaged) => {
      await kill(await startProcess('dead', 20));
      const last = segments().at(-1) ?? '';
      damage(last);
      const spool = open({ segmentBytes: 100 });
      expect(await drained(spool)).toEqual(named('dead', whole));
      expect(spool.damagedLines).toBe(damaged);
      expect(segments()).toEqual([]);
    },
  );

  it.each<[string, (file: string) => void]>([
    ['is truncated to zero bytes', (file) => truncateSync(file, 0)],
    ['is truncated', (file) => truncateSync(file, 3)],
    ['is deleted', (file) => rmSync(file)],
  ])('D2-07: a segment that %s after it was adopted is skipped and counted', async (_, damage) => {
    await kill(await startProcess('dead', 20));
    const spool = open({ segmentBytes: 100 });
    damage(segments()[1] ?? '');
    expect(await drained(spool)).toEqual(named('dead', 20).toSpliced(6, 6));
    expect([segments(), spool.bytesOnDisk, spool.damagedLines]).toEqual([[], 0, 1]);
  });

  it('D2-07: segments whose lock file was deleted are adopted', async () => {
    await kill(await startProcess('dead', 3));
    for (const name of readdirSync(dir).filter((file) => file.endsWith('.lock'))) rmSync(join(dir, name));
    expect(await drained(open({ segmentBytes: 100 }))).toEqual(named('dead', 3));
  });
});

/** The bytes with the last but one, which is that of a line before its end, changed. */
function changed(bytes: Buffer): Buffer {
  const at = bytes.length - 2;
  return Buffer.concat([bytes.subarray(0, at), Buffer.of((bytes[at] ?? 0) ^ 1), bytes.subarray(at + 1)]);
}

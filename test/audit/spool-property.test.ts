import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, inject, it, vi } from 'vitest';
import { AuditSpool, type AuditSpoolOptions, SpoolFullError } from '../../src/audit/spool.ts';
import { decodeLines } from '../../src/audit/spool-log.ts';
import { disk, HEALTHY } from '../support/audit/spool-disk.ts';

vi.mock('node:fs', async (importOriginal) => {
  const { onDisk } = await import('../support/audit/spool-disk.ts');
  return onDisk(await importOriginal());
});

let root: string;
let dir: string;
let spools: AuditSpool[];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'spool-'));
  spools = [];
});

afterEach(() => {
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

it('D2-07: any order of appends, failures, full disks, restarts and cut segments loses no other line, keeps their order and leaves no file', async () => {
  const sizes = fc.record({ segmentBytes: fc.integer({ min: 1, max: 300 }), memoryBytes: fc.nat({ max: 300 }) });
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

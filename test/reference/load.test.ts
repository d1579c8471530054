import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Progress } from '../../src/cli/kit/command.ts';
import { linesOf, loadReference } from '../../src/features/reference/reference-file.service.ts';
import { portcullis } from '../support/cli/in-process.ts';
import { type RealDatabase, realDatabase, scratchDatabase } from '../support/harness/databases.ts';
import { type Fixture, fixtureOn, newFamily, rowOf } from '../support/reference/fixture.ts';
import { freshDatabase } from '../support/services/isolation.ts';
import { describeReal } from '../support/services/real.ts';
import { emptyFolder, type TestFolder } from '../support/start/folders.ts';
import { runCli } from '../support/start/process.ts';

const line = (topic: string, key: string, value: object | null) => JSON.stringify({ topic, key, value });
const chainLine = (id: string, version = 1) => line('reference.chains', id, { name: 'c', version });

async function load(fixture: Fixture, text: string | Buffer[]) {
  const rejected: [number, string][] = [];
  const source = Readable.from(typeof text === 'string' ? [Buffer.from(text)] : text);
  const onRejected = (number: number, reason: string) => void rejected.push([number, reason]);
  const counts = await loadReference({ source, reference: fixture.reference, onRejected, onProgress: () => undefined });
  return { counts, rejected: rejected.sort(([a], [b]) => a - b) };
}

describe('loading a file of reference data', () => {
  let fixture: Fixture;
  beforeAll(async () => {
    fixture = fixtureOn(await scratchDatabase());
  });
  afterAll(() => fixture.database[Symbol.asyncDispose]());

  it('D1-10: stores all rows, in any order of parents and children, and a second load changes nothing', async () => {
    const { ids, members } = newFamily();
    const row = { name: 'n', symbol: 's', type: 't', created_at: '2026-01-05T09:30:00Z', version: 1 };
    const lines = [
      line('reference.wallets', ids.wallets, { ...row, ...members.wallets }),
      line('reference.assets', ids.assets, { ...row, ...members.assets, status: 'draft' }),
      line('reference.accounts', ids.accounts, { ...row, ...members.accounts, status: 1 }),
      line('reference.currencies', ids.currencies, { ...row, ...members.currencies }),
      line('reference.networks', ids.networks, { ...row, ...members.networks }),
      line('reference.chains', ids.chains, row),
      line('reference.nodes', ids.nodes, row),
    ];
    expect((await load(fixture, lines.join('\n'))).counts).toMatchObject({ lines: 7, applied: 7, rejected: 0 });
    expect((await load(fixture, lines.join('\r\n\r\n'))).counts).toMatchObject({ lines: 7, applied: 0, rejected: 0 });
    await load(fixture, `${line('reference.accounts', ids.accounts, null)}\n`);
    expect((await rowOf(fixture, 'accounts', ids.accounts))?.deleted_at).not.toBeNull();
  });

  it('D1-10: reports invalid lines by number, and applies all others', async () => {
    const good = [randomUUID(), randomUUID(), randomUUID()] as const;
    const node = randomUUID();
    const text = [
      chainLine(good[0]),
      '{',
      '[]',
      line('transactions.admin', randomUUID(), {}),
      '{"topic":"reference.chains","key":"not a uuid","value":null}',
      `{"topic":"reference.chains","key":"${good[0]}"}`,
      chainLine(good[1]),
      '',
      line('reference.nodes', node, { name: 'n', version: 1 }),
      line('reference.accounts', randomUUID(), { node_id: node, version: 1 }),
      'x'.repeat(1024 * 1024 + 1),
      chainLine(good[2]),
    ].join('\n');
    const { counts, rejected } = await load(fixture, text);
    expect(rejected.map(([number]) => number)).toEqual([2, 3, 4, 5, 6, 10, 11]);
    for (const [, reason] of rejected) expect(reason).toMatch(/\w/);
    expect(counts).toMatchObject({ lines: 11, applied: 4, rejected: 7 });
    for (const id of good) expect(await rowOf(fixture, 'chains', id)).toBeDefined();
  });

  it('D1-10: reports only the line whose value the database rejects, and applies the rest of its batch', async () => {
    const ids = Array.from({ length: 9 }, () => randomUUID());
    let calls = 0;
    const apply: Fixture['reference']['apply'] = async (changes) => {
      calls += 1;
      const isBad = changes.some(({ id }) => id === ids[4]);
      if (isBad) throw Object.assign(new Error('refused'), { code: '22003' });
      return fixture.reference.apply(changes);
    };
    const rejected: number[] = [];
    const counts = await loadReference({
      source: Readable.from([Buffer.from(ids.map((id) => chainLine(id)).join('\n'))]),
      reference: { apply },
      onRejected: (number) => void rejected.push(number),
      onProgress: () => undefined,
    });
    expect([rejected, counts.applied]).toEqual([[5], 8]);
    expect(calls).toBeLessThan(12);
  });

  it('D1-10: stops at a failure that no line caused', async () => {
    const apply = () => Promise.reject(Object.assign(new Error('gone'), { code: '57P01' }));
    const source = Readable.from([Buffer.from(chainLine(randomUUID()))]);
    const options = { source, reference: { apply }, onRejected: () => undefined, onProgress: () => undefined };
    await expect(loadReference(options)).rejects.toThrow('gone');
  });

  it('D1-10: applies batches of a thousand lines, however the input is cut into chunks', async () => {
    const text = Buffer.from(Array.from({ length: 2_500 }, (_, index) => chainLine(randomUUID(), index)).join('\n'));
    const chunks = Array.from({ length: Math.ceil(text.length / 777) }, (_, at) =>
      text.subarray(at * 777, at * 777 + 777),
    );
    const sizes: number[] = [];
    const apply: Fixture['reference']['apply'] = async (changes) => {
      sizes.push(changes.length);
      return { applied: changes.length, parked: 0, rejected: [] };
    };
    const counts = await loadReference({
      source: Readable.from(chunks),
      reference: { apply },
      onRejected: () => undefined,
      onProgress: () => undefined,
    });
    expect([sizes, counts.bytes]).toEqual([[1_000, 1_000, 500], text.length]);
  });

  it('D1-10: buffers at most a chunk of an overlong line', async () => {
    async function* endless() {
      for (let at = 0; at < 40; at += 1) yield Buffer.alloc(1_000, 'x');
      yield Buffer.from('\nshort');
    }
    const lines: [number, number | undefined][] = [];
    for await (const { number, bytes } of linesOf(endless(), 4_000)) lines.push([number, bytes?.length]);
    expect(lines).toEqual([
      [1, undefined],
      [2, 5],
    ]);
  });
});

describe('progress', () => {
  it.each([
    [true, ['\r\u001b[K[###############...............]  50 %  1 line', '\r\u001b[K']],
    [false, []],
  ])('D1-12: is a bar on a terminal and nothing elsewhere (terminal: %s)', (isTTY, expected) => {
    const written: string[] = [];
    let now = 0;
    const progress = new Progress({ isTTY, write: (text) => written.push(text) }, () => now);
    now = 5_000;
    for (let at = 0; at < 3; at += 1) progress.show({ done: 5, total: 10, text: '1 line' });
    progress.end();
    expect(written).toEqual(expected);
  });
});

describeReal('postgres', 'reference commands', () => {
  let database: RealDatabase;
  let folder: TestFolder;
  let env: Record<string, string>;
  beforeAll(async () => {
    [database, folder] = [await realDatabase(), await emptyFolder()];
    env = { DATA_DIR: folder.path, DATABASE_URL: database.url };
  });
  afterAll(async () => {
    await folder?.[Symbol.asyncDispose]();
    await database?.[Symbol.asyncDispose]();
  });

  it('D1-10 D1-12: node create creates a node, prints its id, and fails for an existing id', async () => {
    const made = await portcullis(['node', 'create', '--name', 'Acme'], env);
    expect(made).toMatchObject({ code: 0, err: '', out: expect.stringMatching(/^[0-9a-f-]{36}\n$/) });
    const id = randomUUID();
    const args = ['node', 'create', '--name', 'Bank', '--id', id.toUpperCase(), '--json'];
    expect(JSON.parse((await portcullis(args, env)).out)).toEqual({ id, name: 'Bank' });
    expect(await portcullis(args, env)).toMatchObject({ code: 1, err: expect.stringContaining(id) });
    expect(await portcullis(['node', 'create', '--name', ' '], env)).toMatchObject({ code: 2 });
    expect(await portcullis(['node', 'create', '--name', 'x', '--id', 'y'], env)).toMatchObject({ code: 2 });
    const nodes = await database.db.unscoped('test').run((k) => k.selectFrom('nodes').select(['id', 'name']));
    expect(nodes.map(({ name }) => name).sort()).toEqual(['Acme', 'Bank']);
    expect(nodes).toContainEqual({ id, name: 'Bank' });
  });

  it('D1-10 D1-12: reference load reads a file or standard input, and exits with 1 if a line is invalid', async () => {
    const file = join(folder.path, 'rows.ndjson');
    await writeFile(file, `${chainLine(randomUUID())}\n{}\n${chainLine(randomUUID())}\n`);
    const loaded = await portcullis(['reference', 'load', file], env);
    expect(loaded).toEqual({
      code: 1,
      err: expect.stringMatching(/^line 2: must be an object .*\n$/),
      out: '3 lines: 2 rows written, 1 invalid lines.\n',
    });
    const piped = await runCli(['reference', 'load', '-', '--json'], env, `${chainLine(randomUUID())}\n`);
    expect(piped).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(piped.stdout)).toEqual({
      ...{ lines: 1, applied: 1, waiting: 0, rejected: 0 },
      ...{ rejections: [], dropped: [] },
    });
    for (const missing of [join(folder.path, 'none'), folder.path]) {
      const refused = await portcullis(['reference', 'load', missing], env);
      expect(refused).toMatchObject({ code: 1, err: expect.stringContaining(missing) });
    }
  });

  it('D1-12: a schema that is not migrated is an error', async () => {
    await using empty = await freshDatabase();
    const refused = await portcullis(['node', 'create', '--name', 'x'], { DATABASE_URL: empty.url });
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('portcullis migrate') });
  });
});

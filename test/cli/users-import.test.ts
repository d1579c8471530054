import { randomUUID } from 'node:crypto';
import { utimesSync } from 'node:fs';
import { readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { portcullis } from '../support/cli/in-process.ts';
import { type RealDatabase, realDatabase } from '../support/harness/databases.ts';
import { embeddedToo } from '../support/harness/in-turn.ts';
import { describeReal } from '../support/services/real.ts';
import { emptyFolder, startedFolder, type TestFolder } from '../support/start/folders.ts';
import { runCli, type Spawned, spawnCli } from '../support/start/process.ts';
import { csvOf, newNode, stateOf } from '../support/user-migrations/files-fixture.ts';

// Each command opens a database, and some are processes, on machines that are busy with other tests.
async function fileWith(folder: TestFolder, content: string | Buffer): Promise<string> {
  const path = join(folder.path, `${randomUUID()}.csv`);
  await writeFile(path, content);
  return path;
}

describeReal('postgres', 'users import', () => {
  let database: RealDatabase;
  let folder: TestFolder;
  let env: Record<string, string>;
  let node: string;
  beforeAll(async () => {
    [database, folder] = [await realDatabase(), await emptyFolder()];
    env = { DATA_DIR: folder.path, DATABASE_URL: database.url };
    node = (await newNode(database.db)).nodeId;
  });
  afterAll(async () => {
    await folder?.[Symbol.asyncDispose]();
    await database?.[Symbol.asyncDispose]();
  });

  it('D7-09 D1-12: migrates a file, prints the counters, names the invalid lines, and exits with 1 for them', async () => {
    const file = await fileWith(
      folder,
      csvOf(20, { 7: '0x7,g@x.y,,,x', 9: '0x1,again@x.y,,', 12: `${'x'.repeat(200)},l@x.y,,` }),
    );
    const plain = await portcullis(['users', 'import', file, '--node', node], env);
    expect(plain).toMatchObject({
      code: 1,
      err: 'line 7: has 5 fields, not 4\nline 12: wallet_address has more than 128 characters\n',
    });
    expect(plain.out.split('\n')).toEqual([
      '20 rows: 17 created, 1 skipped, 2 failed.',
      expect.stringMatching(/^Migration [0-9a-f-]{36} is done\.$/),
      '',
    ]);
    const again = await portcullis(['users', 'import', '--node', node.toUpperCase(), '--json', file], env);
    expect(again.code).toBe(1);
    expect(JSON.parse(again.out)).toEqual({
      id: expect.any(String),
      status: 'done',
      dry_run: false,
      total: 20,
      success: 0,
      skipped: 18,
      failed: 2,
      warnings: [],
      failures: [
        { index: 7, reason: 'line 7: has 5 fields, not 4' },
        { index: 12, reason: 'wallet_address has more than 128 characters' },
      ],
    });
    const resumed = await portcullis(
      ['users', 'import', '--node', node, '--resume', JSON.parse(again.out).id, '--json'],
      env,
    );
    expect(resumed).toEqual(again);
    const fresh = await fileWith(folder, 'wallet_address,external_id\n0xnew,new\n');
    expect((await portcullis(['users', 'import', fresh, '--node', node], env)).code).toBe(0);
  });

  it('D7-12 D1-12: rejects a file in UTF-16 with the cause and what to do', async () => {
    const file = await fileWith(folder, Buffer.from('wallet_address,email\n', 'utf16le'));
    const { code, err } = await portcullis(['users', 'import', file, '--node', node], env);
    expect([code, err]).toEqual([1, 'portcullis: the file is in UTF-16: save it as CSV in UTF-8\n']);
  });

  it('D7-15 D1-12: --dry-run prints what an import would do, and creates no user', async () => {
    const { nodeId } = await newNode(database.db);
    const dryRun = async (content: string) => {
      const { code, out } = await portcullis(
        ['users', 'import', await fileWith(folder, content), '--node', nodeId, '--dry-run'],
        env,
      );
      return [code, ...out.split('\n').slice(0, 2)];
    };
    const file = csvOf(20, { 9: '0x1,again@x.y,,', 12: `${'x'.repeat(200)},l@x.y,,` });
    expect(await dryRun(file)).toEqual([
      1,
      '20 rows: 18 would be created, 1 skipped, 1 failed.',
      'This was a dry run.',
    ]);
    expect(await dryRun(csvOf(501))).toEqual([
      0,
      '501 rows: 501 would be created, 0 skipped, 0 failed.',
      'This was a dry run. Each row was compared only with the rows of its batch.',
    ]);
    const { users, events, migrations } = await stateOf(database.db, nodeId);
    expect([users, events, migrations.map(({ dry_run }) => dry_run)]).toEqual([[], [], [true, true]]);
    const resumed = ['users', 'import', '--node', nodeId, '--resume', migrations[0]?.id ?? '', '--dry-run'];
    expect(await portcullis(resumed, env)).toMatchObject({
      code: 2,
      err: expect.stringContaining('--dry-run cannot be combined with --resume: omit it'),
    });
  });

  it('D7-09 D1-12: --failed-to copies the failed rows byte for byte, to be corrected and imported', async () => {
    const { nodeId } = await newNode(database.db);
    const copy = join(folder.path, `${randomUUID()}.csv`);
    const header = '\ufeff"wallet_address",email,name\r\n';
    const failing = [
      `${'w'.repeat(200)},"a@x.y","two\r\nlines, ""quoted"""\r\n`,
      Buffer.from('0x3,c@x.y,B\xf6b\n', 'latin1'),
      '0x4,d@x.y,"open\r\n',
      `0x5,${'long'.repeat(300_000)},\n`,
      ' ,f@x.y,no wallet',
    ];
    const bytesOf = (texts: (string | Buffer)[]) => Buffer.concat(texts.map((text) => Buffer.from(text)));
    // Before each failing row stand blank records, a row that is created and a duplicate.
    const others = (at: number) => `\r\n,,\r\n0x9${at},ok-${at}@x.y,"Ann ""A"""\r\n\n0x90,again@x.y,\n`;
    const rows = failing.flatMap((row, at) => [others(at), row]);
    const file = await fileWith(folder, bytesOf([header, ...rows.slice(0, -2), '\n', ...rows.slice(-1)]));
    const run = (...args: string[]) => portcullis(['users', 'import', '--node', nodeId, ...args], env);
    for (const dry of [['--dry-run'], []]) {
      expect(await run(file, '--failed-to', copy, ...dry)).toMatchObject({
        code: 1,
        out: expect.stringContaining(`Copied the failed rows to ${copy}: correct them and import this file.\n`),
      });
      expect(await readFile(copy)).toEqual(bytesOf([header, ...failing]));
      const again = await run(file, '--failed-to', copy);
      expect(again).toMatchObject({ code: 1, err: expect.stringMatching(/exists.*: name a new file/) });
      await rm(copy);
    }
    const corrected = await run(await fileWith(folder, `${header}0x11,a@x.y,\n`), '--failed-to', copy);
    expect(corrected).toMatchObject({
      code: 0,
      out: expect.stringContaining(`No row failed: ${copy} was not written.\n`),
    });
    await expect(readFile(copy)).rejects.toThrow('ENOENT');
    for (const args of [['-'], ['--resume', randomUUID()]]) {
      const refused = await run(...args, '--failed-to', copy);
      expect(refused).toMatchObject({ code: 2, err: expect.stringContaining('--failed-to needs a regular FILE') });
    }
  });

  it('D7-09 D1-12: --failed-to must be a file that can be created, and FILE must not change during the run', async () => {
    const file = await fileWith(folder, 'wallet_address,email\n ,a@x.y\n');
    const run = (to: string) => portcullis(['users', 'import', file, '--node', node, '--failed-to', to], env);
    const [missing, dangling, copy] = ['missing/copy.csv', 'dangling', 'copy.csv'].map((name) =>
      join(folder.path, name),
    );
    await symlink(missing ?? '', dangling ?? '');
    for (const to of ['', missing, dangling]) {
      const { code, err } = await run(to ?? '');
      expect([code, err]).toEqual([1, expect.stringMatching(/^portcullis: cannot create a file for --failed-to/)]);
    }
    let time = 0;
    const timer = setInterval(() => utimesSync(file, time, time++), 1);
    const changed = await run(copy ?? '').finally(() => clearInterval(timer));
    expect(changed).toMatchObject({
      code: 1,
      err: expect.stringContaining(`could not be copied: ${file} has changed; ${copy} was not written`),
    });
  });

  it('D7-09 D1-12: exits with 1 if the failed rows would exceed their storage, and prints what it stored', async () => {
    const file = await fileWith(folder, `wallet_address,email\n0xkept,kept@x.y\n${'a,b,c\n'.repeat(30_000)}`);
    const { code, out, err } = await portcullis(['users', 'import', file, '--node', node], env);
    expect(code).toBe(1);
    expect(err).toContain('and 6,490 more failed rows\n');
    expect(out.split('\n')).toEqual([
      '30,001 rows: 1 created, 0 skipped, 6,500 failed.',
      expect.stringMatching(/^Migration [0-9a-f-]{36} is failed\.$/),
      '',
    ]);
  });
});

// In a quick run test/cli/beside-instance.test.ts has an import into one.
embeddedToo('D7-09 D1-12: migrates a file into an embedded database', async () => {
  await using folder = await startedFolder();
  const env = { DATA_DIR: folder.path };
  const { node_id: node } = JSON.parse(await readFile(join(folder.path, 'demo.json'), 'utf8'));
  const file = await fileWith(folder, csvOf(20, { 7: '0x7,g@x.y,,,x' }));
  const { code, out, err } = await portcullis(['users', 'import', file, '--node', node], env);
  expect({ code, err }).toEqual({ code: 1, err: 'line 7: has 5 fields, not 4\n' });
  expect(out).toMatch(/^20 rows: 19 created, 0 skipped, 1 failed\.$/m);
});

const [ROWS, KILLS] = inject('isThorough') ? [8_000, 2] : [4_000, 1];

describeReal('postgres', 'users import on PostgreSQL', () => {
  let database: RealDatabase;
  let folder: TestFolder;
  let env: Record<string, string>;
  beforeAll(async () => {
    [database, folder] = [await realDatabase(), await emptyFolder()];
    env = { DATA_DIR: folder.path, DATABASE_URL: database.url };
  });
  afterAll(async () => {
    await folder[Symbol.asyncDispose]();
    await database[Symbol.asyncDispose]();
  });

  /** Waits until more rows than given are applied; gives the migration's id and how many they are. */
  const applied = async (nodeId: string, more: number, spawned: Spawned) => {
    let ended = false;
    void spawned.ended.then(() => (ended = true));
    for (;;) {
      const [row] = await database.db.forNode(nodeId).run((k) => k.selectFrom('migrations').selectAll());
      if (row && row.success > more) return { id: row.id, rows: row.success };
      if (ended) throw new Error('it has ended before');
      await delay(20);
    }
  };

  it(`D7-09: an import ${KILLS === 1 ? 'killed' : 'killed twice'} halfway and then interrupted is finished by another process, and applies each row once`, async () => {
    const { nodeId } = await newNode(database.db);
    const file = await fileWith(folder, csvOf(ROWS));
    let spawned = spawnCli(['users', 'import', file, '--node', nodeId], env);
    const { id, rows: first } = await applied(nodeId, 0, spawned);
    let rows = first;
    const resume = ['users', 'import', '--node', nodeId, '--resume', id, '--json'];
    for (let kill = 0; kill < KILLS; kill += 1) {
      expect((await spawned.kill('SIGKILL')).signal).toBe('SIGKILL');
      spawned = spawnCli(resume, env);
      ({ rows } = await applied(nodeId, rows, spawned));
    }
    // It stops after a batch, says how to go on, and lets others take the job at once.
    const interrupted = await spawned.kill('SIGINT');
    expect(interrupted.code).toBe(1);
    expect(interrupted.stderr).toMatch(
      new RegExp(`interrupted after [\\d,]+ of ${ROWS.toLocaleString('en')} rows, which are kept`),
    );
    expect(interrupted.stderr).toContain(`portcullis users import --node ${nodeId} --resume ${id}`);
    const { jobs } = await stateOf(database.db, nodeId);
    expect(jobs).toMatchObject([{ lease_owner: null }]);
    expect(new Date(`${jobs[0]?.lease_until}`).getTime()).toBeLessThanOrEqual(Date.now());
    expect(rows).toBeLessThan(ROWS);
    const { code, stdout } = await runCli(resume, env);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      id,
      status: 'done',
      dry_run: false,
      total: ROWS,
      success: ROWS,
      skipped: 0,
      failed: 0,
      failures: [],
      warnings: [],
    });
    const { rows: recorded, users, events, chunks, migrations } = await stateOf(database.db, nodeId);
    expect(recorded.map(({ index }) => index)).toEqual(Array.from({ length: ROWS }, (_, at) => at + 1));
    expect(new Set(events.map(({ key }) => key))).toEqual(new Set(users.map((user) => user.id)));
    expect([users.length, events.length, chunks.length, migrations.length]).toEqual([ROWS, ROWS, 0, 1]);
  });

  it('D7-09: an import interrupted while it reads a pipe stores nothing', async () => {
    const { nodeId } = await newNode(database.db);
    const pipe = new PassThrough();
    const spawned = spawnCli(['users', 'import', '-', '--node', nodeId], env, pipe);
    pipe.write(csvOf(3 * ROWS));
    const chunks = async () => (await stateOf(database.db, nodeId)).chunks.length;
    await expect.poll(chunks).toBeGreaterThan(0);
    const ended = spawned.kill('SIGINT');
    pipe.end('0x9,cut');
    expect(await ended).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('interrupted while storing the file; nothing was stored'),
    });
    expect(await stateOf(database.db, nodeId)).toMatchObject({ migrations: [], chunks: [], jobs: [] });
  });
});

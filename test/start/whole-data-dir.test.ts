import { randomInt } from 'node:crypto';
import { cpSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { portcullis } from '../support/cli/in-process.ts';
import { startPortcullis } from '../support/harness.ts';
import { emptyFolder, refusalOf, type TestFolder } from '../support/start/folders.ts';
import { spawnInstance } from '../support/start/process.ts';

// Each test starts processes, on machines that are busy with other tests.
type Damage = (part: string, other: string) => Promise<void>;

const DAMAGES: Readonly<Record<string, Damage>> = {
  removed: (part) => rm(part, { recursive: true }),
  emptied: (part) => truncate(part, 0),
  cut: async (part) => truncate(part, Math.floor((await readFile(part)).length / 2)),
  swapped: (part, other) => cp(other, part, { recursive: true }),
};

const DEMO_DAMAGE = ['removed', 'emptied', 'cut'][randomInt(3)];

/** What is left of the name of an instance's file when the damage is told. */
const WORDS: Readonly<Record<string, RegExp>> = {
  removed: /is missing/,
  emptied: /is damaged/,
  cut: /is damaged/,
  swapped: /belongs to another installation/,
};

async function newestSegment(dataDir: string): Promise<string> {
  const names = await readdir(join(dataDir, 'postgres/pg_wal'));
  return `postgres/pg_wal/${names
    .filter((name) => /^[0-9A-F]{24}$/.test(name))
    .sort()
    .at(-1)}`;
}

/** The size of every file of a folder and when it was last written, but for the lock, which each start touches. */
async function filesOf(folder: string): Promise<Record<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile() && !entry.name.startsWith('lock'))
    .map((entry) => join(entry.parentPath, entry.name));
  const told = async (path: string) => {
    const { size, mtimeNs, ino } = await stat(path, { bigint: true });
    return [path, `${size} ${mtimeNs} ${ino}`] as const;
  };
  return Object.fromEntries((await Promise.all(paths.map(told))).sort());
}

async function copyOf(folder: TestFolder): Promise<TestFolder> {
  const copy = await emptyFolder();
  await cp(folder.path, copy.path, { recursive: true });
  return copy;
}

/** The start is refused with one sentence, and every file stays as it is: those of a database that is whole may have been opened. */
async function expectRefusal(dataDir: string, what: RegExp): Promise<void> {
  const isKept = ([path]: readonly [string, string]) => !`${what}`.includes('demo') || !path.includes('/postgres/');
  const files = async () => Object.entries(await filesOf(dataDir)).filter(isKept);
  const before = await files();
  const told = (await refusalOf(dataDir)) ?? 'it starts';
  const sentence =
    /^DATA_DIR \S+ is incomplete or damaged: (?<what>[^\n]*). Restore it from a backup, or set another DATA_DIR$/;
  expect(told).toMatch(sentence);
  expect(sentence.exec(told)?.groups?.what).toMatch(what);
  expect(await files()).toEqual(before);
}

describe('an incomplete DATA_DIR', () => {
  let whole: TestFolder;
  let other: TestFolder;
  let damaged: TestFolder;

  beforeAll(async () => {
    whole = await emptyFolder();
    other = await emptyFolder();
    // Two first starts: what is copied from a template would have one id.
    for (const { path } of [whole, other]) await (await startPortcullis({ dataDir: path }))[Symbol.asyncDispose]();
    damaged = await copyOf(whole);
  });
  afterAll(async () => {
    for (const folder of [whole, other, damaged]) await folder[Symbol.asyncDispose]();
  });

  const parts = [
    'secrets.json',
    'demo.json',
    'postgres/PG_VERSION',
    'postgres/global/pg_control',
    'the newest WAL segment',
  ];
  const rows = parts
    .flatMap((part) => Object.keys(DAMAGES).map((damage) => [part, damage] as const))
    // The demo is looked at with the database open, which takes its time: in a quick run one damage in turn, and another's demo below.
    .filter(([part, damage]) => inject('isThorough') || part !== 'demo.json' || damage === DEMO_DAMAGE);

  it.each(rows)('D1-14: a start with %s %s ends with one sentence and creates nothing', async (part, damage) => {
    const isNamed = !part.startsWith('the ');
    const nameIn = (folder: TestFolder) => (isNamed ? part : newestSegment(folder.path));
    const name = await nameIn(whole);
    const at = join(damaged.path, name);
    await DAMAGES[damage]?.(at, join(other.path, await nameIn(other)));
    // Of two instances it says the same.
    if (name.endsWith('PG_VERSION') && damage === 'swapped') return;
    await expectRefusal(damaged.path, new RegExp(`${name.replaceAll('.', '\\.')} ${WORDS[damage]?.source}`));
    await cp(join(whole.path, name), at);
  });

  it.each([
    ['removed', 'is missing'],
    ['swapped', 'belongs to another installation'],
  ])('D1-14: a start with the whole database %s is rejected', async (damage, words) => {
    await using folder = await copyOf(whole);
    const part = join(folder.path, 'postgres');
    await rm(part, { recursive: true });
    if (damage === 'swapped') await cp(join(other.path, 'postgres'), part, { recursive: true });
    await expectRefusal(folder.path, new RegExp(`postgres ${words}`));
  });

  async function expectStart(dataDir: string, meanwhile: () => void = () => undefined): Promise<void> {
    const { client } = JSON.parse(await readFile(join(dataDir, 'demo.json'), 'utf8'));
    await using p = await startPortcullis({ dataDir });
    meanwhile();
    expect(await p.clientToken(client)).toMatch(/^ey/);
  }

  it('D1-14: a start succeeds once files are restored, and fails with a truncated log of a killed instance', async () => {
    await using folder = await emptyFolder();
    // Between two statements, as a kill leaves the files.
    await expectStart(damaged.path, () => cpSync(damaged.path, folder.path, { recursive: true }));
    const name = await newestSegment(folder.path);
    await DAMAGES.cut?.(join(folder.path, name), '');
    await expectRefusal(folder.path, /pg_wal\/\w+ is damaged/);
  });

  it('D1-14: a start with a database that does not open ends with one sentence', async () => {
    await using folder = await copyOf(whole);
    await rm(join(folder.path, 'postgres/pg_xact'), { recursive: true });
    await rm(join(folder.path, 'postgres/base'), { recursive: true });
    const { code, stdout, stderr } = await spawnInstance({ DATA_DIR: folder.path }).ended;
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(
      /^Portcullis cannot start: DATA_DIR \S+ is incomplete or damaged: postgres cannot be opened \([^\n]*\n$/,
    );
  });

  it('a DATA_DIR without ids gets them at the first start, and files of another installation are detected', async () => {
    await using folder = await copyOf(whole);
    const strip = async (dataDir: string, name: string, member: string) => {
      const path = join(dataDir, name);
      const { [member]: id, ...rest } = JSON.parse(await readFile(path, 'utf8'));
      expect(id).toMatch(/^\d+$/);
      await writeFile(path, JSON.stringify(rest));
    };
    const older = async (dataDir: string) => {
      await strip(dataDir, 'secrets.json', 'instanceId');
      await strip(dataDir, 'demo.json', 'instance_id');
    };
    await older(folder.path);
    await expectStart(folder.path);
    for (const [name, member] of [
      ['secrets.json', 'instanceId'],
      ['demo.json', 'instance_id'],
    ] as const) {
      const [adopted, known] = await Promise.all(
        [folder, whole].map(async ({ path }) => JSON.parse(await readFile(join(path, name), 'utf8'))),
      );
      expect(adopted[member]).toBe(known[member]);
    }

    await using stranger = await copyOf(other);
    await older(stranger.path);
    for (const name of ['secrets.json', 'demo.json']) {
      await rename(join(folder.path, name), join(folder.path, 'kept'));
      await cp(join(stranger.path, name), join(folder.path, name));
      await expectRefusal(folder.path, new RegExp(`${name} belongs to another installation`));
      await rename(join(folder.path, 'kept'), join(folder.path, name));
    }
    // That restored files start an instance, the test above has in each run.
    if (inject('isThorough')) await expectStart(folder.path);
  });

  it('D1-12: a command fails with the message of a start, and creates nothing', async () => {
    await using folder = await copyOf(whole);
    await rm(join(folder.path, 'secrets.json'));
    const before = await filesOf(folder.path);
    for (const command of [['client', 'list'], ['migrate'], ['seed'], ['node', 'create', '--name', 'A']]) {
      const { code, out, err } = await portcullis(command, { DATA_DIR: folder.path });
      expect({ code, out }).toEqual({ code: 1, out: '' });
      expect(err).toMatch(/^portcullis: DATA_DIR \S+ is incomplete or damaged: secrets\.json is missing\. [^\n]*\n$/);
    }
    expect(await filesOf(folder.path)).toEqual(before);
  });
});

const ID = '0190b8a4-6a54-7c3e-9d2f-3f0c5a1b2c3d';

it.each([
  [['client', 'list']],
  [['audit', 'list']],
  [['client', 'disable', ID]],
  [['client', 'rotate-secret', ID]],
  [['supervisor', 'unlock', ID]],
  [['users', 'erase', ID]],
  [['transactions', 'replay', '--dlq']],
])('D1-12: %j on an empty or missing DATA_DIR creates nothing and says how to start', async (command) => {
  await using folder = await emptyFolder();
  for (const dataDir of [folder.path, join(folder.path, 'absent')]) {
    const { code, out, err } = await portcullis(command, { DATA_DIR: dataDir });
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toBe(
      `portcullis: there is no database in DATA_DIR ${dataDir}: run portcullis start to create one, or set DATABASE_URL to a server\n`,
    );
    expect(await readdir(folder.path)).toEqual([]);
  }
});

it('D1-12: config check creates nothing', async () => {
  await using folder = await emptyFolder();
  expect((await portcullis(['config', 'check'], { DATA_DIR: join(folder.path, 'absent') })).code).toBe(0);
  await mkdir(join(folder.path, 'empty'));
  expect((await portcullis(['config', 'check'], { DATA_DIR: join(folder.path, 'empty') })).code).toBe(0);
  expect(await readdir(folder.path, { recursive: true })).toEqual(['empty']);
});

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { portcullis } from '../support/cli/in-process.ts';
import { type RealDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';
import { emptyFolder, type TestFolder } from '../support/start/folders.ts';

const NODE = '0190b8a4-6a54-7c3e-9d2f-3f0c5a1b2c3d';
const ABSENT = '0190b8a4-6a54-7c3e-9d2f-000000000000';

describeReal('postgres', 'the faults of a command', () => {
  let folder: TestFolder;
  let database: RealDatabase;
  const file = (name: string) => join(folder.path, name);
  const env = () => ({ DATA_DIR: folder.path, DATABASE_URL: database.url });
  const envOf = (name: string) => ({ ...env(), ...(name === 'config check' ? { PORT: 'http' } : {}) });

  beforeAll(async () => {
    [folder, database] = [await emptyFolder(), await realDatabase()];
    await writeFile(file('no.json'), 'this is no JSON\n');
    await writeFile(file('bad.csv'), 'wallet_address,email\nnothing,nobody,nowhere\n');
    await writeFile(file('other.csv'), 'colour\nred\n');
    expect((await portcullis(['node', 'create', '--name', 'A', '--id', NODE], env())).code).toBe(0);
  });
  afterAll(async () => {
    await database?.[Symbol.asyncDispose]();
    await folder?.[Symbol.asyncDispose]();
  });

  const rows: [name: string, args: () => string[], fault: RegExp, answer: RegExp, inDocument: boolean][] = [
    [
      'reference load, no JSON',
      () => ['reference', 'load', file('no.json')],
      /^line 1: must be JSON, and is malformed at line 1 column 1$/m,
      /^1 lines: /,
      true,
    ],
    [
      'users import, a bad line',
      () => ['users', 'import', file('bad.csv'), '--node', NODE],
      /has 3 fields/,
      /^1 rows: /,
      true,
    ],
    [
      'users import, other columns',
      () => ['users', 'import', file('other.csv'), '--node', NODE],
      /the file/,
      /^$/,
      false,
    ],
    ['users import, no file', () => ['users', 'import', file('absent'), '--node', NODE], /cannot be read/, /^$/, false],
    ['reference load, no file', () => ['reference', 'load', file('absent')], /cannot be read/, /^$/, false],
    ['config check', () => ['config', 'check'], /^PORT must be/m, /^$/, true],
    ['client list', () => ['client', 'list', '--node', ABSENT], /there is no node/, /^$/, false],
    ['client disable', () => ['client', 'disable', ABSENT], /there is no client/, /^$/, false],
    ['client rotate-secret', () => ['client', 'rotate-secret', ABSENT], /there is no client/, /^$/, false],
    [
      'client create',
      () => [
        'client',
        'create',
        '--name',
        'a',
        '--node',
        ABSENT,
        '--grants',
        'client_credentials',
        '--scopes',
        'accounts:read',
      ],
      /there is no node/,
      /^$/,
      false,
    ],
    [
      'supervisor create',
      () => ['supervisor', 'create', '--username', 'a', '--node', ABSENT, '--role', 'admin'],
      /there is no node/,
      /^$/,
      false,
    ],
    ['supervisor disable', () => ['supervisor', 'disable', ABSENT], /there is no supervisor/, /^$/, false],
    ['supervisor set-password', () => ['supervisor', 'set-password', ABSENT], /there is no supervisor/, /^$/, false],
    ['supervisor unlock', () => ['supervisor', 'unlock', ABSENT], /there is no supervisor/, /^$/, false],
    ['users erase', () => ['users', 'erase', ABSENT], /there is no user/, /^$/, false],
    ['node create', () => ['node', 'create', '--name', 'A', '--id', NODE], /there is a node/, /^$/, false],
    ['transactions replay', () => ['transactions', 'replay'], /give either/, /^$/, false],
    ['audit list', () => ['audit', 'list', '--limit', '0'], /--limit/, /^$/, false],
    ['seed', () => ['seed', '--colour'], /--colour/, /^$/, false],
    ['migrate', () => ['migrate', 'now'], /wanted: /, /^$/, false],
    ['completion', () => ['completion', 'cmd'], /wanted: portcullis completion/, /^$/, false],
  ];
  it.each(rows)(
    'D1-12: %s: they are on the standard error, what it answers on the output',
    async (name, args, fault, answer) => {
      const { code, out, err } = await portcullis(args(), envOf(name));
      expect(code).toBeGreaterThan(0);
      expect(err).toMatch(fault);
      expect(out).toMatch(answer);
      expect(out).not.toMatch(fault);
    },
  );

  it.each(rows)(
    'D1-12: %s, with --json: the output is one document, or nothing',
    async (name, args, fault, _answer, inDocument) => {
      const { code, out, err } = await portcullis([...args(), '--json'], envOf(name));
      expect(code).toBeGreaterThan(0);
      if (inDocument) expect([typeof JSON.parse(out), err]).toEqual(['object', '']);
      else expect({ out, isTold: fault.test(err) }).toEqual({ out: '', isTold: true });
    },
  );
});

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { portcullis } from '../support/cli/in-process.ts';
import { type RealDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';
import { emptyFolder, type TestFolder } from '../support/start/folders.ts';

const NODE = '0190b8a4-6a54-7c3e-9d2f-3f0c5a1b2c3d';
const ABSENT = '0190b8a4-6a54-7c3e-9d2f-000000000000';

describeReal('postgres', 'errors of a command', () => {
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

  /** A command, `@` before its files; its fault, and what it answers beside that: in one document with --json. */
  const rows: [command: string, fault: RegExp, answer?: RegExp][] = [
    ['reference load @no.json', /^line 1: must be JSON, but is malformed at line 1 column 1$/m, /^1 lines: /],
    [`users import @bad.csv --node ${NODE}`, /has 3 fields/, /^1 rows: /],
    [`users import @other.csv --node ${NODE}`, /the file has the unknown column "colour": use any of wallet_address/],
    [`users import @bad.csv --node ${ABSENT}`, /there is no node/],
    [`users import --node ${NODE} --resume ${ABSENT}`, /the node \S+ has no migration/],
    [`users import @absent --node ${NODE}`, /cannot be read/],
    ['reference load @absent', /cannot be read/],
    ['config check', /^PORT must be/m, /^$/],
    [`client list --node ${ABSENT}`, /there is no node/],
    [`client disable ${ABSENT}`, /there is no client/],
    [`client rotate-secret ${ABSENT}`, /there is no client/],
    [`client create --name a --node ${ABSENT} --grants password --scopes accounts:read`, /there is no node/],
    [`supervisor create --username a --node ${ABSENT} --role admin`, /there is no node/],
    [`supervisor disable ${ABSENT}`, /there is no supervisor/],
    [`supervisor set-password ${ABSENT}`, /there is no supervisor/],
    [`supervisor unlock ${ABSENT}`, /there is no supervisor/],
    [`users erase ${ABSENT}`, /there is no user/],
    [`node create --name A --id ${NODE}`, /exists or has existed/],
    ['transactions replay', /give either/],
    ['audit list --limit 0', /--limit/],
    ['seed --colour', /--colour/],
    ['migrate now', /usage: /],
    ['completion cmd', /SHELL must be bash or zsh/],
  ];

  it.each(rows)(
    'D1-12: %s: errors go to standard error, results to standard output, and with --json one document or nothing',
    async (command, fault, answer) => {
      const words = command.split(' ').map((word) => (word.startsWith('@') ? file(word.slice(1)) : word));
      const { code, out, err } = await portcullis(words, envOf(command));
      expect(code).toBeGreaterThan(0);
      expect(err).toMatch(fault);
      expect(out).toMatch(answer ?? /^$/);
      expect(out).not.toMatch(fault);
      if (code === 1 && !answer) expect(err).toMatch(/^portcullis: [^\n]+\n$/);
      const json = await portcullis([...words, '--json'], envOf(command));
      expect(json.code).toBe(code);
      if (answer) expect([typeof JSON.parse(json.out), json.err]).toEqual(['object', '']);
      else expect({ out: json.out, isTold: fault.test(json.err) }).toEqual({ out: '', isTold: true });
    },
  );
});

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { ROOT } from '../start/process.ts';
import { portcullis } from './in-process.ts';

const COMMANDS = ['start', 'migrate', 'seed', 'config check'];
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };

it('D1-12: npx portcullis runs from the repository', async () => {
  const { stdout } = await promisify(execFile)('npx', ['portcullis', '--version'], { cwd: ROOT });
  expect(stdout).toBe(`${version}\n`);
});

it('D1-12: --help lists every command, and --version tells the version', async () => {
  const help = await portcullis(['--help']);
  expect(help).toMatchObject({ code: 0, err: '' });
  for (const command of COMMANDS) expect(help.out).toMatch(new RegExp(`^  ${command} +\\w`, 'm'));
  expect(await portcullis(['--version'])).toEqual({ code: 0, out: `${version}\n`, err: '' });
});

it.each(COMMANDS)('D1-12: %s --help shows its flags and examples, and does nothing else', async (command) => {
  const { code, out, err } = await portcullis([...command.split(' '), '--help'], { NODE_ENV: 'production' });
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toContain(`Usage: portcullis ${command} `);
  expect(out).toContain('--json');
  expect(out).toMatch(/^Examples:\n {2}.*portcullis/m);
  expect(out.split('\n').filter((line) => line.length > 100)).toEqual([]);
});

it.each([
  [[], 'no command'],
  [['config'], 'no command config'],
  [['strat'], 'no command strat'],
  [['--json'], 'no command --json'],
  [['migrate', '--wat'], "Unknown option '--wat'"],
  [['migrate', '--json=yes'], '--json'],
  [['migrate', 'now'], 'wanted: portcullis migrate'],
])('D1-12: %j is wrong usage and ends with 2', async (args, says) => {
  const { code, out, err } = await portcullis(args);
  expect({ code, out }).toEqual({ code: 2, out: '' });
  expect(err).toContain(says);
  expect(err).toMatch(/Try: portcullis.* --help\n$/);
});

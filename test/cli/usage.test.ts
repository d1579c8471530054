import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, inject, it } from 'vitest';
import { portcullis } from '../support/cli/in-process.ts';
import { emptyFolder } from '../support/start/folders.ts';
import { ROOT } from '../support/start/process.ts';

const NAMES = [
  'audit list',
  'completion',
  'node create',
  'reference load',
  'transactions replay',
  'users erase',
  'users import',
  'start',
  'migrate',
  'seed',
  'simulate transaction',
  'config check',
  'client create',
  'client list',
  'client rotate-secret',
  'client disable',
  'supervisor create',
  'supervisor disable',
  'supervisor set-password',
  'supervisor unlock',
];
const ID = randomUUID();
const CLIENT = ['client', 'create', '--node', ID, '--name', 'Billing', '--grants', 'password', '--scopes', ''];
const AT = '2026-11-21T10:00:00Z';
const REPLAYS: [flags: string[], says: string][] = [
  [[], 'give either --dlq or --from TIME'],
  [['--dlq', '--from', AT], 'give either --dlq or --from TIME'],
  [['--dlq', '--to', AT], '--to needs --from'],
  [['--to', AT], 'give either --dlq or --from TIME'],
  [['--from', 'yesterday'], '--from must be a date and time such as'],
  [['--from', AT, '--to', AT], '--from must be before --to'],
  [['--from', '9999-01-01T00:00:00Z'], '--from must be before --to, and before now'],
  [['--dlq', '--topic', 'users.kyc-token'], '--topic has "users.kyc-token": use any of transactions.admin'],
  [
    ['--from', AT, '--topic', 'reference.nodes'],
    '--topic has "reference.nodes": use any of transactions.admin,transactions.user,transactions.registered',
  ],
  [['--dlq', '--topic', ''], '--topic is empty'],
  [['--dlq', 'transactions.admin'], 'usage: portcullis transactions replay'],
];
const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  version: string;
  bin: { portcullis: string };
};

// In a quick run the next one runs the same program; npx finds it by the same line of package.json.
it.runIf(inject('isThorough'))('D1-12: npx portcullis runs in the repository', async () => {
  const { stdout } = await promisify(execFile)('npx', ['portcullis', '--version'], { cwd: ROOT });
  expect(stdout).toBe(`${manifest.version}\n`);
});

it('D1-12: the command line uses the bundled Node, wherever it is linked to and whatever is on the PATH', async () => {
  await using folder = await emptyFolder();
  await writeFile(join(folder.path, 'node'), '#!/bin/sh\necho another Node >&2\nexit 9\n', { mode: 0o755 });
  await symlink(join(ROOT, manifest.bin.portcullis), join(folder.path, 'portcullis'));
  const env = { PATH: `${folder.path}:/usr/bin:/bin` };
  const { stdout } = await promisify(execFile)('portcullis', ['--version'], { cwd: folder.path, env });
  expect(stdout).toBe(`${manifest.version}\n`);
});

it('D1-12: --help lists every command, and --version prints the version', async () => {
  const help = await portcullis(['--help']);
  expect(help).toMatchObject({ code: 0, err: '' });
  for (const command of NAMES) expect(help.out).toMatch(new RegExp(`^  ${command} +\\w`, 'm'));
  expect(await portcullis(['--version'])).toEqual({ code: 0, out: `${manifest.version}\n`, err: '' });
});

it.each(NAMES)('D1-12: %s --help prints its flags and examples, and does nothing else', async (command) => {
  const { code, out, err } = await portcullis([...command.split(' '), '--help'], { NODE_ENV: 'production' });
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toContain(`Usage: portcullis ${command} `);
  expect((await portcullis([...command.split(' '), '-h'])).out).toBe(out);
  expect(out).toContain('--json');
  expect(out).toMatch(/^Examples:\n {2}.*portcullis/m);
  expect(out.split('\n').filter((line) => line.length > 100)).toEqual([]);
});

it.each(['--help', '-h'])('D1-12: a command group with %s lists its commands', async (flag) => {
  const { code, out, err } = await portcullis(['client', flag]);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const shown = NAMES.filter((name) => new RegExp(`^  ${name} +\\w`, 'm').test(out));
  expect(shown).toEqual(['client create', 'client list', 'client rotate-secret', 'client disable']);
});

it.each([
  [[], 'no command'],
  [['config'], 'no command config: there is config check'],
  [['Start'], 'no command Start: did you mean start?'],
  [['star'], 'no command star: did you mean start?'],
  [['s'], 'no command s\n'],
  [['client', 'rotate_secret'], 'no command client rotate_secret: did you mean client rotate-secret?'],
  [['client', 'rotate'], 'no command client rotate: did you mean client rotate-secret?'],
  [['frobnicate'], 'no command frobnicate\n'],
  [['client', 'list', '--jsn'], "Unknown option '--jsn': its flags are --node, --json, --help"],
  [['client', 'list', '--JSON'], "Unknown option '--JSON': did you mean --json?"],
  [['client', 'list', '--nod', ID], "Unknown option '--nod': did you mean --node?"],
  [['--json'], 'no command --json: put flags after the command'],
  [['--json', 'client', 'list'], 'no command --json: put flags after the command'],
  [['-v'], 'no command -v: put flags after the command'],
  [['migrate', '--wat'], "Unknown option '--wat'"],
  [['migrate', '--json=yes'], '--json'],
  [['migrate', '--wat'], '--json, --help'],
  [['migrate', '--json', '--json'], '--json is given more than once'],
  [['migrate', 'now'], 'usage: portcullis migrate'],
  [
    ['client'],
    'no command client: there is client create, client list, client show, client update, client rotate-secret, client disable, client enable',
  ],
  [['client', '--hlep'], 'no command client: there is client create,'],
  [['client', 'create'], 'missing --node, --name, --grants, --scopes; usage: portcullis client create --node ID'],
  [CLIENT.with(3, 'here'), '--node must be a UUID such as'],
  [CLIENT.with(5, ' '), '--name must not be empty'],
  [CLIENT.with(7, 'password,implicit'), '--grants has "implicit": use any of password,client_credentials,'],
  [CLIENT.with(7, ''), '--grants must have at least one grant'],
  [CLIENT.with(9, 'accounts:read,accounts:eat'), '--scopes has "accounts:eat": use any of accounts:read,'],
  [[...CLIENT, '--token-duration', '1h'], '--token-duration must be a whole number, such as --token-duration 3600'],
  [[...CLIENT, '--token-duration', '0'], '--token-duration must be at least 1 second'],
  [[...CLIENT, '--allowed-ips', '192.0.2.7,here'], '--allowed-ips must be an IP address or a network'],
  [[...CLIENT, '--requests-per-minute', '0'], '--requests-per-minute must be at least 1; omit it'],
  [[...CLIENT, '--monthly-limit', '-5'], '--monthly-limit'],
  [[...CLIENT, '--monthly-limit', '99999999999'], '--monthly-limit must be a whole number, at most 2147483647'],
  [[...CLIENT, '--token-duration', '99999999999'], '--token-duration must be a whole number, at most 2147483647'],
  [[...CLIENT, '--cert-fingerprint', 'xyz'], '--cert-fingerprint must be hexadecimal'],
  [[...CLIENT, '--node', ID], '--node is given more than once'],
  [['client', 'list', '--node', '7'], '--node must be a UUID'],
  [['client', 'rotate-secret'], 'usage: portcullis client rotate-secret CLIENT_ID'],
  [['client', 'rotate-secret', 'billing'], 'CLIENT_ID must be a UUID'],
  [['client', 'rotate-secret', ID, '--overlap', 'soon'], '--overlap must be a whole number, such as --overlap 86400'],
  [['client', 'rotate-secret', ID, '--overlap', '9999999'], '--overlap must be at most 2592000'],
  [['client', 'rotate-secret', ID, '--overlap', '99999999999'], '--overlap must be a whole number, at most 2147483647'],
  [['client', 'disable', 'billing'], 'CLIENT_ID must be a UUID'],
  [['audit', 'list', '--limit', '0'], '--limit must be at least 1'],
  [['audit', 'list', '--status', 'ok'], '--status must be an HTTP status such as 404, or a class such as 4xx'],
  [['supervisor', 'create', '--node', ID], 'missing --role; usage: portcullis supervisor create'],
  [['supervisor', 'create', '--node', ID, '--role', 'admin'], 'missing --username'],
  [
    ['supervisor', 'create', '--node', ID, '--role', 'admin', '--name', 'ada', '--username', 'ada'],
    '--username and --name are the same flag: give only one',
  ],
  [
    ['supervisor', 'create', '--node', ID, '--username', 'ada', '--role', 'boss'],
    '--role must be admin, operator or viewer',
  ],
  [['supervisor', 'create', '--node', ID, '--username', '', '--role', 'admin'], '--username must not be empty'],
  [
    ['supervisor', 'create', '--node', ID, '--username', 'ada', '--role', 'admin', '--password', 'x'],
    "Unknown option '--password': do not put a secret on a command line",
  ],
  [['users', 'import', 'users.csv'], 'missing --node'],
  [['users', 'import', 'users.csv', '--node', 'x'], '--node must be a UUID'],
  [['users', 'import', '--node', ID], 'give FILE or --resume'],
  [['users', 'import', '--node', ID, '--resume', '7'], '--resume must be a UUID'],
  [['users', 'erase', 'ann'], 'ID must be a UUID'],
  [['recover'], 'missing --since'],
  [['recover', '--since', 'yesterday'], '--since must be a date and time'],
  [['recover', '--since', '2999-01-01T00:00:00Z'], '--since must be before now'],
  ...REPLAYS.map(([flags, says]): [string[], string] => [['transactions', 'replay', ...flags], says]),
  [['supervisor', 'set-password', 'ada'], 'ID must be a UUID'],
  [['supervisor', 'disable', 'ada'], 'ID must be a UUID'],
  [['supervisor', 'unlock', 'ada'], 'ID must be a UUID'],
])('D1-12: %j is wrong usage and exits with 2', async (args, says) => {
  const { code, out, err } = await portcullis(args);
  expect({ code, out }).toEqual({ code: 2, out: '' });
  expect(err).toContain(says);
  expect(err).toMatch(/Try: portcullis.* --help\n$/);
});

it.each([
  ['', 'begins with an empty line'],
  ['short', 'the password must have 8 to 1024 characters'],
  ['a\u0000b and twelve more', 'the password must not contain U+0000'],
])('D1-12: the piped password %j is wrong usage', async (line, says) => {
  for (const args of [
    ['supervisor', 'set-password', ID],
    ['supervisor', 'create', '--node', ID, '--username', 'ada', '--role', 'admin'],
  ]) {
    const { code, out, err } = await portcullis(args, {}, line);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain(says);
    expect(err).not.toContain('twelve more');
  }
});

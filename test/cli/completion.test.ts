import { execFileSync, spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadCommands } from '../../src/cli/commands.ts';
import { temporaryFile } from '../harness/temporary-file.ts';
import { emptyFolder } from '../start/folders.ts';
import { portcullis } from './in-process.ts';

const COMMANDS = await loadCommands();

const LISTED = ['audit', 'client', 'completion', 'config', 'migrate', 'node', 'reference', 'seed', 'start'];
const FIRST = [...LISTED, 'supervisor', 'transactions', 'users', '--help', '--version'];

/** What bash is offered for a line that ends where the cursor is. */
const OFFERED: [line: string, offered: string[]][] = [
  ['portcullis ', FIRST],
  ['portcullis c', ['client', 'completion', 'config']],
  ['portcullis --v', ['--version']],
  ['portcullis client ', ['create', 'list', 'rotate-secret', 'disable']],
  ['portcullis client r', ['rotate-secret']],
  [
    'portcullis client create --r',
    ['--requests-per-hour', '--requests-per-minute', '--requests-per-second'].concat([
      '--require-certificate',
      '--refresh-reuse-detection',
    ]),
  ],
  ['portcullis client create --grants ', ['password', 'client_credentials', 'refresh_token']],
  ['portcullis client create --grants password,re', ['password,refresh_token']],
  ['portcullis client create --grants=pass', ['password']],
  ['portcullis client create --scopes audit', ['audit:read']],
  ['portcullis client create --scopes audit:', ['read']],
  ['portcullis client create --scopes audit:read,tok', ['read,tokens:read']],
  ['portcullis client create --name x ', flagsOf('client create')],
  ['portcullis supervisor create --role ', ['admin', 'operator', 'viewer']],
  ['portcullis supervisor create --node ', []],
  ['portcullis supervisor create --pass', []],
  ['portcullis start --', ['--json', '--help']],
  ['portcullis start ', ['--json', '--help']],
  ['portcullis completion f', ['fish']],
  ['portcullis users import ro', ['rows.csv', 'rows of Ada.csv']],
  ['portcullis users import rows.csv --no', ['--node']],
  ['portcullis reference load ./f', ['./folder']],
  ['portcullis wat ', []],
];

async function scriptOf(shell: string): Promise<string> {
  const { code, out, err } = await portcullis(['completion', shell]);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return out;
}

it('D1-12: completion bash completes commands, flags, files and known values in a real bash', async () => {
  await using folder = await emptyFolder();
  await mkdir(join(folder.path, 'folder'));
  for (const file of ['rows.csv', 'rows of Ada.csv']) await writeFile(join(folder.path, file), '');
  const asked = OFFERED.map(([line]) => `ask ${JSON.stringify(line)}`);
  const program = `${await scriptOf('bash')}
ask() {
  COMP_LINE=$1 COMP_POINT=\${#1} COMP_TYPE=9 COMP_KEY=9
  read -ra COMP_WORDS <<<"$1"
  [[ $1 == *' ' ]] && COMP_WORDS+=('')
  COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
  COMPREPLY=(stale)
  $function portcullis "\${COMP_WORDS[COMP_CWORD]}" "\${COMP_WORDS[COMP_CWORD - 1]}"
  ((\${#COMPREPLY[@]})) && printf '%s\\n' "\${COMPREPLY[@]}"
  printf '\\f'
}
function=$(complete -p portcullis | sed 's/.*-F \\([^ ]*\\).*/\\1/')
${asked.join('\n')}
exit 0`;
  const { stdout, stderr, status } = spawnSync('bash', ['--norc', '--noprofile'], {
    input: program,
    cwd: folder.path,
    encoding: 'utf8',
  });
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  const answers = stdout.split('\f').map((answer) => answer.split('\n').filter((word) => word !== ''));
  for (const [index, [line, offered]] of OFFERED.entries()) {
    expect([line, answers[index]?.toSorted()]).toEqual([line, offered.toSorted()]);
  }
});

it.each(['zsh', 'fish'])(
  'D1-12: completion %s names every command and flag, and its shell can read it',
  async (shell) => {
    const script = await scriptOf(shell);
    for (const { name, flags = {} } of COMMANDS) {
      expect(script).toContain(name);
      for (const flag of Object.keys(flags)) expect(script).toContain(shell === 'zsh' ? `--${flag}` : `-l ${flag}`);
    }
    // Quotes and brackets that do not match are what a summary with an apostrophe would leave behind.
    const unquoted = script.replace(/\\'/g, '').replaceAll("'\\''", '');
    expect((unquoted.match(/'/g) ?? []).length % 2).toBe(0);
    await using file = await temporaryFile(`portcullis.${shell}`, script);
    if (isInstalled(shell)) execFileSync(shell, ['-n', file.path]);
  },
);

it('D1-12: completion of another shell is wrong usage, and --json has the script as a member', async () => {
  expect(await portcullis(['completion', 'tcsh'])).toMatchObject({
    code: 2,
    err: expect.stringContaining('SHELL must be one of bash, zsh, fish'),
  });
  expect(await portcullis(['completion', 'constructor'])).toMatchObject({ code: 2 });
  const { out } = await portcullis(['completion', 'bash', '--json']);
  expect(JSON.parse(out)).toEqual({ shell: 'bash', script: await scriptOf('bash') });
});

function flagsOf(name: string): string[] {
  const command = COMMANDS.find((candidate) => candidate.name === name);
  return [...Object.keys(command?.flags ?? {}), 'json', 'help'].map((flag) => `--${flag}`);
}

function isInstalled(shell: string): boolean {
  return spawnSync(shell, ['-c', 'true']).status === 0;
}

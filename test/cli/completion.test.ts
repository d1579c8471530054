import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { loadCommands } from '../../src/cli/commands.ts';
import { portcullis } from '../support/cli/in-process.ts';

const COMMANDS = await loadCommands();

const LISTED = [
  'audit',
  'clashes',
  'client',
  'completion',
  'config',
  'dead-letters',
  'migrate',
  'node',
  'recover',
  'reference',
  'seed',
  'simulate',
  'start',
  'status',
];
const FIRST = [...LISTED, 'supervisor', 'transactions', 'users', '--help', '--version'];

/** What bash is offered for a line that ends where the cursor is; where that is nothing, it offers files itself. */
const OFFERED: [line: string, offered: string[]][] = [
  ['portcullis ', FIRST],
  ['portcullis c', ['clashes', 'client', 'completion', 'config']],
  ['portcullis --v', ['--version']],
  ['portcullis client ', ['create', 'list', 'show', 'update', 'rotate-secret', 'disable', 'enable']],
  ['portcullis client r', ['rotate-secret']],
  ['portcullis client create --refr', ['--refresh-reuse-detection']],
  ['portcullis client create --name x ', flagsOf('client create')],
  ['portcullis start --', ['--json', '--help']],
  ['portcullis start ', ['--json', '--help']],
  ['portcullis users import ro', []],
  ['portcullis users import rows.csv --no', ['--node']],
  ['portcullis wat ', []],
];

async function scriptOf(...shell: string[]): Promise<string> {
  const { code, out, err } = await portcullis(['completion', ...shell]);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return out;
}

it('D1-12: completes commands and flags in a real bash, and leaves other words to file completion', async () => {
  const asked = OFFERED.map(([line]) => `ask ${JSON.stringify(line)}`);
  const program = `${await scriptOf()}
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
complete -p portcullis | grep -q -- '-o default' || echo 'no files are offered' >&2
function=$(complete -p portcullis | sed 's/.*-F \\([^ ]*\\).*/\\1/')
${asked.join('\n')}
exit 0`;
  const { stdout, stderr, status } = spawnSync('bash', ['--norc', '--noprofile'], {
    input: program,
    encoding: 'utf8',
  });
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  const answers = stdout.split('\f').map((answer) => answer.split('\n').filter((word) => word !== ''));
  for (const [index, [line, offered]] of OFFERED.entries()) {
    expect([line, answers[index]?.toSorted()]).toEqual([line, offered.toSorted()]);
  }
});

const hasZsh = spawnSync('zsh', ['--version']).status === 0;

it.skipIf(!hasZsh)(`D1-12: completion zsh completes the same in a real zsh${hasZsh ? '' : ' [no zsh]'}`, async () => {
  const asked = OFFERED.map(([line]) => `ask ${JSON.stringify(line)}`);
  const program = `compdef() { [[ "$*" == '_portcullis portcullis' ]] || print -u2 'another function completes' }
compadd() { shift; print -l -- "$@"; (( $# )) }
_files() { : }
${await scriptOf('zsh')}
ask() {
  words=("\${(@s: :)1}") CURRENT=\${#words}
  _portcullis
  print -n "\\f"
}
${asked.join('\n')}`;
  const { stdout, stderr, status } = spawnSync('zsh', ['-f'], { input: program, encoding: 'utf8' });
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  const answers = stdout.split('\f').map((answer) => answer.split('\n').filter((word) => word !== ''));
  for (const [index, [line, offered]] of OFFERED.entries()) {
    // Here the shell itself leaves out what does not begin with the last word.
    const last = line.slice(line.lastIndexOf(' ') + 1);
    const matching = answers[index]?.filter((word) => word.startsWith(last));
    expect([line, matching?.toSorted()]).toEqual([line, offered.toSorted()]);
  }
});

it('D1-12: completion of another shell is a usage error that names those there are', async () => {
  const { code, err } = await portcullis(['completion', 'fish']);
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('SHELL must be bash or zsh') });
  expect(await scriptOf('bash')).toBe(await scriptOf());
});

it('D1-12: completion --json prints the script as a member', async () => {
  const { out } = await portcullis(['completion', '--json']);
  expect(JSON.parse(out)).toEqual({ script: await scriptOf() });
});

function flagsOf(name: string): string[] {
  const command = COMMANDS.find((candidate) => candidate.name === name);
  return [...Object.keys(command?.flags ?? {}), 'json', 'help'].map((flag) => `--${flag}`);
}

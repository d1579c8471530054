import type { Command } from '../src/cli/kit/command.ts';
import { COMMON_FLAGS, EXIT_CODES, PROGRAM_EXAMPLES, synopsis } from '../src/cli/kit/usage.ts';

/** Returns the text of docs/cli.md, which is the help of every command. */
export function manualPage(commands: readonly Command[]): string {
  return `${[
    '# Command line',
    '',
    '`npm run schema` generates this page from the commands in `src/cli/commands/`.',
    '',
    'Run `bin/portcullis COMMAND [FLAGS]`, `npx portcullis`, or `portcullis` after `npm link`. The program always runs on the Node from its own packages.',
    'Commands work directly on the database that the environment names (`portcullis config check` shows it). If an embedded instance is running on `DATA_DIR`,',
    'they send it their statements ([files of DATA_DIR](operations/data-dir.md#commands-beside-a-running-instance)); only `recover` and `seed` refuse.',
    '',
    ...table(
      ['command', 'what it does'],
      commands.map(({ name, summary }) => [`[\`${name}\`](#${name.replaceAll(' ', '-')})`, summary]),
    ),
    '',
    '## All commands',
    '',
    ...table(
      ['flag', 'meaning'],
      Object.entries(COMMON_FLAGS).map(([flag, meaning]) => [`\`--${flag}\``, meaning]),
    ),
    '',
    ...table(
      ['exit code', 'meaning'],
      EXIT_CODES.map(([code, meaning]) => [`\`${code}\``, meaning]),
    ),
    '',
    '- Results go to standard output; errors and progress go to standard error, progress only on a terminal. With `--json`, errors in the input of a command',
    '  are members of its document instead.',
    "- No flag takes a secret: ps and the shell's history would keep it. A password is the first line of standard input, or is generated and shown once;",
    '  secrets of servers come from the environment.',
    '- Ctrl-C stops a command; `users import` and `transactions replay` print how to continue. A second Ctrl-C stops them immediately.',
    '- A reader may stop early (`portcullis audit list | head`). Only `start` uses colours, on a terminal, unless `NO_COLOR` is set.',
    '',
    ...fenced(PROGRAM_EXAMPLES),
    ...commands.flatMap(section),
  ].join('\n')}`;
}

function section(command: Command): string[] {
  const flags = Object.entries(command.flags ?? {}).map(([flag, { help }]) => [`\`--${flag}\``, help]);
  return [
    `## ${command.name}`,
    '',
    `\`${synopsis(command)}\``,
    '',
    ...command.description.split('\n').map((line) => line.trim()),
    '',
    ...(flags.length > 0 ? [...table(['flag', 'meaning'], flags), ''] : []),
    ...fenced(command.examples),
  ];
}

function fenced(lines: readonly string[]): string[] {
  return ['```sh', ...lines, '```', ''];
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)];
}

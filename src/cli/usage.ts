import type { Command } from './command.ts';

const COMMON_FLAGS = {
  json: 'answer with one JSON document',
  help: 'show this help',
};

/** The help of the program. */
export function programHelp(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return [
    'Usage: portcullis COMMAND [FLAGS]',
    '',
    'The integration gateway of a custody and tokenization platform.',
    '',
    'Commands:',
    ...commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
    '',
    'portcullis COMMAND --help tells more of one; portcullis --version its version.',
    'Every command takes --json. Exit codes: 0 done, 1 failed, 2 wrong usage.',
    'Environment variables configure it: portcullis config check lists them.',
    '',
  ].join('\n');
}

/** The help of one command. */
export function commandHelp(command: Command): string {
  const flags = { ...command.flagHelp, ...COMMON_FLAGS };
  const width = Math.max(...Object.keys(flags).map((name) => name.length));
  return [
    `Usage: ${synopsis(command)} [FLAGS]`,
    '',
    command.description,
    '',
    'Flags:',
    ...Object.entries(flags).map(([name, meaning]) => `  --${name.padEnd(width)}  ${meaning}`),
    '',
    'Examples:',
    ...command.examples.map((example) => `  ${example}`),
    '',
  ].join('\n');
}

/** How a command is called, without the flags that it can do without. */
export function synopsis({ name, positionals, required = {} }: Command): string {
  const flags = Object.entries(required).map(([flag, value]) => `--${flag} ${value}`);
  return ['portcullis', name, ...positionals, ...flags].join(' ');
}

/** The flags that a command takes, for whoever has written another. */
export function flagNames(command: Command): string {
  return Object.keys({ ...command.flagHelp, ...COMMON_FLAGS })
    .map((name) => `--${name}`)
    .join(', ');
}

import type { Command, CommandBody, CommandTitle } from './command.ts';

/** Breaks a text into lines of at most `width` characters; a longer word gets its own line. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** Rewraps the lines of a text to `width` characters; indented lines stay as they are. */
function reflow(text: string, width: number): string[] {
  const parts: string[] = [];
  let isOpen = false;
  for (const line of text.split('\n')) {
    const isKept = line.startsWith(' ');
    if (isOpen && !isKept) parts.push(`${parts.pop() ?? ''} ${line}`);
    else parts.push(line);
    isOpen = !isKept;
  }
  return parts.flatMap((part) => (part.startsWith(' ') ? [part] : wrap(part, width)));
}

const WIDTH = 100;

/** The flags that every command has, with their help. */
export const COMMON_FLAGS = {
  json: 'print one JSON document',
  help: 'show this help',
};

/** The meaning of each exit code. */
export const EXIT_CODES: readonly (readonly [code: string, meaning: string])[] = [
  ['0', 'done'],
  ['1', 'failed completely or in part; see standard error or the JSON document'],
  ['2', 'invalid usage; nothing was done'],
  ['78', 'start only: the configuration is invalid'],
];

/** Example commands for the help of the program. */
export const PROGRAM_EXAMPLES: readonly string[] = [
  'portcullis start',
  'portcullis config check',
  'portcullis client list --json',
  'portcullis client create --help',
];

/** Returns the help of the program. */
export function programHelp(commands: readonly CommandTitle[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return [
    'Usage: portcullis COMMAND [FLAGS]',
    '',
    'The integration gateway of a custody and tokenization platform.',
    '',
    'Commands:',
    ...commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
    '',
    'Run portcullis COMMAND --help for details, or portcullis --version for the version.',
    'Every command takes --json. Portcullis is configured by environment variables: portcullis config check lists them.',
    '',
    'Exit codes:',
    ...EXIT_CODES.map(([code, meaning]) => `  ${code.padEnd(2)}  ${meaning}`),
    '',
    'Examples:',
    ...PROGRAM_EXAMPLES.map((example) => `  ${example}`),
    '',
  ].join('\n');
}

/** Returns the help of one command. */
export function commandHelp(command: Command): string {
  const flags = flagHelp(command);
  const width = Math.max(...Object.keys(flags).map((name) => name.length));
  return [
    `Usage: ${synopsis(command)} [FLAGS]`,
    '',
    ...reflow(command.description, WIDTH),
    '',
    'Flags:',
    ...Object.entries(flags).flatMap(([name, meaning]) => {
      const [first = '', ...moreLines] = wrap(meaning, WIDTH - width - '  --  '.length);
      return [`  --${name.padEnd(width)}  ${first}`, ...moreLines.map((line) => `${' '.repeat(width + 6)}${line}`)];
    }),
    '',
    'Examples:',
    ...command.examples.map((example) => `  ${example}`),
    '',
  ].join('\n');
}

/** Returns the synopsis of a command: its name, positionals and required flags. */
export function synopsis({ name, positionals = [], flags = {} }: Command): string {
  const required = Object.entries(flags).flatMap(([flag, { required: value }]) =>
    value ? [`--${flag} ${value}`] : [],
  );
  return ['portcullis', name, ...positionals, ...required].join(' ');
}

/** Returns the help of each flag that a command takes. */
export function flagHelp({ flags = {} }: CommandBody): Record<string, string> {
  return { ...Object.fromEntries(Object.entries(flags).map(([name, { help }]) => [name, help])), ...COMMON_FLAGS };
}

/** Returns the flags that a command takes, for an error message about an unknown one. */
export function flagNames(command: CommandBody): string {
  return Object.keys(flagHelp(command))
    .map((name) => `--${name}`)
    .join(', ');
}

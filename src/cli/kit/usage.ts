import { type ParseArgsOptionDescriptor, parseArgs } from 'node:util';
import { respelt } from '../../lib/spelling.ts';
import type { Command, CommandBody, CommandInput, CommandTitle } from './command.ts';

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
    ...command.description.split('\n').flatMap((part) => (part.startsWith(' ') ? [part] : wrap(part, WIDTH))),
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
function flagNames(command: CommandBody): string {
  return Object.keys(flagHelp(command))
    .map((name) => `--${name}`)
    .join(', ');
}

const SECRET_WORDS = new Set([
  'p',
  'pass',
  'passwd',
  'password',
  'passphrase',
  'pwd',
  'secret',
  'secrets',
  'token',
  'pepper',
  'key',
  'credentials',
  'url',
]);

/** The advice for a user who gives a secret as a flag. */
const SECRET_ADVICE =
  'do not put a secret on a command line: ps and the shell history show it. ' +
  'Pipe a password in (… < password.txt), and set connection and signing secrets in the environment';

/**
 * Checks whether an unknown flag, given without its dashes, is named like a secret: `password`, `client-secret`,
 * `database-url`.
 */
export function isSecretFlag(name: string): boolean {
  return SECRET_WORDS.has(name.toLowerCase().split(/[-_]/).at(-1) ?? '');
}

/**
 * Returns the known word that was meant: the one that is only spelt otherwise, or else the only one that begins with
 * `word`; undefined if there is none.
 */
function closest(word: string, known: readonly string[]): string | undefined {
  const [only, ...otherNames] = known.filter((name) => word !== '' && name.startsWith(word.toLowerCase()));
  return respelt(word, known) ?? (otherNames.length === 0 ? only : undefined);
}

/** Returns the command that the first one or two words name, and the words after it; undefined if they name none. */
export function findCommand(
  names: readonly string[],
  args: readonly string[],
): { name: string; remainingArgs: readonly string[] } | undefined {
  for (const words of [2, 1]) {
    const name = args.slice(0, words).join(' ');
    if (names.includes(name) && args.length >= words) return { name, remainingArgs: args.slice(words) };
  }
  return undefined;
}

/**
 * Returns a message about words that name no command, with the one that was probably meant. It quotes at most two of
 * the words.
 */
export function unknownCommand(names: readonly string[], args: readonly string[]): string {
  const [first, second] = args;
  if (first === undefined) return 'no command';
  if (first.startsWith('-')) return earlyFlag(first);
  const group = names.filter((name) => name.startsWith(`${first} `));
  const hasSecond = second !== undefined && !second.startsWith('-');
  if (group.length > 0) {
    const suggestion = hasSecond ? closest(`${first} ${second}`, group) : undefined;
    if (suggestion !== undefined) return `no command ${first} ${second}: did you mean ${suggestion}?`;
    return `no command ${first}${hasSecond ? ` ${second}` : ''}: there is ${group.join(', ')}`;
  }
  const firsts = names.map((name) => name.split(' ')[0] ?? name);
  const suggestion = closest(hasSecond ? `${first} ${second}` : first, names) ?? closest(first, [...new Set(firsts)]);
  return suggestion === undefined ? `no command ${first}` : `no command ${first}: did you mean ${suggestion}?`;
}

/** Returns a message about a flag that precedes the command. It leaves out the value, which may be a secret. */
function earlyFlag(word: string): string {
  const flag = word.startsWith('--') ? word.replace(/=.*/s, '') : word.slice(0, 2);
  const advice = isSecretFlag(flag.replace(/^--?/, '')) ? SECRET_ADVICE : 'put flags after the command';
  return `no command ${flag}: ${advice}`;
}

/**
 * Returns the flags and positionals of a command, or a message about what is wrong with them, which quotes no value.
 */
export function parse(command: Command, args: readonly string[]): Pick<CommandInput, 'flags' | 'positionals'> | string {
  const own = Object.entries(command.flags ?? {}).map(([name, { isSwitch }]): [string, ParseArgsOptionDescriptor] => {
    return [name, { type: isSwitch ? 'boolean' : 'string' }];
  });
  const common = { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } as const;
  const options = { ...Object.fromEntries(own), ...common };
  try {
    const commandLine = parseArgs({ args: [...args], options, allowPositionals: true, tokens: true });
    const names = commandLine.tokens.flatMap((token) => (token.kind === 'option' ? [token.name] : []));
    const twice = names.find((name, index) => names.indexOf(name) !== index);
    if (twice !== undefined) return `--${twice} is given more than once`;
    return { flags: commandLine.values as CommandInput['flags'], positionals: commandLine.positionals };
  } catch (error) {
    if (!(error instanceof TypeError) || !('code' in error)) throw error;
    return error.code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION' ? unknownFlag(command, error.message) : error.message;
  }
}

/**
 * Returns a message about required arguments that are missing or positionals that are too many, with the synopsis;
 * undefined if there are none.
 */
export function missing(
  command: Command,
  { flags, positionals }: Pick<CommandInput, 'flags' | 'positionals'>,
): string | undefined {
  const usage = `usage: ${synopsis(command)}`;
  const positionalNames = command.positionals ?? [];
  const least = positionalNames.filter((name) => !name.startsWith('[')).length;
  if (positionals.length < least || positionals.length > positionalNames.length) return usage;
  const absent = Object.entries(command.flags ?? {}).filter(
    ([name, { required, unless = '' }]) => required && flags[name] === undefined && flags[unless] !== true,
  );
  return absent.length === 0 ? undefined : `missing ${absent.map(([name]) => `--${name}`).join(', ')}; ${usage}`;
}

function unknownFlag(command: Command, message: string): string {
  const what = message.split('. ')[0] ?? message;
  const flagName = /'-{1,2}([^']*)'/.exec(what)?.[1] ?? '';
  if (isSecretFlag(flagName)) return `${what}: ${SECRET_ADVICE}`;
  const suggestion = closest(flagName, Object.keys(flagHelp(command)));
  if (suggestion !== undefined) return `${what}: did you mean --${suggestion}? Its flags are ${flagNames(command)}`;
  return `${what}: its flags are ${flagNames(command)}`;
}

import { type ParseArgsOptionDescriptor, parseArgs } from 'node:util';
import { respelt } from '../../lib/spelling.ts';
import type { Command } from './command.ts';
import { flagHelp, flagNames, synopsis } from './usage.ts';

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

/** The flags and positionals of a command as the user wrote them. */
interface Parsed {
  flags: Record<string, string | boolean | undefined>;
  positionals: string[];
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
export function parse(command: Command, args: readonly string[]): Parsed | string {
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
    return { flags: commandLine.values as Parsed['flags'], positionals: commandLine.positionals };
  } catch (error) {
    if (!(error instanceof TypeError) || !('code' in error)) throw error;
    if (error.code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION') return error.message;
    return unknownFlag(command, error.message);
  }
}

/**
 * Returns a message about required arguments that are missing or positionals that are too many, with the synopsis;
 * undefined if there are none.
 */
export function missing(command: Command, { flags, positionals }: Parsed): string | undefined {
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

import { parseArgs } from 'node:util';
import type { Command } from './command.ts';
import { isSecretFlag, SECRET_ADVICE } from './secret-flags.rules.ts';
import { closest } from './suggest.rules.ts';
import { flagNames, synopsis } from './usage.ts';

/** What a command was called with, as the user wrote it. */
export interface Parsed {
  flags: Record<string, string | boolean | undefined>;
  positionals: string[];
}

/** The name of a command that the first one or two words are, and the words after them. */
export function findCommand(
  names: readonly string[],
  args: readonly string[],
): { name: string; rest: readonly string[] } | undefined {
  for (const words of [2, 1]) {
    const name = args.slice(0, words).join(' ');
    if (names.includes(name) && args.length >= words) return { name, rest: args.slice(words) };
  }
  return undefined;
}

/** What is wrong with words that name no command, and what may have been meant. Never more of them than two. */
export function unknownCommand(names: readonly string[], args: readonly string[]): string {
  const [first, second] = args;
  if (first === undefined) return 'no command';
  if (first.startsWith('-')) return earlyFlag(first);
  const group = names.filter((name) => name.startsWith(`${first} `));
  const hasSecond = second !== undefined && !second.startsWith('-');
  if (group.length > 0) {
    const meant = hasSecond ? closest(`${first} ${second}`, group) : undefined;
    if (meant !== undefined) return `no command ${first} ${second}: did you mean ${meant}?`;
    return `no command ${first}${hasSecond ? ` ${second}` : ''}: there is ${group.join(', ')}`;
  }
  const meant = closest(hasSecond ? `${first} ${second}` : first, names) ?? closest(first, names.map(firstWord));
  return meant === undefined ? `no command ${first}` : `no command ${first}: did you mean ${meant}?`;
}

/** A flag where a command should be; its value may be a secret. */
function earlyFlag(word: string): string {
  const flag = word.startsWith('--') ? word.replace(/=.*/s, '') : word.slice(0, 2);
  const advice = isSecretFlag(flag.replace(/^--?/, '')) ? SECRET_ADVICE : 'flags come after their command';
  return `no command ${flag}: ${advice}`;
}

/** The flags and positionals of a command, or what is wrong with them; no value that was given is in that. */
export function parse(command: Command, args: readonly string[]): Parsed | string {
  const options = { ...command.flags, json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } as const;
  try {
    const parsed = parseArgs({ args: [...args], options, allowPositionals: true, tokens: true });
    const names = parsed.tokens.flatMap((token) => (token.kind === 'option' ? [token.name] : []));
    const twice = names.find((name, index) => names.indexOf(name) !== index);
    if (twice !== undefined) return `--${twice} is given twice: give it once`;
    return { flags: parsed.values as Parsed['flags'], positionals: parsed.positionals };
  } catch (error) {
    if (!(error instanceof TypeError) || !('code' in error)) throw error;
    if (error.code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION') return error.message;
    return unknownFlag(command, error.message);
  }
}

/** What a command was not given, with what it wants. */
export function missing(command: Command, { flags, positionals }: Parsed): string | undefined {
  const wanted = `wanted: ${synopsis(command)}`;
  const least = command.positionals.filter((name) => !name.startsWith('[')).length;
  if (positionals.length < least || positionals.length > command.positionals.length) return wanted;
  const absent = Object.keys(command.required ?? {}).filter((name) => flags[name] === undefined);
  return absent.length === 0 ? undefined : `without ${absent.map((name) => `--${name}`).join(', ')}; ${wanted}`;
}

function unknownFlag(command: Command, message: string): string {
  const what = message.split('. ')[0] ?? message;
  const given = /'-{1,2}([^']*)'/.exec(what)?.[1] ?? '';
  if (isSecretFlag(given)) return `${what}: ${SECRET_ADVICE}`;
  const meant = closest(given, [...Object.keys(command.flagHelp), 'json', 'help']);
  if (meant !== undefined) return `${what}: did you mean --${meant}? Its flags are ${flagNames(command)}`;
  return `${what}: its flags are ${flagNames(command)}`;
}

function firstWord(name: string): string {
  return name.split(' ')[0] ?? name;
}

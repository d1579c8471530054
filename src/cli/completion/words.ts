import type { Command } from '../command.ts';
import { COMMON_FLAGS } from '../usage.ts';

/** A word that may come next, and what it means. */
export interface Word {
  word: string;
  meaning: string;
}

/** What can be the first word: commands of one word, and the first word of those of two. */
export function firstWords(commands: readonly Command[]): Word[] {
  const groups = Map.groupBy(commands, ({ name }) => name.split(' ')[0] ?? name);
  return [...groups].map(([word, [only, ...others]]) => ({
    word,
    meaning: only?.name === word ? only.summary : [only, ...others].map((one) => one?.name.split(' ')[1]).join(', '),
  }));
}

/** What can follow a first word that is not a command by itself, by that word. */
export function secondWords(commands: readonly Command[]): Map<string, Word[]> {
  const seconds = new Map<string, Word[]>();
  for (const { name, summary } of commands) {
    const [first = '', word] = name.split(' ');
    if (word !== undefined) seconds.set(first, [...(seconds.get(first) ?? []), { word, meaning: summary }]);
  }
  return seconds;
}

export interface Flag extends Word {
  takesValue: boolean;
  /** Its known values. */
  choices: readonly string[];
  /** Whether several of them, between commas, are good too. */
  isList: boolean;
}

/** The flags of a command, with everybody's. */
export function flagsOf({ flags, flagHelp, choices = {}, lists = {} }: Command): Flag[] {
  return Object.entries({ ...flagHelp, ...COMMON_FLAGS }).map(([word, meaning]) => ({
    word,
    meaning,
    takesValue: flags[word]?.type === 'string',
    choices: choices[word] ?? lists[word] ?? [],
    isList: lists[word] !== undefined,
  }));
}

/** What the positional of a command is: a file, one of known values, or what nobody here knows. */
export function positionalOf({ positionals: [name], choices = {} }: Command): 'file' | readonly string[] {
  const bare = name?.replace(/^\[|\]$/g, '') ?? '';
  return bare === 'FILE' ? 'file' : (choices[bare] ?? []);
}

/** A text between single quotes, for bash and zsh. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

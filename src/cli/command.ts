import type { ParseArgsOptionsConfig } from 'node:util';

/** What a command is given: its flags and positionals as the user wrote them, and the environment. */
export interface CommandInput {
  flags: Readonly<Record<string, string | boolean | undefined>>;
  positionals: readonly string[];
  env: NodeJS.ProcessEnv;
  /** Whether the answer is to be one JSON document with the REST names. */
  json: boolean;
  print(text: string): void;
}

/** One command of the command line: `name` is one word or two, as in `config check`. */
export interface Command {
  name: string;
  summary: string;
  /** What it does, below its synopsis. */
  description: string;
  /** The names of its positional arguments, all required. */
  positionals: readonly string[];
  /** Its own flags; `--json` and `--help` are everybody's. */
  flags: ParseArgsOptionsConfig;
  /** What each flag means, in the order of the help. */
  flagHelp: Readonly<Record<string, string>>;
  examples: readonly string[];
  /** Gives the exit code: 0, 1 where it failed (start: 78 for its configuration). Throws what the caller tells. */
  run(input: CommandInput): Promise<number>;
}

export const EXIT_OK = 0;
export const EXIT_FAILED = 1;
export const EXIT_USAGE = 2;

/** A command that cannot do what it was asked, in one sentence for the user. Exit 1. */
export class CommandError extends Error {
  override name = 'CommandError';
}

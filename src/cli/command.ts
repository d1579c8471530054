import type { ParseArgsOptionsConfig } from 'node:util';

/** What a command is given: its flags and positionals as the user wrote them, and the environment. */
export interface CommandInput {
  flags: Readonly<Record<string, string | boolean | undefined>>;
  positionals: readonly string[];
  env: NodeJS.ProcessEnv;
  /** Whether the answer is to be one JSON document with the REST names. */
  json: boolean;
  /** The first line of what is piped in, without its end; undefined at a terminal and where nothing comes. */
  readLine(): Promise<string | undefined>;
  /** What it answers, on the standard output. */
  print(text: string): void;
  /** A fault of what it was given, on the standard error; a JSON document has its faults as members instead. */
  complain(text: string): void;
}

/** One command of the command line: `name` is one word or two, as in `config check`. */
export interface Command {
  name: string;
  summary: string;
  /** What it does, below its synopsis. */
  description: string;
  /** The names of its positional arguments: all required, but for a last one in brackets. */
  positionals: readonly string[];
  /** The flags that it cannot do without, and what stands for the value of each. */
  required?: Readonly<Record<string, string>>;
  /** Its own flags; `--json` and `--help` are everybody's. */
  flags: ParseArgsOptionsConfig;
  /** What each flag means, in the order of the help. */
  flagHelp: Readonly<Record<string, string>>;
  /** What a flag or a positional is one of, where that is known before it runs: for completion. */
  choices?: Readonly<Record<string, readonly string[]>>;
  /** What a flag is some of, between commas. */
  lists?: Readonly<Record<string, readonly string[]>>;
  /** Lines of a shell that call it. */
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

/** A command that was not called as it can be; the message says what to write instead. Exit 2. */
export class UsageError extends Error {
  override name = 'UsageError';
}

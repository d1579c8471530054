/** What a command is given: its flags and positionals as the user wrote them, and the environment. */
export interface CommandInput {
  flags: Readonly<Record<string, string | boolean | undefined>>;
  positionals: readonly string[];
  env: NodeJS.ProcessEnv;
  /** Whether the answer is one JSON document with the REST names. */
  json: boolean;
  /** Takes what the command has opened; it is closed when the command ends. */
  stack: AsyncDisposableStack;
  /** Reads the first line of what is piped in, without its end; undefined at a terminal and where nothing comes. */
  readLine(): Promise<string | undefined>;
  /** Writes to the standard output. */
  print(text: string): void;
  /** Writes a fault of the input to the standard error; a JSON document has its faults as members instead. */
  complain(text: string): void;
  /** Prints the whole answer, as the document with `--json` and as the text without, and returns the exit code 0. */
  answer(document: object, text: string): number;
}

/** A flag of a command. It takes a value, unless it is a switch. */
export interface Flag {
  help: string;
  /** Stands for the value in the synopsis, as `ID` in `--node ID`: the command cannot do without this flag. */
  required?: string;
  isSwitch?: boolean;
  /** The values that it can have, where they are known before the command runs. */
  choices?: readonly string[];
  /** Whether several of the choices can be given, between commas. */
  isList?: boolean;
}

/** A command of the command line: `name` is one word or two, as in `config check`. */
export interface Command {
  name: string;
  summary: string;
  /** What it does, below its synopsis. */
  description: string;
  /** The names of its positional arguments: all required, but for a last one in brackets. */
  positionals?: readonly string[];
  /** The values that the first positional can have, where they are known before the command runs. */
  choices?: readonly string[];
  /** Its own flags, in the order of the help; `--json` and `--help` are everybody's. */
  flags?: Readonly<Record<string, Flag>>;
  /** Lines of a shell that call it. */
  examples: readonly string[];
  /** Runs it and returns the exit code: 0, 1 where it failed (start: 78 for its configuration). Throws what the caller reports. */
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

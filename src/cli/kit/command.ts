/**
 * The input of a command: its flags and positionals as the user wrote them, the environment, and its ways to read and
 * write.
 */
export interface CommandInput {
  /** The name of the command. */
  command: string;
  flags: Readonly<Record<string, string | boolean | undefined>>;
  positionals: readonly string[];
  env: NodeJS.ProcessEnv;
  /** Whether the output is one JSON document with the REST names. */
  json: boolean;
  /** Collects the resources that the command opens; they are closed when the command ends. */
  stack: AsyncDisposableStack;
  /**
   * Reads the first line of the standard input, without its line break; undefined at a terminal or if the input is
   * empty.
   */
  readLine(): Promise<string | undefined>;
  /** Writes to the standard output. */
  print(text: string): void;
  /** Writes an error in the input to the standard error; with `--json` errors are members of the document instead. */
  printError(text: string): void;
  /** Prints the whole output, as the document with `--json` and as the text without it, and returns the exit code 0. */
  answer(document: object, text: string): number;
}

/** What the help says of a command in a line. Its name has one word or two, as in `config check`. */
export interface CommandTitle {
  name: string;
  summary: string;
}

/** What a command takes and does. */
export interface CommandBody {
  /** The description of the command, which the help shows below the synopsis. */
  description: string;
  /** The names of the positional arguments. All are required, except for a last one in brackets. */
  positionals?: readonly string[];
  /** The command's own flags, in the order of the help; every command also has `--json` and `--help`. */
  flags?: Readonly<
    Record<
      string,
      {
        help: string;
        /** The placeholder of the value in the synopsis, such as `ID` in `--node ID`. If present, the flag is required. */
        required?: string;
        /** The switch without which it is required. */
        unless?: string;
        isSwitch?: boolean;
      }
    >
  >;
  /** Shell lines that run the command. */
  examples: readonly string[];
  /**
   * Runs the command and returns the exit code: 0, 1 (failed) or, for `start`, 78 (invalid configuration).
   * @throws CommandError or UsageError, and unexpected errors, which the caller reports.
   */
  run(input: CommandInput): Promise<number>;
}

/** A command of the command line. */
export type Command = CommandTitle & CommandBody;

export const EXIT_OK = 0;
export const EXIT_FAILED = 1;
export const EXIT_USAGE = 2;

/**
 * Thrown by a command that cannot do what was requested; the message is one sentence for the user. The exit code is 1.
 */
export class CommandError extends Error {
  override name = 'CommandError';
}

/** Thrown for wrong usage of a command; the message says what to write instead. The exit code is 2. */
export class UsageError extends Error {
  override name = 'UsageError';
}

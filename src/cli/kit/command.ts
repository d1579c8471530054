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
  /** A bar on the terminal. It goes before anything is written, and when the command ends. */
  progress: Progress;
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
  /**
   * The description of the command, which the help shows below the synopsis: one line for each paragraph, and indented
   * lines that stay as they are.
   */
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

const BAR_WIDTH = 30;
const REDRAW_MS = 100;

/** The progress of a task: `done` of `total`, which is undefined if unknown, and a text to show with it. */
interface Step {
  done: number;
  total: number | undefined;
  text: string;
}

/** Shows progress as a bar on a terminal; writes nothing if the output is not a terminal. */
export class Progress {
  readonly #output;
  readonly #nowMs: () => number;
  #shownAtMs: number;
  #hasBar = false;

  constructor(
    output: { isTTY?: boolean; write(text: string): unknown },
    nowMs: () => number = () => performance.now(),
  ) {
    this.#output = output;
    this.#nowMs = nowMs;
    this.#shownAtMs = nowMs();
  }

  show(step: Step): void {
    if (!this.#output.isTTY) return;
    const now = this.#nowMs();
    if (now - this.#shownAtMs < REDRAW_MS) return;
    this.#shownAtMs = now;
    this.#hasBar = true;
    this.#output.write(`\r\u001b[K${bar(step)}${step.text}`);
  }

  /** Removes the bar from the terminal. */
  end(): void {
    if (this.#hasBar) this.#output.write('\r\u001b[K');
    this.#hasBar = false;
  }
}

/** Returns the bar and the percentage; nothing if the total is unknown. */
function bar({ done, total }: Step): string {
  if (total === undefined || total === 0) return '';
  const filled = Math.min(BAR_WIDTH, Math.floor((done / total) * BAR_WIDTH));
  const percent = String(Math.floor((done / total) * 100)).padStart(3);
  return `[${'#'.repeat(filled)}${'.'.repeat(BAR_WIDTH - filled)}] ${percent} %  `;
}

/** Returns a number with thousands separators. */
export function counted(number: number): string {
  return number.toLocaleString('en');
}

/** Returns a number with its noun. */
export function many(count: number, noun: string): string {
  return `${counted(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/**
 * Returns a text from outside with its control and formatting characters escaped, so that it cannot control the
 * terminal.
 */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `\\u{${code.toString(16)}}`;
  });
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Aborts its signal at the first interrupt, which does not end the process; the next interrupt ends it as usual. */
export class Interruption implements Disposable {
  readonly #controller = new AbortController();
  readonly #abort = () => {
    this[Symbol.dispose]();
    this.#controller.abort();
  };

  constructor() {
    for (const signal of SIGNALS) process.on(signal, this.#abort);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  [Symbol.dispose](): void {
    for (const signal of SIGNALS) process.off(signal, this.#abort);
  }
}

/** The rows that a command prints. */
export interface PrintedRows<Row> {
  /** What the rows are called, such as `clients`; the member of the JSON document that contains them. */
  name: string;
  rows: AsyncIterable<Row> | Iterable<Row>;
  /** The names of the columns, as a line of text. */
  head?: string;
  /** The text if there are no rows. */
  empty?: string;
  /** Whether each row is a JSON document on a line, instead of a member of one that has an end. */
  isLines?: boolean;
  /** Returns a row as it appears in the JSON document. */
  view(row: Row): object;
  /** Returns a row as a line of text. */
  line(row: Row): string;
}

/** Prints rows as they arrive, so that few are in memory, and returns the exit code 0. */
export async function printRows<Row>(
  { json, print }: Pick<CommandInput, 'json' | 'print'>,
  { name, rows, head = '', empty = `No ${name.replace('_', ' ')}.\n`, isLines = false, view, line }: PrintedRows<Row>,
): Promise<number> {
  let count = 0;
  const isDocument = json && !isLines;
  if (isDocument) print(`{"${name}":[`);
  for await (const row of rows) {
    if (isDocument) print(`${count === 0 ? '' : ','}${JSON.stringify(view(row))}`);
    else print(json ? `${JSON.stringify(view(row))}\n` : `${count === 0 ? head : ''}${line(row)}`);
    count += 1;
  }
  if (isDocument) print(']}\n');
  else if (count === 0 && !json) print(empty);
  return EXIT_OK;
}

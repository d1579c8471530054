import { COMMAND_NAMES, COMMAND_TITLES, loadCommand } from './commands.ts';
import {
  CommandError,
  type CommandTitle,
  EXIT_FAILED,
  EXIT_OK,
  EXIT_USAGE,
  Progress,
  UsageError,
} from './kit/command.ts';
import { commandHelp, findCommand, missing, parse, programHelp, unknownCommand } from './kit/usage.ts';

interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** Reads the first line of the standard input, as in `CommandInput`. If absent, nothing is piped in. */
  readLine?(): Promise<string | undefined>;
}

/**
 * Runs one command of the command line and returns its exit code: 0, 1 (failed), 2 (wrong usage) or, for `start`, also
 * 78.
 */
export async function cli(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  { out, err, readLine = async () => undefined }: Terminal,
): Promise<number> {
  if (isHelp(args[0])) return succeedWith(out, programHelp(COMMAND_TITLES));
  if (args[0] === '--version') return succeedWith(out, `${(await import('../platform/health.ts')).VERSION}\n`);
  const group = groupToHelp(args);
  if (group.length > 0) return succeedWith(out, programHelp(group));
  const match = findCommand(COMMAND_NAMES, args);
  const command = match && (await loadCommand(match.name));
  if (!command) return misused(err, unknownCommand(COMMAND_NAMES, args), 'portcullis');
  const commandLine = parse(command, match.remainingArgs);
  if (typeof commandLine === 'string') return misused(err, commandLine, `portcullis ${command.name}`);
  const { flags, positionals } = commandLine;
  if (flags.help === true) return succeedWith(out, commandHelp(command));
  const fault = missing(command, commandLine);
  if (fault !== undefined) return misused(err, fault, `portcullis ${command.name}`);
  try {
    await using stack = new AsyncDisposableStack();
    const json = flags.json === true;
    const progress = new Progress(process.stderr);
    stack.defer(() => progress.end());
    const above = (write: Terminal['out']) => (text: string) => {
      progress.end();
      write(text);
    };
    const print = above(out);
    const answer = (document: object, text: string) =>
      succeedWith(print, json ? `${JSON.stringify(document)}\n` : text);
    const io = { readLine, progress, print, printError: above(err), answer };
    return await command.run({ command: command.name, flags, positionals, env, json, stack, ...io });
  } catch (error) {
    if (error instanceof UsageError) return misused(err, error.message, `portcullis ${command.name}`);
    err(`${await explain(error, env)}\n`);
    return EXIT_FAILED;
  }
}

/** Returns the commands whose name begins with a word, if only their help is requested; otherwise an empty list. */
function groupToHelp([word, ...flags]: readonly string[]): readonly CommandTitle[] {
  if (flags.length !== 1 || !isHelp(flags[0])) return [];
  return COMMAND_TITLES.filter(({ name }) => name.startsWith(`${word} `));
}

function isHelp(word: string | undefined): boolean {
  return word === '--help' || word === '-h';
}

function succeedWith(out: Terminal['out'], text: string): number {
  out(text);
  return EXIT_OK;
}

function misused(err: Terminal['err'], reason: string, program: string): number {
  err(`portcullis: ${reason}\nTry: ${program} --help\n`);
  return EXIT_USAGE;
}

async function explain(error: unknown, env: NodeJS.ProcessEnv): Promise<string> {
  if (error instanceof CommandError) return `portcullis: ${error.message}`;
  const [{ ConfigError, readConfig }, { startFailure }] = await Promise.all([
    import('../platform/config/config.ts'),
    import('../app/run.ts'),
  ]);
  if (error instanceof ConfigError) {
    return ['portcullis: the configuration is invalid:', ...error.faults.map((fault) => `  - ${fault}`)].join('\n');
  }
  return `portcullis: ${startFailure(error, readConfig(env).config) ?? (error instanceof Error ? error.stack : String(error))}`;
}

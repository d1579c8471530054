import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ConfigError, readConfig } from '../config/config.ts';
import { startFailure } from '../start-failure.ts';
import { type Command, CommandError, EXIT_FAILED, EXIT_OK, EXIT_USAGE, UsageError } from './command.ts';
import { auditList } from './commands/audit-list.ts';
import { clientCreate } from './commands/client-create.ts';
import { clientDisable } from './commands/client-disable.ts';
import { clientList } from './commands/client-list.ts';
import { clientRotateSecret } from './commands/client-rotate-secret.ts';
import { configCheck } from './commands/config-check.ts';
import { migrateCommand } from './commands/migrate.ts';
import { nodeCreate } from './commands/node-create.ts';
import { referenceLoad } from './commands/reference-load.ts';
import { seed } from './commands/seed.ts';
import { start } from './commands/start.ts';
import { supervisorCreate } from './commands/supervisor-create.ts';
import { supervisorDisable } from './commands/supervisor-disable.ts';
import { supervisorSetPassword } from './commands/supervisor-set-password.ts';
import { supervisorUnlock } from './commands/supervisor-unlock.ts';
import { transactionsReplay } from './commands/transactions-replay.ts';
import { usersErase } from './commands/users-erase.ts';
import { usersImport } from './commands/users-import.ts';
import { commandHelp, flagNames, programHelp, synopsis } from './usage.ts';

const COMMANDS: readonly Command[] = [
  start,
  migrateCommand,
  seed,
  auditList,
  configCheck,
  nodeCreate,
  referenceLoad,
  clientCreate,
  clientList,
  clientRotateSecret,
  clientDisable,
  supervisorCreate,
  supervisorDisable,
  supervisorSetPassword,
  supervisorUnlock,
  usersImport,
  usersErase,
  transactionsReplay,
];

interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** As `CommandInput` has it; a terminal without one has nothing piped in. */
  readLine?(): Promise<string | undefined>;
}

/** Runs one command of the command line and gives its exit code: 0, 1 (failed) or 2 (wrong usage). */
export async function cli(args: readonly string[], env: NodeJS.ProcessEnv, terminal: Terminal): Promise<number> {
  const { out, err, readLine = async () => undefined } = terminal;
  if (args[0] === '--help') return tell(out, programHelp(COMMANDS));
  if (args[0] === '--version') return tell(out, `${version()}\n`);
  const found = findCommand(args);
  if (!found) return misused(err, args.length === 0 ? 'no command' : `no command ${args[0]}`, 'portcullis');
  const { command, rest } = found;
  const parsed = parse(command, rest);
  if (typeof parsed === 'string') return misused(err, parsed, `portcullis ${command.name}`);
  const { flags, positionals } = parsed;
  if (flags.help === true) return tell(out, commandHelp(command));
  const fault = missing(command, parsed);
  if (fault !== undefined) return misused(err, fault, `portcullis ${command.name}`);
  try {
    return await command.run({ flags, positionals, env, json: flags.json === true, readLine, print: out });
  } catch (error) {
    if (error instanceof UsageError) return misused(err, error.message, `portcullis ${command.name}`);
    err(`${explain(error, env)}\n`);
    return EXIT_FAILED;
  }
}

function findCommand(args: readonly string[]): { command: Command; rest: readonly string[] } | undefined {
  for (const words of [2, 1]) {
    const name = args.slice(0, words).join(' ');
    const command = COMMANDS.find((candidate) => candidate.name === name);
    if (command && args.length >= words) return { command, rest: args.slice(words) };
  }
  return undefined;
}

type Parsed = { flags: Record<string, string | boolean | undefined>; positionals: string[] };

/** The flags and positionals, or what is wrong with them. */
function parse(command: Command, args: readonly string[]): Parsed | string {
  const options = { ...command.flags, json: { type: 'boolean' }, help: { type: 'boolean' } } as const;
  try {
    const parsed = parseArgs({ args: [...args], options, allowPositionals: true, tokens: true });
    const names = parsed.tokens.flatMap((token) => (token.kind === 'option' ? [token.name] : []));
    const twice = names.find((name, index) => names.indexOf(name) !== index);
    if (twice !== undefined) return `--${twice} is given twice: give it once`;
    return { flags: parsed.values as Parsed['flags'], positionals: parsed.positionals };
  } catch (error) {
    if (!(error instanceof TypeError) || !('code' in error)) throw error;
    if (error.code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION') return error.message;
    return `${error.message.split('. ')[0]}: its flags are ${flagNames(command)}`;
  }
}

/** What a command was not given, with what it wants. */
function missing(command: Command, { flags, positionals }: Parsed): string | undefined {
  const wanted = `wanted: ${synopsis(command)}`;
  const least = command.positionals.filter((name) => !name.startsWith('[')).length;
  if (positionals.length < least || positionals.length > command.positionals.length) return wanted;
  const absent = Object.keys(command.required ?? {}).filter((name) => flags[name] === undefined);
  return absent.length === 0 ? undefined : `without ${absent.map((name) => `--${name}`).join(', ')}; ${wanted}`;
}

function tell(out: Terminal['out'], text: string): number {
  out(text);
  return EXIT_OK;
}

function misused(err: Terminal['err'], what: string, program: string): number {
  err(`portcullis: ${what}\nTry: ${program} --help\n`);
  return EXIT_USAGE;
}

function explain(error: unknown, env: NodeJS.ProcessEnv): string {
  if (error instanceof CommandError) return `portcullis: ${error.message}`;
  if (error instanceof ConfigError) {
    return ['portcullis: the configuration must change:', ...error.faults.map((fault) => `  - ${fault}`)].join('\n');
  }
  return `portcullis: ${startFailure(error, readConfig(env).config) ?? (error instanceof Error ? error.stack : String(error))}`;
}

function version(): string {
  return JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')).version;
}

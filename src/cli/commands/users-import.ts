import { randomUUID } from 'node:crypto';
import { RefusalError } from '../../errors/refusal.ts';
import type { Log } from '../../lib/log.ts';
import { silentLog } from '../../lib/log.ts';
import type { MigrationRowRow, MigrationTableRow } from '../../user-migrations/migration-pages.service.ts';
import { type Command, CommandError, EXIT_FAILED, EXIT_OK, UsageError } from '../command.ts';
import { text, uuid } from '../flags.ts';
import { importRun } from '../import-run.ts';
import { type InputFile, openInput } from '../input-file.ts';
import { Interruption } from '../interruption.ts';
import { type CommandMigrations, openMigrations } from '../open-migrations.ts';
import { printable } from '../printable.ts';
import { Progress } from '../progress.ts';

/** Who has created a migration that came by the command line. */
const CREATED_BY = 'cli';
const SHOWN_FAILURES = 10;
const MB = 1_000_000;

/** `portcullis users import`: users out of a CSV file. */
export const usersImport: Command = {
  name: 'users import',
  summary: 'migrate the users of a CSV file, of any size',
  description: [
    'Stores a CSV file, or the standard input where FILE is -, and migrates its users to a node in batches. Its first line',
    'names the columns: wallet_address, email, external_id, name, surname, kyc_sent, in any order, the first one at least.',
    'A line at fault is a failed row, named by its number; the others are migrated, and the command ends with 1.',
    'It can be ended at any time: a running server goes on with the rest, and so does --resume.',
  ].join('\n'),
  positionals: ['[FILE]'],
  required: { node: 'ID' },
  flags: { node: { type: 'string' }, resume: { type: 'string' } },
  flagHelp: {
    node: 'the node that gets the users',
    resume: 'go on with the migration of this id: FILE has been stored, and is not read',
  },
  examples: [
    'portcullis users import users.csv --node ID',
    'portcullis users import users.csv --node ID --json',
    'portcullis users import --node ID --resume MIGRATION_ID',
  ],
  async run({ flags, positionals: [file], env, json, print, complain }) {
    const nodeId = uuid('--node', text(flags, 'node'));
    const resumed = text(flags, 'resume');
    const given = resumed === undefined ? undefined : uuid('--resume', resumed);
    if (given === undefined && file === undefined) throw new UsageError('name a FILE, or --resume MIGRATION_ID');
    const input = given === undefined ? openInput(file ?? '-') : undefined;
    await using stack = new AsyncDisposableStack();
    const interruption = stack.use(new Interruption());
    const progress = new Progress(process.stderr);
    const told = new Told(progress);
    const migrations = await openMigrations({ env, nodeId, log: told.log, onBatch: (rows) => told.rows(rows) }, stack);
    const { signal } = interruption;
    const id = given ?? (await store({ migrations, nodeId, input, signal, progress }));
    if (given === undefined) told.line(`Migration ${id} has begun.`);
    const known = await migrations.files.progress(nodeId, id);
    if (!known) throw new CommandError(`the node ${nodeId} has no migration ${id}`);
    told.total = known.total ?? undefined;
    const migration = await importRun({
      migrations,
      nodeId,
      id,
      signal,
      onProgress: ({ success, skipped, failed }) => told.rows(success + skipped + failed),
      onOutage: (error) => told.line(`The database is away: the migration waits. ${messageOf(error)}`),
    });
    progress.end();
    if (migration.status === 'running') throw new CommandError(interrupted(migration));
    const failures = migration.failed === 0 ? [] : await migrations.pages.failures(nodeId, id, SHOWN_FAILURES);
    if (json) print(`${JSON.stringify(view(migration, failures))}\n`);
    else {
      complain(faultsOf(migration, failures));
      print(summary(migration));
    }
    return migration.status === 'done' && migration.failed === 0 ? EXIT_OK : EXIT_FAILED;
  },
};

interface StoreOptions {
  migrations: CommandMigrations;
  nodeId: string;
  input: InputFile | undefined;
  signal: AbortSignal;
  progress: Progress;
}

/** Stores the file and gives the id of its migration, which this process has the lease of. */
async function store({ migrations, nodeId, input, signal, progress }: StoreOptions): Promise<string> {
  async function* shown(): AsyncGenerator<Buffer> {
    let done = 0;
    for await (const part of input?.parts(signal) ?? []) {
      done += part.length;
      progress.show({ done, total: input?.size, text: `${(done / MB).toFixed(1)} MB stored` });
      yield part;
    }
    if (signal.aborted) throw interruptedEarly();
  }
  const caller = { nodeId, createdBy: CREATED_BY, correlationId: randomUUID() };
  try {
    return (await migrations.files.start(caller, shown(), () => migrations.jobs.lease())).id;
  } catch (error) {
    if (signal.aborted) throw interruptedEarly();
    throw error instanceof RefusalError ? new CommandError(`the file ${error.message}`) : error;
  } finally {
    progress.end();
  }
}

function interruptedEarly(): CommandError {
  return new CommandError('interrupted while the file was stored: nothing of it is kept');
}

/** What is told meanwhile, on the standard error. */
class Told {
  total: number | undefined;
  readonly log: Log;
  readonly #progress: Progress;

  constructor(progress: Progress) {
    this.#progress = progress;
    const tell = (fields: object, message?: string) =>
      this.line([message, 'err' in fields ? messageOf(fields.err) : undefined].filter((part) => part).join(': '));
    this.log = { ...silentLog, warn: tell, error: tell };
  }

  rows(done: number): void {
    const of = this.total === undefined ? '' : ` of ${count(this.total)}`;
    this.#progress.show({ done, total: this.total, text: `${count(done)}${of} rows` });
  }

  line(text: string): void {
    this.#progress.end();
    process.stderr.write(`${printable(text)}\n`);
  }
}

function view(
  { id, status, total, success, skipped, failed }: MigrationTableRow,
  failures: readonly MigrationRowRow[],
) {
  const rows = failures.map(({ index, reason }) => ({ index, reason }));
  return { id, status, total, success, skipped, failed, failures: rows };
}

function faultsOf({ failed }: MigrationTableRow, failures: readonly MigrationRowRow[]): string {
  const more = failed - failures.length;
  const lines = failures.map(({ index, reason }) => rowText(index, reason ?? ''));
  return [...lines, ...(more > 0 ? [`and ${count(more)} more failed rows`] : [])].map((line) => `${line}\n`).join('');
}

function summary({ id, status, total, success, skipped, failed }: MigrationTableRow): string {
  return [
    `${count(total)} rows: ${count(success)} created, ${count(skipped)} skipped, ${count(failed)} failed.`,
    `Migration ${id} is ${status}.`,
    '',
  ].join('\n');
}

function rowText(index: number, reason: string): string {
  const prefix = `line ${index}: `;
  return printable(reason.startsWith(prefix) ? reason : `${prefix}${reason}`);
}

function interrupted({ id, node_id: nodeId, total, success, skipped, failed }: MigrationTableRow): string {
  return [
    `interrupted after ${count(success + skipped + failed)} of ${count(total)} rows; they stay. A running server goes on`,
    `with the rest; so does: portcullis users import --node ${nodeId} --resume ${id}`,
  ].join(' ');
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function count(number: number): string {
  return number.toLocaleString('en');
}

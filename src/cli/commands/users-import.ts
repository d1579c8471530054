import { randomUUID } from 'node:crypto';
import { createReadStream, rmSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { CSV_COLUMNS } from '../../features/user-migrations/csv.rules.ts';
import { MAX_BULK_ROWS } from '../../features/user-migrations/migration.input.ts';
import { type MigrationRowRow, rowRanges } from '../../features/user-migrations/migration-files.service.ts';
import { warningOf } from '../../features/user-migrations/migration-outcome.rules.ts';
import type { MigrationTableRow } from '../../features/user-migrations/migrations.store.ts';
import { type Log, silentLog } from '../../lib/log.ts';
import { backoffMs, pause } from '../../lib/work-loop.ts';
import { Refusal } from '../../platform/errors.ts';
import {
  type CommandBody,
  CommandError,
  counted,
  EXIT_FAILED,
  Interruption,
  type Progress,
  printable,
  UsageError,
} from '../kit/command.ts';
import { type InputFile, openInput } from '../kit/command-input.ts';
import { text, uuid } from '../kit/flags.ts';
import { nodesOf, openFeatures } from '../kit/open-services.ts';

type Migrations = Pick<Awaited<ReturnType<typeof openFeatures>>, 'migrationFiles' | 'migrationJobs'>;

/** The interval at which the progress of another process is polled, in ms. */
const WATCH_MS = 500;

/**
 * Runs the user migration of a file to its end, or polls its progress while another process runs it. Waits while the
 * database is down. Returns the user migration in its final state, or as it is when `signal` aborts.
 */
async function importRun(
  { migrationJobs, migrationFiles }: Migrations,
  nodeId: string,
  id: string,
  signal: AbortSignal,
  output: ImportOutput,
): Promise<MigrationTableRow> {
  // The lease may belong to a process that is dead; one that is alive yields it. It is taken by force only once, or two
  // such commands would keep taking it from each other.
  let isForced = true;
  for (let failures = 0; ; ) {
    try {
      const end = signal.aborted ? 'none' : await migrationJobs.iterate(signal, { id, isForced });
      if (end !== 'none') isForced = false;
      failures = 0;
      if (end === 'more' && !signal.aborted) continue;
      const progress = await migrationFiles.progress(nodeId, id);
      if (!progress) throw new CommandError('the migration no longer exists');
      if (progress.done || signal.aborted) return progress.migration;
      const { success, skipped, failed } = progress.migration;
      output.rows(success + skipped + failed);
      await pause(WATCH_MS, signal);
    } catch (error) {
      if (error instanceof CommandError || signal.aborted) throw error;
      failures += 1;
      if (failures === 1) output.line(`The database is unavailable; the migration is waiting. ${messageOf(error)}`);
      await pause(backoffMs(failures), signal);
    }
  }
}

/** The creator of user migrations that were started from the command line. */
const CREATED_BY = 'cli';
const SHOWN_FAILURES = 10;
const MB = 1_000_000;

/** `portcullis users import`: migrates users from a CSV file. */
export const usersImport: CommandBody = {
  description: [
    'Stores a CSV file, or standard input if FILE is -, and migrates its users in batches. The first line names',
    `the columns: ${CSV_COLUMNS.join(', ')}, in any order; wallet_address is required. Invalid lines`,
    'become failed rows, reported by number; the others are migrated, and the exit status is then 1.',
    'With --dry-run the migration is stored with the outcomes that a run would have, and no user is created.',
    'You can interrupt the command: a running process continues the migration, and so does --resume.',
  ].join(' '),
  positionals: ['[FILE]'],
  flags: {
    node: { help: 'id of the tenant (node) to import the users into', required: 'ID' },
    'dry-run': { help: 'decide the outcomes of the rows and create no user', isSwitch: true },
    'failed-to': { help: 'new file for a copy of the header and the failed rows of FILE, to correct and import' },
    resume: { help: 'resume the migration with this id; its file is stored already' },
  },
  examples: [
    'portcullis users import users.csv --node ID',
    'portcullis users import users.csv --node ID --json',
    'portcullis users import users.csv --node ID --dry-run',
    'portcullis users import users.csv --node ID --failed-to failed.csv',
    'portcullis users import --node ID --resume MIGRATION_ID',
  ],
  async run(commandInput) {
    const {
      flags,
      positionals: [file],
      json,
      stack,
      progress,
      printError,
      answer,
    } = commandInput;
    const nodeId = uuid('--node', text(flags, 'node'));
    const resumed = text(flags, 'resume');
    const resumedId = resumed === undefined ? undefined : uuid('--resume', resumed);
    if (resumedId === undefined && file === undefined) throw new UsageError('give FILE or --resume MIGRATION_ID');
    const isDryRun = flags['dry-run'] === true;
    if (resumedId !== undefined && isDryRun)
      throw new UsageError('--dry-run cannot be combined with --resume: omit it');
    const input = resumedId === undefined ? openInput(file ?? '-') : undefined;
    const failedTo = text(flags, 'failed-to');
    if (failedTo !== undefined) requireCopyable(input, failedTo);
    const { signal } = stack.use(new Interruption());
    const output = new ImportOutput(progress);
    const options = { log: output.log, onBatch: (rows: number) => output.rows(rows) };
    const { database, migrationPages, ...migrations } = await openFeatures(commandInput, options);
    if ((await nodesOf(database.db, nodeId)).length === 0) throw new CommandError(`there is no node ${nodeId}`);
    const id = resumedId ?? (await store(migrations, { nodeId, isDryRun }, input, signal, progress));
    if (resumedId === undefined) output.line(`Migration ${id} has started.`);
    const known = await migrations.migrationFiles.progress(nodeId, id);
    if (!known) throw new CommandError(`the node ${nodeId} has no migration ${id}`);
    output.total = known.total ?? undefined;
    const migration = await importRun(migrations, nodeId, id, signal, output);
    if (migration.status === 'running') throw new CommandError(interrupted(migration));
    const limit = failedTo === undefined ? SHOWN_FAILURES : migration.failed;
    const rows = migration.failed === 0 ? [] : await migrationPages.failures(nodeId, id, limit);
    const failures = rows.slice(0, SHOWN_FAILURES);
    const shortened = await migrationPages.failures(nodeId, id, SHOWN_FAILURES, true);
    const warnings = shortened.map((row) => ({ index: row.index, warning: warningOf(row) ?? '' }));
    if (!json)
      printError(
        faultsOf(migration, failures) + warnings.map(({ index, warning }) => `${rowText(index, warning)}\n`).join(''),
      );
    const copied = failedTo === undefined ? '' : await copyRows(migration, rows, file ?? '', failedTo, input?.stamp);
    const { status, dry_run, total, success, skipped, failed } = migration;
    const document = {
      ...{ id, status, dry_run, total, success, skipped, failed },
      ...{ failures: failures.map(({ index, reason }) => ({ index, reason })), warnings },
    };
    const exit = answer(document, `${summary(migration)}${copied}`);
    return status === 'done' && failed === 0 ? exit : EXIT_FAILED;
  },
};

/**
 * Checks whether rows of the input can be copied to a new file.
 * @throws UsageError when the input cannot be read again; CommandError when the file exists or cannot be created.
 */
function requireCopyable(input: InputFile | undefined, copy: string): void {
  if (input?.size === undefined) throw new UsageError('--failed-to needs a regular FILE: it is read again at the end');
  try {
    writeFileSync(copy, '', { flag: 'wx' });
    rmSync(copy);
  } catch (error) {
    throw new CommandError(`cannot create a file for --failed-to (${messageOf(error)}): name a new file`);
  }
}

/**
 * Copies the header and these rows of a file, byte for byte, to a new file. Returns what it did, as a line.
 * @throws CommandError when it fails, or when the file no longer has this stamp.
 */
async function copyRows(
  migration: MigrationTableRow,
  rows: readonly MigrationRowRow[],
  file: string,
  copy: string,
  stamp: string | undefined,
): Promise<string> {
  if (rows.length === 0) return `No row failed: ${copy} was not written.\n`;
  const input = openInput(file);
  if (input.stamp !== stamp) throw uncopied(migration, `${file} has changed; ${copy} was not written`);
  const ranges = rowRanges(input.parts(), migration, new Set(rows.map(({ index }) => index)));
  async function* bytes() {
    for await (const { start, end } of ranges) yield* createReadStream(file, { start, end: end - 1 });
  }
  try {
    await writeFile(copy, bytes(), { flag: 'wx', mode: 0o600 });
  } catch (error) {
    const isUntouched = error instanceof Error && 'path' in error && error.path === copy;
    throw uncopied(migration, `${copy} ${isUntouched ? 'was not written' : 'is incomplete'}: ${messageOf(error)}`);
  }
  return `Copied the failed rows to ${copy}: correct them and import this file.\n`;
}

function uncopied({ id, status }: MigrationTableRow, reason: string): CommandError {
  return new CommandError(`migration ${id} is ${status}, but its failed rows could not be copied: ${reason}`);
}

/** Stores the file and returns the id of its user migration, for which this process holds the lease. */
async function store(
  migrations: Migrations,
  { nodeId, isDryRun }: { nodeId: string; isDryRun: boolean },
  input: InputFile | undefined,
  signal: AbortSignal,
  progress: Progress,
): Promise<string> {
  async function* shown(): AsyncGenerator<Buffer> {
    let storedBytes = 0;
    for await (const part of input?.parts(signal) ?? []) {
      storedBytes += part.length;
      progress.show({ done: storedBytes, total: input?.size, text: `${(storedBytes / MB).toFixed(1)} MB stored` });
      yield part;
    }
    signal.throwIfAborted();
  }
  const caller = { nodeId, subject: CREATED_BY, correlationId: randomUUID() };
  try {
    const options = { isDryRun, lease: () => migrations.migrationJobs.lease() };
    return (await migrations.migrationFiles.start(caller, shown(), options)).id;
  } catch (error) {
    if (signal.aborted) throw new CommandError('interrupted while storing the file; nothing was stored');
    throw error instanceof Refusal ? new CommandError(`the file ${error.message}`) : error;
  }
}

/** Writes progress and messages to the standard error while the command runs. */
class ImportOutput {
  total: number | undefined;
  readonly log: Log;
  readonly #progress: Progress;

  constructor(progress: Progress) {
    this.#progress = progress;
    const report = (fields: object, message?: string) =>
      this.line([message, 'err' in fields ? messageOf(fields.err) : undefined].filter((part) => part).join(': '));
    this.log = { ...silentLog, warn: report, error: report };
  }

  rows(count: number): void {
    const of = this.total === undefined ? '' : ` of ${counted(this.total)}`;
    this.#progress.show({ done: count, total: this.total, text: `${counted(count)}${of} rows` });
  }

  line(text: string): void {
    this.#progress.end();
    process.stderr.write(`${printable(text)}\n`);
  }
}

function faultsOf({ failed }: MigrationTableRow, failures: readonly MigrationRowRow[]): string {
  const hiddenFailures = failed - failures.length;
  const lines = failures.map(({ index, reason }) => rowText(index, reason ?? ''));
  return [...lines, ...(hiddenFailures > 0 ? [`and ${counted(hiddenFailures)} more failed rows`] : [])]
    .map((line) => `${line}\n`)
    .join('');
}

function summary({ id, status, dry_run, total, success, skipped, failed }: MigrationTableRow): string {
  const verb = dry_run ? 'would be created' : 'created';
  const batches = total > MAX_BULK_ROWS ? ' Each row was compared only with the rows of its batch.' : '';
  return [
    `${counted(total)} rows: ${counted(success)} ${verb}, ${counted(skipped)} skipped, ${counted(failed)} failed.`,
    ...(dry_run ? [`This was a dry run.${batches}`] : []),
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
    `interrupted after ${counted(success + skipped + failed)} of ${counted(total)} rows, which are kept. A running process continues`,
    `with the rest, and so does: portcullis users import --node ${nodeId} --resume ${id}`,
  ].join(' ');
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

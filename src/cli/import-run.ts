import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '../events/backoff.ts';
import type { MigrationTableRow } from '../user-migrations/migration-pages.service.ts';
import { CommandError } from './command.ts';
import type { CommandMigrations } from './open-migrations.ts';

interface ImportRun {
  migrations: CommandMigrations;
  nodeId: string;
  id: string;
  signal: AbortSignal;
  /** Told while another process works at it. */
  onProgress(migration: MigrationTableRow): void;
  /** Told once of each time the database is away. */
  onOutage(error: unknown): void;
}

/** Others are asked for their progress so often. */
const WATCH_MS = 500;

/**
 * Works at the migration of a file until it has ended, or watches whoever does; gives it as it is then, or when `signal`
 * aborts. While the database is away it waits.
 */
export async function importRun(run: ImportRun): Promise<MigrationTableRow> {
  const { jobs, files } = run.migrations;
  // Whoever has it may be dead; one who is not yields. Only once, or two of these would take it from each other.
  let isForced = true;
  for (let failures = 0; ; ) {
    try {
      const end = run.signal.aborted ? 'none' : await jobs.turn(run.signal, { id: run.id, isForced });
      if (end !== 'none') isForced = false;
      failures = 0;
      if (end === 'more' && !run.signal.aborted) continue;
      const progress = await files.progress(run.nodeId, run.id);
      if (!progress) throw new CommandError('the migration is gone');
      if (progress.done || run.signal.aborted) return progress.migration;
      run.onProgress(progress.migration);
      await rest(WATCH_MS, run.signal);
    } catch (error) {
      if (error instanceof CommandError || run.signal.aborted) throw error;
      failures += 1;
      if (failures === 1) run.onOutage(error);
      await rest(backoffMs(failures), run.signal);
    }
  }
}

async function rest(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}

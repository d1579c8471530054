import { readConfig } from '../config/config.ts';
import type { Db } from '../db.ts';
import type { Log } from '../lib/log.ts';
import { MigrationFiles } from '../user-migrations/migration-files.service.ts';
import { MigrationJobs } from '../user-migrations/migration-jobs.ts';
import { MigrationPages } from '../user-migrations/migration-pages.service.ts';
import { UserMigrations } from '../user-migrations/user-migrations.service.ts';
import { CommandError } from './command.ts';
import { openMigrated } from './database.ts';

const ADVICE = 'use its GraphQL mutation startUserMigration, which does the same';

/** What a command migrates users with. Events that it writes are relayed by servers. */
export interface CommandMigrations {
  files: MigrationFiles;
  jobs: MigrationJobs;
  pages: MigrationPages;
}

interface MigrationsOptions {
  env: NodeJS.ProcessEnv;
  /** The node has to be there. */
  nodeId: string;
  log: Log;
  onBatch(rows: number): void;
}

/**
 * Migrations for a command, until `stack` is disposed of.
 * @throws StartError while an embedded server runs on `DATA_DIR`, CommandError where the schema is older than the program
 * or there is no such node.
 */
export async function openMigrations(
  { env, nodeId, log, onBatch }: MigrationsOptions,
  stack: AsyncDisposableStack,
): Promise<CommandMigrations> {
  const { config } = readConfig(env);
  const database = await openMigrated(config, { advice: ADVICE }, stack);
  const { db } = database;
  if (!(await hasNode(db, nodeId))) throw new CommandError(`there is no node ${nodeId}`);
  const shared = { db, log, nowMs: Date.now, notify: () => undefined };
  const userMigrations = new UserMigrations(shared);
  return {
    files: new MigrationFiles(shared),
    jobs: new MigrationJobs({ ...shared, userMigrations, onBatch }),
    pages: new MigrationPages(db),
  };
}

async function hasNode(db: Db, id: string): Promise<boolean> {
  const rows = await db
    .unscoped('the operator names a node')
    .run((k) => k.selectFrom('nodes').select('id').where('id', '=', id));
  return rows.length > 0;
}

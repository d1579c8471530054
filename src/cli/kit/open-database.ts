import { existsSync } from 'node:fs';
import { type Config, readConfig } from '../../platform/config/config.ts';
import { embeddedClusterDir } from '../../platform/config/data-dir.ts';
import type { Database, Db } from '../../platform/database/database.ts';
import { lockDataDir } from '../../platform/embedded/data-dir-lock.ts';
import { Refusal } from '../../platform/errors.ts';
import { CommandError, type CommandInput } from './command.ts';
import type { Advice } from './running-instance.ts';

/** How a command opens the database. */
export interface Opening {
  /** What the user can do instead while an embedded run uses the database. */
  advice: Advice;
  /**
   * Whether to create an embedded database if there is none; only useful for commands that do not read existing rows.
   */
  makes?: boolean;
}

/**
 * Opens the database of a command until `stack` is disposed of. An embedded database is locked for this process.
 * @throws StartError while an embedded run uses `DATA_DIR`, or when that folder is incomplete; CommandError when there
 * is no database.
 */
export async function openForCommand(
  config: Config,
  { advice, makes = false }: Opening,
  stack: AsyncDisposableStack,
): Promise<Database> {
  const { databaseUrl, dataDir } = config;
  if (databaseUrl === undefined) {
    if (!makes && !existsSync(embeddedClusterDir(dataDir)))
      throw new CommandError(
        `there is no database in DATA_DIR ${dataDir}: portcullis start makes one, or name that of a server by DATABASE_URL`,
      );
    stack.use(lockDataDir(dataDir, advice(config)));
    const { prepareDataDir } = await import('../../app/demo/demo-data-dir.ts');
    await prepareDataDir(dataDir);
  }
  return (await import('../../app/stores.ts')).openStore(config, stack);
}

/**
 * Opens the database as `openForCommand` does, and makes sure that it has the schema of this release; an embedded one
 * is migrated.
 * @throws CommandError when the schema of a database server is older.
 */
export async function openMigrated(config: Config, opening: Opening, stack: AsyncDisposableStack): Promise<Database> {
  const database = await openForCommand(config, opening, stack);
  const { migrate, pendingSchemaMigrations } = await import('../../platform/database/schema-migrations.ts');
  if (database.isEmbedded) await migrate(database);
  else if ((await pendingSchemaMigrations(database)).length > 0) {
    throw new CommandError('the schema is older than this release: run portcullis migrate first');
  }
  return database;
}

/** Opens only the database, for commands that need no secrets, so that none are generated. */
export async function openReading({ env, stack }: CommandInput, advice: Advice): Promise<Db> {
  return (await openMigrated(readConfig(env).config, { advice }, stack)).db;
}

/**
 * Returns the tenant of a row that is given only by its id.
 * @throws CommandError with the message `absent` when there is no such row.
 */
export async function nodeOf(
  db: Db,
  table: 'clients' | 'supervisors' | 'users',
  id: string,
  absent: string,
): Promise<string> {
  const [row] = await db
    .unscoped('operators name rows by id only')
    .run((k) => k.selectFrom(table).select('node_id').where('id', '=', id));
  if (!row) throw new CommandError(absent);
  return row.node_id;
}

/** Returns the ids of all tenants, or only the given one; an empty list if that does not exist. */
export async function nodesOf(db: Db, nodeId: string | undefined): Promise<string[]> {
  const rows = await db.unscoped('operators list one node or all').run((k) =>
    k
      .selectFrom('nodes')
      .select('id')
      .$if(nodeId !== undefined, (query) => query.where('id', '=', nodeId ?? ''))
      .orderBy('id'),
  );
  return rows.map(({ id }) => id);
}

/**
 * Awaits the result of a service.
 * @throws CommandError for a refusal, with the message `absent` for `not_found`; other errors as they are.
 */
export async function orCommandError<Result>(absent: string, work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new CommandError(error.code === 'not_found' ? absent : error.message);
  }
}

import { existsSync } from 'node:fs';
import { openStore } from '../../app/stores.ts';
import { type Config, readConfig } from '../../platform/config/config.ts';
import { embeddedClusterDir } from '../../platform/config/data-dir.ts';
import type { Database, Db } from '../../platform/database/database.ts';
import { migrate, pendingSchemaMigrations } from '../../platform/database/schema-migrations.ts';
import { lockDataDir } from '../../platform/embedded/data-dir-lock.ts';
import { RefusalError } from '../../platform/errors.ts';
import { CommandError, type CommandInput } from './command.ts';

/** How the database of a command is opened. */
export interface Opening {
  /** What to do while a server has the embedded database. */
  advice: string;
  /** Whether an embedded database is made where there is none: of use to a command that needs none of its rows. */
  makes?: boolean;
}

/**
 * Opens the database of a command until `stack` is disposed of. The embedded one is taken for this process alone.
 * @throws StartError while a server runs on `DATA_DIR`, or where that is not whole; CommandError where there is no database.
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
    stack.use(lockDataDir(dataDir, advice));
    const { prepareDataDir } = await import('../../app/demo/demo-data-dir.ts');
    await prepareDataDir(dataDir);
  }
  return openStore(config, stack);
}

/**
 * As `openForCommand`, with the schema of this release: an embedded database is migrated.
 * @throws CommandError where the schema of a server is older.
 */
export async function openMigrated(config: Config, opening: Opening, stack: AsyncDisposableStack): Promise<Database> {
  const database = await openForCommand(config, opening, stack);
  if (database.isEmbedded) await migrate(database);
  else if ((await pendingSchemaMigrations(database)).length > 0) {
    throw new CommandError('the schema is older than this release: run portcullis migrate first');
  }
  return database;
}

/** Opens the database alone, for what needs no secrets: none are made for it. `operation` is as in `adviceOf`. */
export async function openReading({ env, stack }: CommandInput, operation: string): Promise<Db> {
  return (await openMigrated(readConfig(env).config, { advice: adviceOf(operation) }, stack)).db;
}

/** Returns the advice for whoever has an embedded instance running; `operation` is the one of GraphQL that does the same. */
export function adviceOf(operation: string): string {
  return `use its GraphQL ${operation}, which does the same`;
}

/** Returns the node of a row that the operator names without it. @throws CommandError with `absent` where there is no such row. */
export async function nodeOf(
  db: Db,
  table: 'clients' | 'supervisors' | 'users',
  id: string,
  absent: string,
): Promise<string> {
  const [row] = await db
    .unscoped('the operator names a row without its node')
    .run((k) => k.selectFrom(table).select('node_id').where('id', '=', id));
  if (!row) throw new CommandError(absent);
  return row.node_id;
}

/** Returns the ids of all nodes, or of the one that is named where there is such a node. */
export async function nodesOf(db: Db, nodeId: string | undefined): Promise<string[]> {
  const rows = await db.unscoped('the operator names every node, or one').run((k) =>
    k
      .selectFrom('nodes')
      .select('id')
      .$if(nodeId !== undefined, (query) => query.where('id', '=', nodeId ?? ''))
      .orderBy('id'),
  );
  return rows.map(({ id }) => id);
}

/** Waits for the result; a refusal is put in words for the user. `absent` says what it is that was not found. */
export async function orCommandError<Result>(absent: string, work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof RefusalError)) throw error;
    const { refusal } = error;
    throw new CommandError(refusal.kind === 'not_found' ? absent : refusal.message);
  }
}

import type { KeyObject } from 'node:crypto';
import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import type { AuditSeals } from '../../audit/seals.ts';
import { type Log, silentLog } from '../../lib/log.ts';
import { type Config, readConfig } from '../../platform/config/config.ts';
import { embeddedClusterDir, readSecrets } from '../../platform/config/secrets.ts';
import type { Db } from '../../platform/database/database.ts';
import type { Database } from '../../platform/database/open-database.ts';
import { inUse, lockDataDir } from '../../platform/embedded/data-dir-lock.ts';
import { Refusal } from '../../platform/errors.ts';
import { CommandError, type CommandInput } from './command.ts';

/** How a command opens the database. */
interface Opening {
  /** Why no embedded instance may run meanwhile; the end of an error message. Without it, the two share the database. */
  alone?: string;
  /**
   * Whether to create an embedded database if there is none; only useful for commands that do not read existing rows.
   */
  makes?: boolean;
  /** Whether a database server that does not respond is opened nonetheless, with an unknown schema. */
  mayBeDown?: boolean;
}

/**
 * Opens the database of a command until `stack` is disposed of. An embedded database is locked for this process, or used
 * by way of the instance that runs on it.
 * @throws StartError when that instance does not answer, or when `DATA_DIR` is incomplete; CommandError when there is no
 * database.
 */
export async function openForCommand(
  config: Config,
  stack: AsyncDisposableStack,
  { alone, makes = false }: Opening = {},
): Promise<Database> {
  const { databaseUrl, dataDir } = config;
  if (databaseUrl === undefined) {
    if (!makes && !existsSync(embeddedClusterDir(dataDir)))
      throw new CommandError(
        `there is no database in DATA_DIR ${dataDir}: run portcullis start to create one, or set DATABASE_URL to a server`,
      );
    const lock = lockDataDir(dataDir);
    if (!lock && alone !== undefined) throw inUse(dataDir, alone);
    if (!lock) {
      const { openDatabase } = await import('../../platform/database/open-database.ts');
      return stack.use(await openDatabase({ instance: dataDir }));
    }
    stack.use(lock);
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
export async function openMigrated(
  config: Config,
  stack: AsyncDisposableStack,
  opening: Opening = {},
): Promise<Database> {
  const database = await openForCommand(config, stack, opening);
  const { migrate, pendingSchemaMigrations } = await import('../../platform/database/schema-migrations.ts');
  if (database.isEmbedded) await migrate(database);
  else {
    const pending = await pendingSchemaMigrations(database).catch((error: unknown) => {
      if (opening.mayBeDown) return [];
      throw error;
    });
    if (pending.length > 0)
      throw new CommandError(
        `the database lacks ${pending.join(', ')}: run portcullis migrate, or wait for the one that runs, which says what it waits for`,
      );
  }
  return database;
}

/** Opens only the database, for commands that need no secrets, so that none are generated. */
export async function openReading({ env, stack }: CommandInput): Promise<Db> {
  return (await openMigrated(readConfig(env).config, stack)).db;
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

/** Returns all tenants, or only the given one; an empty list if that does not exist. */
export function nodesOf(db: Db, nodeId?: string) {
  return db.unscoped('operators list one node or all').run((k) =>
    k
      .selectFrom('nodes')
      .select(['id', 'name', 'created_at'])
      .$if(nodeId !== undefined, (query) => query.where('id', '=', nodeId ?? ''))
      .orderBy('id'),
  );
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

/**
 * Opens the services that administer clients and supervisors; running processes learn of their changes from the
 * database.
 * @throws CommandError when the schema is older than this release.
 */
export async function openAdministration({ command, env, stack }: CommandInput, opening?: Opening) {
  const { config, env: variables } = readConfig(env);
  const database = await openMigrated(config, stack, opening);
  const { pepper, auditKeys } = readSecrets(config, variables);
  const [{ buildAdministration }, { Passwords }] = await Promise.all([
    import('../../app/access.ts'),
    import('../../access/credentials/passwords.ts'),
  ]);
  const administration = buildAdministration({
    database,
    pepper,
    passwords: new Passwords(),
    maxSessions: config.maxSessions,
    nowMs: Date.now,
    isOwnClock: database.isEmbedded,
    onError: () => undefined,
  });
  const { db } = database;
  const seals = await openSeals(config, db, stack, { key: () => auditKeys[0] });
  return { ...administration, db, record: recorder(command, { db, seals, keys: () => auditKeys }) };
}

/**
 * Changes the client, supervisor or user with an id, with a record in the audit before it.
 * @throws CommandError when there is none, and for a refusal.
 */
export async function changed<Result>(
  input: CommandInput,
  noun: 'client' | 'supervisor' | 'user',
  id: string,
  work: (administration: Awaited<ReturnType<typeof openAdministration>>, nodeId: string) => Promise<Result>,
): Promise<Result> {
  const administration = await openAdministration(input);
  const absent = `there is no ${noun} ${id}`;
  const nodeId = await nodeOf(administration.db, `${noun}s`, id, absent);
  await administration.record({ id, ...input.flags }, { nodeId, users: noun === 'user' ? [id] : null });
  return orCommandError(absent, work(administration, nodeId));
}

/** Returns a function that records in the audit that a command is executed now, by the operating system's user. */
export function recorder(
  command: string,
  {
    db,
    seals,
    keys,
  }: {
    db: Db;
    seals: AuditSeals;
    /** Returns the keys whose signatures the seals may have. */
    keys(): readonly KeyObject[];
  },
) {
  return async (
    input: object,
    concerned: { nodeId?: string; users?: readonly string[] | null } = {},
  ): Promise<void> => {
    const { recordCommand } = await import('../../audit/command-records.ts');
    await requireKey(db, keys());
    await recordCommand(
      { db, seals },
      { command, by: userInfo().username, input: { ...input, json: undefined }, ...concerned },
    );
  };
}

/** @throws CommandError unless one of the keys has signed the last seal, if any has: nothing behind it would be proven. */
export async function requireKey(db: Db, keys: readonly KeyObject[]): Promise<void> {
  const [[last], { keyId }] = await Promise.all([
    db.unscoped('seals span all nodes').raw(
      (sql) => sql<{ key: string | null }>`
        select body::json->>'key' as key from audit_seals order by position desc limit 1`,
    ),
    import('../../audit/seals.ts'),
  ]);
  if (last?.key && !keys.map(keyId).includes(last.key))
    throw new CommandError(`the seals are signed by the key ${last.key}: set AUDIT_SIGNING_KEY as the service has it`);
}

/** Opens the seals of the audit, also outside the database, until the command ends. */
export async function openSeals(
  config: Config,
  db: Db,
  stack: AsyncDisposableStack,
  { key, onError = () => undefined }: { key: () => KeyObject | undefined; onError?: (error: unknown) => void },
): Promise<AuditSeals> {
  const [{ openBus, sealSink }, { AuditSeals }] = await Promise.all([
    import('../../app/stores.ts'),
    import('../../audit/seals.ts'),
  ]);
  const sink = sealSink(config, () => openBus(config, db, silentLog, stack));
  return new AuditSeals({ db, nowMs: Date.now, key, sink, onError });
}

/**
 * Opens the database and the services of features that need no other store, until the command ends. `dropped` collects the
 * rows of reference data that waited for a parent but cannot be applied.
 * @throws CommandError when the schema is older than this release.
 */
export async function openFeatures(
  { command, env, stack }: Pick<CommandInput, 'command' | 'env' | 'stack'>,
  {
    log = silentLog,
    onBatch,
    ...opening
  }: {
    log?: Log;
    /** Called after each row batch with the number of rows in it that have an outcome. */
    onBatch?(rows: number): void;
  } & Opening = {},
) {
  const { config, env: variables } = readConfig(env);
  const [{ AUDIT_DELAY_MS }, { AuditErasure }, { buildStored }] = await Promise.all([
    import('../../audit/audit-writer.ts'),
    import('../../audit/erasure.ts'),
    import('../../app/features.ts'),
  ]);
  const database = await openMigrated(config, stack, opening);
  const dropped: string[] = [];
  // Read late, so that commands that seal nothing generate no secrets.
  const keys = () => readSecrets(config, variables).auditKeys;
  const seals = await openSeals(config, database.db, stack, { key: () => keys()[0] });
  const features = buildStored({
    db: database.db,
    auditErasure: new AuditErasure(database.db, seals),
    log,
    nowMs: Date.now,
    registersByMutation: true,
    // This process has no subscribers and relays no events; running processes poll for both.
    wake: () => undefined,
    notify: () => undefined,
    // Waits until running processes have written the audit records that are in their spools.
    auditSettled: () => setTimeout(AUDIT_DELAY_MS),
    dropped: (kind, id, reason) =>
      void dropped.push(`reference.${kind} ${id}, which was waiting for its parent: ${reason}`),
    onBatch,
  });
  const record = recorder(command, { db: database.db, seals, keys });
  return { ...features, config, database, record, dropped };
}

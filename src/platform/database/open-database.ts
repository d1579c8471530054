import { statfsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { PGlite } from '@electric-sql/pglite';
import type { SqlMikroORM } from '@mikro-orm/sql';
import { Kysely, PGliteDialect, PostgresDialect } from 'kysely';
import type { PoolClient } from 'pg';
import type { Metric } from 'prom-client';
import { Semaphore } from '../../lib/semaphore.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import { jsonLength } from '../../lib/yielding.ts';
import type { Tables } from '../../tables/tables.ts';
import { TENANT_TABLES } from '../../tables/tenant-tables.ts';
import { gatewayTimeout, serviceUnavailable } from '../errors.ts';
import { heldMemory, MAX_WAIT_MS, requestSignal } from '../held-memory.ts';
import { type CopyInto, Db, requestOf } from './database.ts';
import type { TableScopes } from './node-scope.ts';
import {
  closeDeadConnections,
  copyFrom,
  countRows,
  DatabaseMetrics,
  type DriverQueryClass,
  limitStatements,
  type ServerPool,
  withLockTimeout,
} from './pool.ts';
import { ServerWatch } from './server-watch.ts';

/** The address of a PostgreSQL server. `statementTimeoutMs` limits each statement that a request waits for. */
interface ServerLocation {
  url: string;
  statementTimeoutMs?: number;
}

/**
 * Where the database is: on a PostgreSQL server, embedded in this process with its files in `dataDir`, or embedded in
 * the instance that runs on the `DATA_DIR` `instance`.
 */
export type DatabaseLocation = ServerLocation | { dataDir: string } | { instance: string };

/** An open database. An embedded one keeps the process alive until it is disposed of. */
export interface Database extends AsyncDisposable {
  db: Db;
  /**
   * Opens MikroORM on the same connections, for schema migrations: it is loaded only now, since nothing else needs it. A
   * statement that gets no lock in time fails. The ids of the server's processes that it uses are added to `backends`.
   */
  openOrm(backends?: Set<number>): Promise<SqlMikroORM>;
  /** The semaphore with a permit for each connection, shared fairly among tenants. */
  connections: Semaphore;
  isEmbedded: boolean;
  /** A number that changes when another server is met at the address: it may lack what was last committed. */
  readonly generation: number;
  /** The metrics of the server's connections and statements; empty for an embedded database. */
  metrics: readonly Metric[];
  /**
   * Checks that the database responds, and returns its time as `readTime` does; rejects if it does not respond or takes no
   * writes, or if an embedded one's disk is too full for them.
   */
  checkHealth(): Promise<number>;
}

/** The path of the folder with the schema migrations. */
export const SCHEMA_MIGRATIONS = resolve(import.meta.dirname, '../../../migrations');
const POOL_SIZE = 10;
/** The number of connections reserved for work of no tenant: logins, consumers, audit records. */
const RESERVED = 2;
/** The most statements that wait for a connection. */
export const MAX_WAITING_STATEMENTS = 2_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** How long closing waits for the connections to a server, in milliseconds: half of the maximum time of a stop. */
const CLOSE_TIMEOUT_MS = 5_000;
/** After so long a connection is replaced, so that a process in steady use follows an address that has moved. */
const LIFETIME_SECONDS = 60;

/** The tables that a tenant's queries may name. */
const scopes: TableScopes = {
  tenant: new Set(Object.keys(TENANT_TABLES)),
  global: new Set(['chains', 'networks', 'network_currencies']),
};

/**
 * Opens the database. Both drivers return timestamps as PostgreSQL's text in UTC, and 64-bit integers as decimal
 * strings. The first statement connects.
 */
export async function openDatabase(location: DatabaseLocation): Promise<Database> {
  // Without `mayBorrow`: a tenant with long statements could not return borrowed connections when another needs them.
  const connections = new Semaphore({
    ...('url' in location ? { permits: POOL_SIZE, reserved: RESERVED } : { permits: 1 }),
    maxWaiting: MAX_WAITING_STATEMENTS,
    waitMs: MAX_WAIT_MS,
    refusal: serviceUnavailable,
    signalOf: requestSignal,
  });
  const observed = new DatabaseMetrics(POOL_SIZE, connections);
  const { kysely, pool, servers, copyInto } = await openDriver(location, observed);
  const db = new Db({ client: kysely, scopes, connections, timedOut: gatewayTimeout, copyInto, pool });
  return {
    db,
    openOrm: (backends = new Set()) =>
      openOrm(pool ? new PostgresDialect({ pool: withLockTimeout(pool, backends) }) : kysely, location),
    connections,
    isEmbedded: !('url' in location),
    get generation() {
      return servers?.generation ?? 0;
    },
    metrics: 'url' in location ? observed.metrics : [],
    async checkHealth() {
      if ('dataDir' in location) checkFreeSpace(location.dataDir);
      // Inserts no row. Where it fails, its connection is closed, and the next one finds out which server has the address now.
      await db
        .unscoped('whether it takes writes')
        .raw((sql) => sql`insert into access_changes (kind) select '' where false`);
      return readTime(db);
    },
    async [Symbol.asyncDispose]() {
      servers?.stop();
      await (pool ? closeInTime(pool) : kysely.destroy());
    },
  };
}

/**
 * Closes the connections to a server, those that are opening too, which Kysely's own `destroy` would never give back.
 * One that the server does not close does not delay the stop: acknowledged work is durable there.
 */
async function closeInTime(pool: ServerPool): Promise<void> {
  const late = new Error('connections are still open');
  await withTimeout(pool.end(), CLOSE_TIMEOUT_MS, () => late).catch((error: unknown) => {
    if (error !== late) throw error;
  });
}

async function openOrm(
  driverOptions: Kysely<Tables> | PostgresDialect,
  location: DatabaseLocation,
): Promise<SqlMikroORM> {
  const { ConstraintNames, entities } = await import('../../tables/tables.ts');
  // Each in a separate transaction: one that locks many tables would deadlock with transactions of running services.
  const migrations = {
    ...{ path: SCHEMA_MIGRATIONS, glob: 'migration-*.ts', snapshot: false, silent: true },
    allOrNothing: false,
  };
  // Only the migrations create triggers and functions.
  const schemaGenerator = { ignoreTriggers: true, ignoreRoutines: true };
  const options = { entities, driverOptions, migrations, namingStrategy: ConstraintNames, schemaGenerator };
  return 'url' in location
    ? new (await import('@mikro-orm/postgresql')).MikroORM({ ...options, clientUrl: location.url })
    : new (await import('@mikro-orm/pglite')).MikroORM({ ...options, dbName: 'postgres' });
}

/** A database as its driver opens it. */
interface Opened {
  kysely: Kysely<Tables>;
  /** The driver's pool of connections to a server. */
  pool?: ServerPool;
  servers?: ServerWatch;
  copyInto: CopyInto;
}

/** The types that both drivers leave as text: date, timestamp, timestamptz, interval. */
const TEXTS = [1082, 1114, 1184, 1186];
/**
 * How pg reads them and their arrays: as `text` (25) and `text[]` (1009). PGlite makes the reader of an array itself.
 */
const READ_AS = new Map<number, number>([
  ...TEXTS.map((oid) => [oid, 25] as const),
  ...[1182, 1115, 1185, 1187].map((oid) => [oid, 1009] as const),
]);

/**
 * The types whose values PGlite makes anything but text of, and the arrays that pg reads as well. By default PGlite
 * also has a reader for the array of each of a database's 300 types of rows.
 */
const READ_BY_PGLITE = new Set([
  ...[16, 17, 20, 21, 23, 25, 114, 700, 701, 3802, ...TEXTS],
  ...[199, 1000, 1001, 1005, 1007, 1009, 1015, 1016, 1021, 1022, 1115, 1182, 1185, 1187, 1231, 2951, 3807],
]);

async function openDriver(location: DatabaseLocation, observed: DatabaseMetrics): Promise<Opened> {
  if ('url' in location) return openServer(location, observed);
  if ('dataDir' in location) return openEmbedded(location.dataDir);
  const { InstancePool } = await import('./instance-link.ts');
  const pool = new InstancePool(location.instance);
  return {
    kysely: new Kysely({ dialect: new PostgresDialect({ pool }) }),
    copyInto: (target, rows) => pool.copyInto(target, rows),
  };
}

async function openServer(
  { url, statementTimeoutMs: timeoutMs }: ServerLocation,
  observed: DatabaseMetrics,
): Promise<Opened> {
  const { Pool, Query, types } = await import('pg');
  // The statement in flight fails with the connection, and the pool replaces it. Without a listener it would end the
  // process.
  const isReplaced = () => undefined;
  const options = { connectionString: inUtc(url), connectionTimeoutMillis: CONNECT_TIMEOUT_MS };
  // Its connection ends as soon as it is idle, so that each question goes where the address leads at that time.
  const identityPool = new Pool({ ...options, max: 1, idleTimeoutMillis: 1, allowExitOnIdle: true }).on(
    'error',
    isReplaced,
  );
  const servers = new ServerWatch(identityPool);
  const pool = new Pool({
    ...options,
    keepAlive: true,
    pipeline: true,
    max: POOL_SIZE,
    maxLifetimeSeconds: LIFETIME_SECONDS,
    onConnect: (client) => servers.admit(client as PoolClient),
    types: { getTypeParser: (oid, format) => types.getTypeParser((READ_AS.get(oid) ?? oid) as typeof oid, format) },
  });
  pool.on('error', isReplaced).on('connect', (client) => client.on('error', isReplaced));
  countRows(pool, Query as unknown as DriverQueryClass, requestOf);
  observed.watch(pool, servers);
  closeDeadConnections(pool);
  const hasDeadline = (statement: unknown) => requestOf(statement)?.hasDeadline === true;
  if (timeoutMs !== undefined) limitStatements(pool, { timeoutMs, hasDeadline });
  return {
    kysely: new Kysely({ dialect: new PostgresDialect({ pool }) }),
    pool,
    servers,
    copyInto: (target, rows) => copyFrom(pool, `copy ${target} from stdin`, rows),
  };
}

/**
 * Returns a database URL with `timezone=UTC` appended to its `options`, since PostgreSQL uses a setting's last value.
 */
function inUtc(text: string): string {
  const url = new URL(text);
  const options = url.searchParams.get('options') ?? '';
  url.searchParams.set('options', `${options} -c timezone=UTC`.trim());
  return url.href;
}

async function openEmbedded(dataDir: string): Promise<Opened> {
  const [{ PGlite }, { pgliteCode }] = await Promise.all([
    import('@electric-sql/pglite'),
    import('../embedded/pglite-code.ts'),
  ]);
  const text = (value: string) => value;
  let opened: Promise<PGlite> | undefined;
  const create = async () => {
    const created = await PGlite.create({
      dataDir,
      pgliteWasmModule: await pgliteCode,
      startParams: [...PGlite.defaultStartParams, '-c', 'shared_buffers=16MB', '-c', 'timezone=UTC'],
      parsers: {
        ...Object.fromEntries([20, ...TEXTS].map((oid) => [oid, text])),
        17: (value: string) => Buffer.from(value.slice(2), 'hex'),
      },
    });
    // PGlite copies all its readers for each statement, which takes as long as a short statement does.
    const readers = Object.entries(created.parsers).filter(([oid]) => READ_BY_PGLITE.has(Number(oid)));
    created.parsers = Object.fromEntries(readers);
    return created;
  };
  const pglite = () => {
    opened ??= create();
    return opened;
  };
  const onCreateConnection = async (connection: Executor) => checkStatements(connection, () => checkFreeSpace(dataDir));
  return {
    kysely: new Kysely({ dialect: new PGliteDialect({ pglite, onCreateConnection }) }),
    async copyInto(target, rows) {
      checkFreeSpace(dataDir);
      await (await pglite()).query(`copy ${target} from '/dev/blob'`, [], { blob: new Blob([rows]) });
    },
  };
}

/** Reads the database's time, in ms since 1970, within the transaction of the current context. */
export async function readTime(db: Db): Promise<number> {
  const [row] = await db
    .unscoped('the time, no table')
    .raw((sql) => sql<{ ms: string }>`select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as ms`);
  return Number(row?.ms);
}

/**
 * Checks whether the database can lower-case non-ASCII letters, as searching for names requires; in the locale C it
 * cannot.
 */
export async function knowsLetterCase(db: Db): Promise<boolean> {
  const [row] = await db
    .unscoped('the locale is global')
    .raw((sql) => sql<{ known: boolean }>`select lower('ÀЖ') = 'àж' as known`);
  return row?.known ?? false;
}

/**
 * The free space that the embedded database needs before it writes, in bytes: a segment of its write-ahead log (16 MiB)
 * and some rows. If it cannot create a segment, it hangs instead of failing.
 */
const NEEDED_BYTES = 20 * 1024 * 1024;
/** Matches the beginning of statements that read, control a transaction or change a setting. */
const READS = /^\s*(?:select|with|show|begin|start|commit|rollback|savepoint|release|set)\b/i;
/** Matches the words that make a statement write even if `READS` matches it, row locks included. */
const WRITES = /\b(?:insert|update|delete|merge|for\s+(?:key\s+)?share)\b/i;

/** Thrown when the disk is too full for another write. `code` is PostgreSQL's SQLSTATE for a full disk. */
export class DiskFullError extends Error {
  override name = 'DiskFullError';
  readonly code = '53100';
}

/**
 * Checks that a folder's disk has enough free space for the embedded database to write. @throws DiskFullError if not.
 */
function checkFreeSpace(folder: string): void {
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize >= NEEDED_BYTES) return;
  throw new DiskFullError(
    `the disk of ${folder} has less than ${NEEDED_BYTES / 1024 / 1024} MiB free: free disk space`,
  );
}

/** A database connection of Kysely, reduced to the method that runs statements. */
export interface Executor {
  executeQuery(query: { sql: string }, ...args: unknown[]): Promise<unknown>;
}

/**
 * Makes a connection call `check` before each statement that may write; if `check` throws, the statement is refused
 * with that error. Reads, and statements that end a transaction, are never refused. The rows of each statement that a
 * request waits for are counted once they are read.
 */
export function checkStatements(connection: Executor, check: () => void): void {
  const execute = connection.executeQuery.bind(connection);
  connection.executeQuery = async (query, ...args) => {
    if (!READS.test(query.sql) || WRITES.test(query.sql)) check();
    const result = await execute(query, ...args);
    const error = heldMemory()?.add(jsonLength(result), false);
    if (error) throw error;
    return result;
  };
}

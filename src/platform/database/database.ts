import { statfsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { SqlMikroORM } from '@mikro-orm/sql';
import type { Metric } from 'prom-client';
import { Semaphore } from '../../lib/semaphore.ts';
import { entities, type Tables } from '../../tables/tables.ts';
import { gatewayTimeout, serviceUnavailable } from '../errors.ts';
import type { TableScopes } from './node-scope.ts';
import { closeDeadConnections, copyFrom, DatabaseMetrics, limitStatements, type ServerPool } from './pool.ts';
import { type CopyInto, hasDeadline, TenantDb } from './tenant-db.ts';

/** The database as services use it: scoped to one tenant or unscoped, with transactions. */
export type Db = TenantDb<Tables>;

/** The address of a PostgreSQL server. `statementTimeoutMs` limits each statement that a request waits for. */
interface ServerLocation {
  url: string;
  statementTimeoutMs?: number;
}

/** Where the database is: on a PostgreSQL server, or embedded in this process with its files in `dataDir`. */
export type DatabaseLocation = ServerLocation | { dataDir: string };

/** An open database. An embedded one keeps the process alive until it is disposed of. */
export interface Database extends AsyncDisposable {
  orm: SqlMikroORM;
  db: Db;
  /** The semaphore with a permit for each connection, shared fairly among tenants. */
  connections: Semaphore;
  isEmbedded: boolean;
  /** The metrics of the server's connections and statements; empty for an embedded database. */
  metrics: readonly Metric[];
  /** Checks that the database responds; rejects if it does not, or if an embedded one's disk is too full to write. */
  checkHealth(): Promise<void>;
}

/** The path of the folder with the schema migrations. */
export const SCHEMA_MIGRATIONS = resolve(import.meta.dirname, '../../../migrations');
const POOL_SIZE = 10;
/** The number of connections reserved for work of no tenant: logins, consumers, audit records. */
const RESERVED = 2;
const MAX_WAITING = 2_000;
const WAIT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5_000;

/** The tables that a tenant's queries may name. */
const scopes: TableScopes = {
  tenant: new Set(entities.filter((entity) => 'nodeId' in entity.properties).map((entity) => entity.meta.tableName)),
  global: new Set(['chains', 'networks', 'network_currencies']),
};

/**
 * Opens the database. Both drivers return timestamps as PostgreSQL's text in UTC, and 64-bit integers as decimal
 * strings.
 */
export async function openDatabase(location: DatabaseLocation): Promise<Database> {
  let pool: ServerPool | undefined;
  // Without `mayBorrow`: a tenant with long statements could not return borrowed connections when another needs them.
  const connections = new Semaphore({
    ...('url' in location ? { permits: POOL_SIZE, reserved: RESERVED } : { permits: 1 }),
    maxWaiting: MAX_WAITING,
    waitMs: WAIT_MS,
    refusal: serviceUnavailable,
  });
  const observed = new DatabaseMetrics(POOL_SIZE, connections);
  const onPoolCreated = (created: ServerPool) => {
    pool = created;
    observed.watch(created);
    closeDeadConnections(created);
    const timeoutMs = 'url' in location ? location.statementTimeoutMs : undefined;
    if (timeoutMs !== undefined) limitStatements(created, { timeoutMs, hasDeadline });
  };
  const { orm, copyInto } =
    'url' in location ? await openServer(location.url, onPoolCreated) : await openEmbedded(location.dataDir);
  const limits = { connections, timedOut: gatewayTimeout };
  // The query builder is made at the first statement, since that opens the database.
  const db = new TenantDb(
    () => orm.em.getKysely<Tables>(),
    scopes,
    limits,
    copyInto,
    () => pool,
  );
  return {
    orm,
    db,
    connections,
    isEmbedded: 'dataDir' in location,
    metrics: 'dataDir' in location ? [] : observed.metrics,
    async checkHealth() {
      if ('dataDir' in location) checkFreeSpace(location.dataDir);
      await db.unscoped('health').raw((sql) => sql`select 1`);
    },
    [Symbol.asyncDispose]: () => orm.close(true),
  };
}

const shared = {
  entities,
  migrations: {
    path: SCHEMA_MIGRATIONS,
    glob: 'migration-*.ts',
    snapshot: false,
    silent: true,
  },
};

/** A database as its driver opens it. */
interface Opened {
  orm: SqlMikroORM;
  copyInto: CopyInto;
}

async function openServer(url: string, onPoolCreated: (pool: ServerPool) => void): Promise<Opened> {
  const { MikroORM } = await import('@mikro-orm/postgresql');
  const orm = new MikroORM({
    ...shared,
    clientUrl: url,
    pool: { min: 0, max: POOL_SIZE },
    driverOptions: {
      // The driver gets the whole URL: MikroORM itself reads only user, host and database from it, and ignores
      // `sslmode`.
      connectionString: inUtc(url),
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      pipeline: true,
      onPoolCreated,
    },
  });
  return {
    orm,
    async copyInto(target, rows) {
      await copyFrom(await orm.em.getConnection().getNativeClient(), `copy ${target} from stdin`, rows);
    },
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
  const [{ MikroORM }, { PGlite }] = await Promise.all([import('@mikro-orm/pglite'), import('@electric-sql/pglite')]);
  const orm = new MikroORM({
    ...shared,
    dbName: 'postgres',
    onCreateConnection: async (connection) => refuseWhenFull(connection as Executor, () => checkFreeSpace(dataDir)),
    driverOptions: {
      dataDir,
      startParams: [...PGlite.defaultStartParams, '-c', 'shared_buffers=16MB', '-c', 'timezone=UTC'],
      parsers: { 20: (value: string) => value, 17: (value: string) => Buffer.from(value.slice(2), 'hex') },
    },
  });
  return {
    orm,
    async copyInto(target, rows) {
      checkFreeSpace(dataDir);
      const pglite = await orm.em.getConnection().getNativeClient();
      await pglite.query(`copy ${target} from '/dev/blob'`, [], { blob: new Blob([rows]) });
    },
  };
}

/**
 * Checks whether the database can lower-case non-ASCII letters, as comparing emails requires; in the locale C it
 * cannot.
 */
export async function knowsLetterCase(db: Db): Promise<boolean> {
  const [row] = await db
    .unscoped('the locale is of the database')
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
  throw new DiskFullError(`the disk of ${folder} has less than ${NEEDED_BYTES / 1024 / 1024} MiB left: make room`);
}

/** A database connection of Kysely, reduced to the method that runs statements. */
export interface Executor {
  executeQuery(query: { sql: string }, ...rest: unknown[]): Promise<unknown>;
}

/**
 * Makes a connection call `check` before each statement that may write; if `check` throws, the statement is refused
 * with that error. Reads, and statements that end a transaction, are never refused.
 */
export function refuseWhenFull(connection: Executor, check: () => void): void {
  const execute = connection.executeQuery.bind(connection);
  connection.executeQuery = async (query, ...rest) => {
    if (!READS.test(query.sql) || WRITES.test(query.sql)) check();
    return execute(query, ...rest);
  };
}

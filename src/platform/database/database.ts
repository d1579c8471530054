import { statfsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { MikroORM } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Metric } from 'prom-client';
import { Semaphore } from '../../lib/semaphore.ts';
import { entities, type Tables } from '../../tables/tables.ts';
import { gatewayTimeout, serviceUnavailable } from '../errors.ts';
import type { TableScopes } from './node-scope.ts';
import { DatabaseMetrics, limitStatements, releaseDeadConnections, type ServerPool } from './pool.ts';
import { hasDeadline, TenantDb } from './tenant-db.ts';

/** The database as services use it: statements of one tenant, statements of no tenant, and transactions. */
export type Db = TenantDb<Tables>;

/** A PostgreSQL server. `statementTimeoutMs` limits the statements that a request waits for. */
interface ServerLocation {
  url: string;
  statementTimeoutMs?: number;
}

/** Where the rows are: a PostgreSQL server, or PostgreSQL in this process with its files in `dataDir`. */
export type DatabaseLocation = ServerLocation | { dataDir: string };

/** An open database. Dispose of it, or an embedded one keeps the process alive. */
export interface Database extends AsyncDisposable {
  orm: MikroORM;
  db: Db;
  /** Who holds its connections, and who waits for one, by tenant. */
  connections: Semaphore;
  isEmbedded: boolean;
  /** Metrics of the connections to a server; empty for an embedded one. */
  metrics: readonly Metric[];
  /** Rejects where the database does not answer, or where the disk of an embedded one is too full to write. */
  checkHealth(): Promise<void>;
}

/** The folder of the migrations. */
export const SCHEMA_MIGRATIONS = resolve(import.meta.dirname, '../../../migrations');
const POOL_SIZE = 10;
/** Connections that tenants' statements leave to work of no tenant: logins, consumers, audit records. */
const RESERVED = 2;
const MAX_WAITING = 2_000;
const WAIT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5_000;

/** The tables that statements of a tenant may name. */
const scopes: TableScopes = {
  tenant: new Set(entities.filter((entity) => 'nodeId' in entity.properties).map((entity) => entity.meta.tableName)),
  global: new Set(['chains', 'networks', 'network_currencies']),
};

/**
 * Opens the database. From both drivers timestamps come as PostgreSQL's text in UTC and 64-bit integers as decimal
 * strings.
 */
export async function openDatabase(location: DatabaseLocation): Promise<Database> {
  let pool: ServerPool | undefined;
  // No tenant may borrow: a long statement gives nothing back when another tenant comes.
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
    releaseDeadConnections(created);
    const timeoutMs = 'url' in location ? location.statementTimeoutMs : undefined;
    if (timeoutMs !== undefined) limitStatements(created, { timeoutMs, hasDeadline });
  };
  const orm = 'url' in location ? await openServer(location.url, onPoolCreated) : await openEmbedded(location.dataDir);
  const limits = { connections, timedOut: gatewayTimeout };
  const db = new TenantDb<Tables>(orm.em as SqlEntityManager, scopes, limits, () => pool);
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
  discovery: { warnWhenNoEntities: false },
  migrations: {
    path: SCHEMA_MIGRATIONS,
    pathTs: SCHEMA_MIGRATIONS,
    glob: 'migration-*.ts',
    snapshot: false,
    silent: true,
  },
  allowGlobalContext: true,
  debug: false,
};

async function openServer(url: string, onPoolCreated: (pool: ServerPool) => void): Promise<MikroORM> {
  const { MikroORM } = await import('@mikro-orm/postgresql');
  return MikroORM.init({
    ...shared,
    clientUrl: url,
    pool: { min: 0, max: POOL_SIZE },
    driverOptions: {
      // MikroORM reads no more of the URL than user, host and database: sslmode would be of no effect.
      connectionString: inUtc(url),
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      onPoolCreated,
    },
  });
}

/** Returns the URL with the time zone UTC as the last of its options: of two for the same setting the last one holds. */
function inUtc(text: string): string {
  const url = new URL(text);
  const options = url.searchParams.get('options') ?? '';
  url.searchParams.set('options', `${options} -c timezone=UTC`.trim());
  return url.href;
}

async function openEmbedded(dataDir: string): Promise<MikroORM> {
  const [{ MikroORM }, { PGlite }] = await Promise.all([import('@mikro-orm/pglite'), import('@electric-sql/pglite')]);
  return MikroORM.init({
    ...shared,
    dbName: 'postgres',
    onCreateConnection: async (connection) => refuseWhenFull(connection as Executor, () => checkFreeSpace(dataDir)),
    driverOptions: {
      dataDir,
      startParams: [...PGlite.defaultStartParams, '-c', 'shared_buffers=16MB', '-c', 'timezone=UTC'],
      parsers: { 20: (value: string) => value, 17: (value: string) => Buffer.from(value.slice(2), 'hex') },
    },
  });
}

/** Returns whether the database maps letters beyond ASCII to lower case, as comparing emails needs: in the locale C it does not. */
export async function knowsLetterCase(db: Db): Promise<boolean> {
  const [row] = await db
    .unscoped('the locale is of the database')
    .raw((sql) => sql<{ known: boolean }>`select lower('ÀЖ') = 'àж' as known`);
  return row?.known ?? false;
}

/**
 * What the embedded database must find free before it writes: a segment of its write-ahead log (16 MiB) and some rows.
 * Where it cannot make a segment it does not fail, it never returns.
 */
const NEEDED_BYTES = 20 * 1024 * 1024;
/** How a statement begins that only reads, or that ends a transaction; and the words by which it writes after all, locks included. */
const READS = /^\s*(?:select|with|show|begin|start|commit|rollback|savepoint|release|set)\b/i;
const WRITES = /\b(?:insert|update|delete|merge|for\s+(?:key\s+)?share)\b/i;

/** Says that the disk is too full for another write. `code` is the SQLSTATE that PostgreSQL gives for it. */
export class DiskFullError extends Error {
  override name = 'DiskFullError';
  readonly code = '53100';
}

/** Checks that the disk of a folder has room for the embedded database to write. @throws DiskFullError where it has not. */
export function checkFreeSpace(folder: string): void {
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize >= NEEDED_BYTES) return;
  throw new DiskFullError(`the disk of ${folder} has less than ${NEEDED_BYTES / 1024 / 1024} MiB left: make room`);
}

/** Runs the statements of a connection, as Kysely's connections do. */
export interface Executor {
  executeQuery(query: { sql: string }, ...rest: unknown[]): Promise<unknown>;
}

/** Refuses every statement but reads with what `check` throws; a transaction that has begun can still be ended. */
export function refuseWhenFull(connection: Executor, check: () => void): void {
  const execute = connection.executeQuery.bind(connection);
  connection.executeQuery = async (query, ...rest) => {
    if (!READS.test(query.sql) || WRITES.test(query.sql)) check();
    return execute(query, ...rest);
  };
}

import { resolve } from 'node:path';
import type { MikroORM } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Metric } from 'prom-client';
import type { Db } from './db.ts';
import { checkRoom, type Executor, refuseWithoutRoom } from './embedded/room.ts';
import { entities, type Tables } from './entities.ts';
import { gatewayTimeout, serviceUnavailable } from './errors/app-error.ts';
import { type CountedPool, DatabaseMetrics } from './lib/database-metrics.ts';
import { type ConnectingPool, releaseDeadConnections } from './lib/dead-connections.ts';
import type { TableScopes } from './lib/node-scope.ts';
import { limitStatements, type TimeLimitedPool } from './lib/statement-timeout.ts';
import { isWaitedFor, type StatementPool, TenantDb } from './lib/tenant-db.ts';
import { TurnsByNode } from './lib/turns-by-node.ts';

type ServerPool = StatementPool & ConnectingPool & CountedPool & TimeLimitedPool;

/** A PostgreSQL server, and how long a statement may take that a request waits for. */
interface ServerLocation {
  url: string;
  statementTimeoutMs?: number;
}

/** Where the rows are: a PostgreSQL server, or PostgreSQL in this process with its files in `dataDir`. */
export type DatabaseLocation = ServerLocation | { dataDir: string };

/** An open database. Close it, or an embedded one keeps the process alive. */
export interface Database extends AsyncDisposable {
  orm: MikroORM;
  db: Db;
  /** Who holds its connections, and who waits for one. */
  turns: TurnsByNode;
  isEmbedded: boolean;
  /** Of the connections to a server; an embedded one has none. */
  metrics: readonly Metric[];
  /** Rejects where it cannot be asked, or where the disk of an embedded one is too full to write. */
  checkHealth(): Promise<void>;
}

/** The folder of the migrations. */
export const MIGRATIONS = resolve(import.meta.dirname, '../migrations');
const POOL_SIZE = 10;
/** Connections that the statements of nodes leave to what is of no node: logins, consumers, audit records. */
const KEPT = 2;
const WAITING = 2_000;
const WAIT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5_000;

/** The tables that a node's token can reach, and how (architecture: tenancy). */
const scopes: TableScopes = {
  tenant: new Set(entities.filter((entity) => 'nodeId' in entity.properties).map((entity) => entity.meta.tableName)),
  global: new Set(['chains', 'networks', 'network_currencies']),
};

/**
 * Opens the database. Timestamps come as PostgreSQL's text in UTC and 64-bit integers as decimal strings, from both
 * drivers alike.
 */
export async function openDatabase(location: DatabaseLocation): Promise<Database> {
  let pool: StatementPool | undefined;
  const places = 'url' in location ? { atOnce: POOL_SIZE, kept: KEPT } : { atOnce: 1, kept: 0 };
  // A long statement gives nothing back when another node comes: nothing is lent.
  const limits = { ...places, waiting: WAITING, waitMs: WAIT_MS, lends: false };
  const turns = new TurnsByNode({ ...limits, refusal: serviceUnavailable });
  const observed = new DatabaseMetrics(POOL_SIZE, turns);
  const onPoolCreated = (created: ServerPool) => {
    pool = created;
    observed.watch(created);
    releaseDeadConnections(created);
    const timeoutMs = 'url' in location ? location.statementTimeoutMs : undefined;
    if (timeoutMs !== undefined) limitStatements(created, { timeoutMs, isWaitedFor });
  };
  const orm = 'url' in location ? await openServer(location.url, onPoolCreated) : await openEmbedded(location.dataDir);
  const connections = { turns, timedOut: gatewayTimeout };
  const db = new TenantDb<Tables>(orm.em as SqlEntityManager, scopes, connections, () => pool);
  return {
    orm,
    db,
    turns,
    isEmbedded: 'dataDir' in location,
    metrics: 'dataDir' in location ? [] : observed.metrics,
    async checkHealth() {
      if ('dataDir' in location) checkRoom(location.dataDir);
      await db.unscoped('health').raw((sql) => sql`select 1`);
    },
    [Symbol.asyncDispose]: () => orm.close(true),
  };
}

const shared = {
  entities,
  discovery: { warnWhenNoEntities: false },
  migrations: { path: MIGRATIONS, pathTs: MIGRATIONS, glob: 'migration-*.ts', snapshot: false, silent: true },
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

/** The URL with UTC as the last of its options: of two for the same setting the last one holds. */
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
    onCreateConnection: async (connection) => refuseWithoutRoom(connection as Executor, () => checkRoom(dataDir)),
    driverOptions: {
      dataDir,
      startParams: [...PGlite.defaultStartParams, '-c', 'shared_buffers=16MB', '-c', 'timezone=UTC'],
      parsers: { 20: (value: string) => value, 17: (value: string) => Buffer.from(value.slice(2), 'hex') },
    },
  });
}

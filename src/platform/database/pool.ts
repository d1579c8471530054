import { finished, Writable } from 'node:stream';
import { finished as finishes } from 'node:stream/promises';
import type { PostgresPool, PostgresPoolClient } from 'kysely';
import { from } from 'pg-copy-streams';
import type { Metric } from 'prom-client';
import { durations, gauge, gauges } from '../../lib/meters.ts';
import type { Semaphore } from '../../lib/semaphore.ts';
import { sqlState } from '../errors.ts';
import type { WaitingRequest } from '../held-memory.ts';
import type { StatementConnection, StatementPool } from './database.ts';
import { READ_ONLY, type ServerConnection, type ServerWatch } from './server-watch.ts';

type Query = (text: unknown, ...args: unknown[]) => unknown;

/** A connection of the driver `pg`, with the members that are used here. */
interface PoolClient extends Pick<StatementConnection, 'release'>, ServerConnection {
  query: Query;
  end(): Promise<void>;
  connection: { stream: { destroy(): void } };
}

/** The connection pool of the driver `pg`. */
export interface ServerPool extends StatementPool {
  readonly totalCount: number;
  readonly idleCount: number;
  connect(): Promise<PoolClient & StatementConnection>;
  on(event: 'connect', listener: (client: PoolClient) => void): unknown;
  /** Resolves when each connection has been given back and closed. */
  end(): Promise<void>;
}

/** Replaces the method `query` by what `wrap` makes of it, in each connection that the pool opens from now on. */
function wrapQueries(pool: ServerPool, wrap: (query: Query, client: PoolClient) => Query): void {
  pool.on('connect', (client) => {
    client.query = wrap(client.query.bind(client), client);
  });
}

const OPERATIONS: ReadonlySet<string> = new Set([
  ...['select', 'insert', 'update', 'delete', 'with', 'copy'],
  ...['begin', 'commit', 'rollback', 'savepoint', 'release'],
]);
const FIRST_WORD = /^\s*([a-z]+)/i;

/** The metrics of the connections to PostgreSQL and of the statements that run on them. */
export class DatabaseMetrics {
  readonly metrics: readonly Metric[];
  readonly #statements = durations({
    name: 'db_client_operation_duration_seconds',
    help: 'Duration of PostgreSQL statements, by first keyword and SQLSTATE of their error.',
    labelNames: ['db_operation_name', 'error_type'],
  });
  /** The driver's pool; until the first statement creates it, one without connections. */
  #pool: Pick<ServerPool, 'totalCount' | 'idleCount'> = { totalCount: 0, idleCount: 0 };

  /** Takes the largest number of connections, and the semaphore with a permit for each of them. */
  constructor(max: number, connections: Pick<Semaphore, 'waiting'>) {
    this.metrics = [
      this.#statements,
      gauges({
        // OpenTelemetry calls it `db_client_connection_count`, but Prometheus reserves that suffix for histograms.
        name: 'db_client_connections',
        help: 'Connections to PostgreSQL, by state.',
        labelNames: ['db_client_connection_state'],
        read: () => {
          const { totalCount, idleCount } = this.#pool;
          return [
            [{ db_client_connection_state: 'idle' }, idleCount],
            [{ db_client_connection_state: 'used' }, totalCount - idleCount],
          ];
        },
      }),
      gauge('db_client_connection_max', 'Maximum number of connections to PostgreSQL.', () => max),
      gauge(
        'db_client_connection_pending_requests',
        'Statements and transactions waiting for a connection to PostgreSQL.',
        () => connections.waiting(),
      ),
    ];
  }

  /**
   * Measures the connections of a pool, and the statements that run on those opened from now on, of which it tells
   * `servers`. A connection to a server that takes no writes any more is closed.
   */
  watch(pool: ServerPool, servers: ServerWatch): void {
    this.#pool = pool;
    wrapQueries(pool, (query, client) => (text, ...args) => {
      const startedTick = performance.now();
      servers.note(client, 1, startedTick);
      const endStatement = (error?: unknown) => {
        const endedTick = performance.now();
        servers.note(client, -1, endedTick);
        if (error && sqlState(error) === READ_ONLY) client.end().catch(() => undefined);
        this.#observe(text, error, (endedTick - startedTick) / 1_000);
      };
      if (text instanceof Writable) {
        finished(text, endStatement);
        return query(text, ...args);
      }
      const last = args.at(-1);
      const isCalled = typeof last === 'function';
      // Without a callback the driver makes three promises, and a function that V8 allocates as old.
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      const observed = (error: unknown, answer: unknown) => {
        endStatement(error);
        if (isCalled) last(error, answer);
        else if (error) reject(error);
        else resolve(answer);
      };
      query(text, ...(isCalled ? args.slice(0, -1) : args), observed);
      return promise;
    });
  }

  #observe(statement: unknown, error: unknown, seconds: number): void {
    const errorType = error ? (sqlState(error) ?? 'connection') : '';
    this.#statements.observe({ db_operation_name: operationOf(statement), error_type: errorType }, seconds);
  }
}

/** Returns the first word of a statement, in lower case, if it is in `OPERATIONS`; otherwise `other`. */
function operationOf(statement: unknown): string {
  const text = typeof statement === 'object' && statement !== null && 'text' in statement ? statement.text : statement;
  const word = typeof text === 'string' ? FIRST_WORD.exec(text)?.[1]?.toLowerCase() : undefined;
  return word !== undefined && OPERATIONS.has(word) ? word : 'other';
}

/**
 * Makes a pool close the connections on which `begin` or `rollback` fails, and replace them. The driver notices a lost
 * server too late: the next transaction would get the same connection. A failed `rollback` counts as successful, since
 * PostgreSQL rolls back a lost session, and the error that caused the loss is the one to report.
 */
export function closeDeadConnections(pool: ServerPool): void {
  wrapQueries(pool, (query, client) => (text, ...args) => {
    const result = query(text, ...args);
    if (!(result instanceof Promise) || (text !== 'begin' && text !== 'rollback')) return result;
    return result.catch((error) => {
      client.end().catch(() => undefined);
      if (text === 'begin') throw error;
      return { rows: [] };
    });
  });
}

/**
 * The class of queries of the driver `pg`, whose constructor takes what a connection's `query` takes, with the members
 * that are used here.
 */
export type DriverQueryClass = new (
  ...statement: unknown[]
) => {
  handleDataRow(row: { length: number }): void;
  handleError(error: unknown, connection: unknown): void;
};

/**
 * Counts the rows of each statement that a request waits for, as they arrive. If no more of them may be read, the
 * connection is closed: the server would send the rest of the result, however long it is.
 */
export function countRows(
  pool: ServerPool,
  Query: DriverQueryClass,
  requestOf: (statement: unknown) => WaitingRequest | undefined,
): void {
  class CountedQuery extends Query {
    readonly #client: PoolClient;
    readonly #request: WaitingRequest;
    #hasFailed = false;
    #bytes = 0;

    constructor(client: PoolClient, request: WaitingRequest, ...statement: unknown[]) {
      super(...statement);
      this.#client = client;
      this.#request = request;
    }

    override handleDataRow(row: { length: number }): void {
      if (this.#hasFailed) return;
      this.#bytes += row.length;
      const { held, isReading = false } = this.#request;
      const error = held.add(row.length, isReading);
      if (!error) {
        super.handleDataRow(row);
        return;
      }
      held.subtract(this.#bytes);
      this.handleError(error, this.#client.connection);
      this.#client.end().catch(() => undefined);
      // Otherwise it would end after the rest of the result.
      this.#client.connection.stream.destroy();
    }

    override handleError(error: unknown, connection: unknown): void {
      if (!this.#hasFailed) super.handleError(error, connection);
      this.#hasFailed = true;
    }
  }

  wrapQueries(pool, (query, client) => (statement, ...args) => {
    const request = statement instanceof Writable ? undefined : requestOf(statement);
    return request ? query(new CountedQuery(client, request, statement, ...args)) : query(statement, ...args);
  });
}

/** How long a schema migration waits for a lock, in milliseconds: the statements of others queue behind it meanwhile. */
const LOCK_TIMEOUT_MS = 200;

/**
 * Returns a pool's connections for schema migrations. In their transactions a statement that gets no lock in time fails.
 * The ids of their backends are added to `backends`.
 */
export function withLockTimeout(pool: ServerPool, backends: Set<number>): PostgresPool {
  return {
    async connect() {
      const client = await pool.connect();
      backends.add(client.processID ?? 0);
      const begin = () => client.query(`begin; set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
      const query: Query = (text, ...rest) => (text === 'begin' ? begin() : client.query(text, ...rest));
      return { query: query as PostgresPoolClient['query'], release: () => client.release() };
    },
    end: () => pool.end(),
    options: {},
  };
}

/**
 * Limits each statement for which `hasDeadline` returns true to `timeoutMs`, after which it fails with SQLSTATE 57014;
 * all others have the server's default limit. `begin` decides for its whole transaction. The limit is a setting of the
 * session, changed only before a statement that needs the other value.
 */
export function limitStatements(
  pool: ServerPool,
  { timeoutMs, hasDeadline }: { timeoutMs: number; hasDeadline(statement: unknown): boolean },
): void {
  wrapQueries(pool, (query) => {
    let isLimited = false;
    let isInTransaction = false;
    return (statement, ...args) => {
      const isSet = isInTransaction || hasDeadline(statement) === isLimited;
      if (statement === 'begin') isInTransaction = true;
      else if (statement === 'commit' || statement === 'rollback') isInTransaction = false;
      const run = () => query(statement, ...args);
      if (isSet) return run();
      isLimited = !isLimited;
      // If `set` fails because the connection is lost, the statement after it fails as well.
      return Promise.resolve(query(`set statement_timeout to ${isLimited ? timeoutMs : 'default'}`)).then(run, run);
    };
  });
}

/** Runs a `copy … from stdin` on a connection of the pool, with `rows` in the format of the statement. */
export async function copyFrom(pool: ServerPool, statement: string, rows: Buffer): Promise<void> {
  const client = await pool.connect();
  const copy = from(statement);
  client.query(copy);
  copy.end(rows);
  const error: unknown = await finishes(copy).catch((fault) => fault);
  // An error that the server tells leaves the connection as it was.
  client.release(sqlState(error) === undefined ? error : undefined);
  if (error !== undefined) throw error;
}

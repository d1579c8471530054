import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type ColumnType,
  type Compilable,
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  Kysely,
  PostgresAdapter,
  type QueryCompiler,
  type QueryResult,
  sql,
} from 'kysely';
import { type FormedQuery, PreparedQueries } from '../../lib/fast/prepared-query.ts';
import { type Semaphore, UNIDENTIFIED } from '../../lib/semaphore.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import type { Tables } from '../../tables/tables.ts';
import { isServerAway, serviceUnavailable, sqlState } from '../errors.ts';
import { GIVEN_UP, MAX_WAIT_MS, type WaitingRequest, waitingRequest } from '../held-memory.ts';
import { NodeScope, NodeScopeError, refusal, type TableScopes } from './node-scope.ts';

/**
 * Returns a Kysely dialect whose compiler scopes every statement to one tenant, and whose driver runs only statements
 * from that compiler. A plugin would not do, since `withoutPlugins` can remove it.
 */
export function scopedDialect(
  scope: NodeScope,
  unscoped: {
    compile: QueryCompiler['compileQuery'];
    runCompiled<Row>(query: CompiledQuery): Promise<QueryResult<Row>>;
  },
): Dialect {
  const compiled = new WeakSet<CompiledQuery>();
  const connection: DatabaseConnection = {
    async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
      if (!compiled.has(query)) throw new NodeScopeError('only queries built by this handle are allowed in it');
      return unscoped.runCompiled(query);
    },
    streamQuery: () => refuse('a stream'),
  };
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => ({
      init: async () => undefined,
      acquireConnection: async () => connection,
      releaseConnection: async () => undefined,
      beginTransaction: async () => refuse('a separate transaction'),
      commitTransaction: async () => refuse('a separate transaction'),
      rollbackTransaction: async () => refuse('a separate transaction'),
      destroy: async () => undefined,
    }),
    createIntrospector: () => refuse('introspection'),
    createQueryCompiler: () => ({
      compileQuery(node, queryId) {
        const query = unscoped.compile(scope.apply(node), queryId);
        compiled.add(query);
        return query;
      },
    }),
  };
}

function refuse(what: string): never {
  throw refusal(what);
}

/** A query that has not run yet, such as any Kysely builder. */
interface Unexecuted<Row> {
  execute(): Promise<Row[]>;
}

/** The types of the tables in a tenant's queries: `node_id` is optional in an insert and cannot be updated. */
export type ScopedTables = {
  [Name in keyof Tables]: 'node_id' extends keyof Tables[Name]
    ? Omit<Tables[Name], 'node_id'> & { node_id: ColumnType<string, string | undefined, never> }
    : Tables[Name];
};

/** The query builder of a tenant's queries. */
export type ScopedKysely = Kysely<ScopedTables>;

/** The tag of raw SQL, which a database handle passes to the builder of a statement. */
export type SqlTag = typeof sql;

/** A database handle for statements that belong to no tenant. */
export interface UnscopedDatabase {
  /** Runs a query unchanged. */
  run<Row>(build: (k: Kysely<Tables>) => Unexecuted<Row>): Promise<Row[]>;
  /** Runs a raw SQL statement, for what Kysely's builders cannot express. */
  raw<Row>(build: (text: SqlTag) => ReturnType<typeof sql<Row>>): Promise<Row[]>;
  /**
   * Inserts lines of PostgreSQL's `COPY` in the format `text`, without their line feeds: all or none. It joins no
   * transaction.
   */
  copy(table: keyof Tables & string, columns: readonly string[], lines: readonly Buffer[]): Promise<void>;
  /** Does so with the rows and the target of a `COPY` statement. */
  copyInto: CopyInto;
  /** Runs a statement that has been compiled before, here or by another process. */
  compiled<Row = unknown>(text: string, parameters: readonly unknown[]): Promise<QueryResult<Row>>;
}

/** A statement that each connection prepares once, under its name; without one, PostgreSQL plans it each time. */
interface NamedStatement {
  name: string;
  text: string;
  values: readonly unknown[];
  /**
   * The request that waits for it. It is stated here because the pool may pass the statement to a connection in the
   * async context of another one.
   */
  request: WaitingRequest | undefined;
}

/**
 * A pool of connections that keep prepared statements by name (PostgreSQL's extended protocol). The embedded database
 * has none: on its only connection, a statement that bypasses the query builder's queue would land in another's
 * transaction.
 */
export interface StatementPool extends Pick<StatementConnection, 'query'> {
  connect(): Promise<StatementConnection>;
}

/** A connection of the pool. */
export interface StatementConnection {
  query<Row>(statement: NamedStatement): Promise<{ rows: Row[] }>;
  /** Returns the connection to the pool or, after an error, closes it. */
  release(error?: unknown): void;
}

/** Runs `work` with one connection of the pool, which sends its statements without waiting for the answers before. */
async function onOneConnection<Result>(
  pool: StatementPool,
  work: (connection: StatementConnection) => Promise<Result>,
): Promise<Result> {
  const connection = await pool.connect();
  try {
    const result = await work(connection);
    connection.release();
    return result;
  } catch (error) {
    // Other statements of the work may still run on it.
    connection.release(error);
    throw error;
  }
}

/** Inserts `rows`, in the format `text` of `COPY`, into `target`, a table with its columns. */
export type CopyInto = (target: string, rows: Buffer<ArrayBuffer>) => Promise<void>;

const QUERY_CANCELED = '57014';
const LINE_FEED = Buffer.from('\n');

/** Returns the request that waits for a statement, as passed to a connection. */
export function requestOf(statement: unknown): WaitingRequest | undefined {
  const isNamed = typeof statement === 'object' && statement !== null && 'request' in statement;
  return isNamed ? (statement as NamedStatement).request : waitingRequest.getStore();
}

/**
 * The only access to the database's query builders and raw SQL. Inside a transaction of the current async context, all
 * statements join it and never use a second connection: the embedded database has only one. Work that a request waits
 * for uses its tenant's share of the connections; for all other work, some connections are reserved.
 */
export class Db {
  readonly #deps;
  readonly #transaction = new AsyncLocalStorage<Kysely<Tables>>();
  /** The connection that the prepared queries of `together` share. */
  readonly #shared = new AsyncLocalStorage<StatementConnection>();
  readonly #prepared = new PreparedQueries<ScopedKysely>({
    scoped: (nodeId) => this.#scopedKysely(nodeId),
    run: (query, nodeId, name) => this.#runCompiled(query, nodeId, name),
  });

  constructor(deps: {
    /** The unscoped query builder. */
    client: Kysely<Tables>;
    scopes: TableScopes;
    /** The semaphore with a permit for each connection, keyed by tenant. */
    connections: Semaphore;
    /** Makes the error for a statement that took longer than a request may wait. */
    timedOut(cause: unknown): Error;
    copyInto: CopyInto;
    /** The driver's pool; without one, prepared queries run like all others. */
    pool: StatementPool | undefined;
  }) {
    this.#deps = deps;
  }

  /**
   * Returns a database handle scoped to one tenant: rows of other tenants do not exist for it. It runs a query with
   * `node_id` added to every tenant table in it; a query that has raw SQL is rejected with a NodeScopeError.
   */
  forNode(nodeId: string): { run<Row>(build: (k: ScopedKysely) => Unexecuted<Row>): Promise<Row[]> } {
    const scoped = this.#scopedKysely(nodeId);
    return { run: (build) => build(scoped).execute() };
  }

  /**
   * Returns a query for one tenant's rows that is compiled once for each form of its argument, for reads that happen
   * with every request. `build` may depend on booleans, on nulls and on which members are set. All other values are
   * placeholders for it.
   */
  prepareForms<Row, Given extends object>(
    build: (k: ScopedKysely, argument: Given) => Compilable<Row>,
    isSkewed?: (argument: Given) => boolean,
  ): FormedQuery<Row, Given> {
    return this.#prepared.byShape(build, isSkewed);
  }

  /**
   * Runs work whose prepared queries share a connection: PostgreSQL gets those that it begins at once without a wait
   * between them, and answers them in their order. Inside a transaction and on the embedded database they run as if
   * they were alone.
   */
  together<Result>(nodeId: string, work: () => Promise<Result>): Promise<Result> {
    const pool = this.#transaction.getStore() ? undefined : this.#deps.pool;
    if (!pool) return work();
    return this.#reading(() => onOneConnection(pool, (connection) => this.#shared.run(connection, work)), nodeId);
  }

  /** Returns an unscoped database handle. `_reason` documents why no tenant applies; a test lists the callers. */
  unscoped(_reason: string): UnscopedDatabase {
    return {
      run: (build) => this.#withConnection(() => build(this.#kysely()).execute()),
      raw: (build) => this.#withConnection(async () => (await build(sql).execute(this.#kysely())).rows),
      copy: (table, columns, lines) =>
        this.#copy(`${table} (${columns.join(', ')})`, Buffer.concat(lines.flatMap((line) => [line, LINE_FEED]))),
      copyInto: (target, rows) => this.#copy(target, rows),
      compiled: <Row>(text: string, parameters: readonly unknown[]) =>
        this.#withConnection(() =>
          this.#kysely().executeQuery<Row>(CompiledQuery.raw(text, [...parameters]) as CompiledQuery<Row>),
        ),
    };
  }

  /** Whether a transaction of the current async context is open. */
  get isInTransaction(): boolean {
    return this.#transaction.getStore() !== undefined;
  }

  /** Runs `work` in the current transaction, or else in a new one. An error rolls it back and is rethrown. */
  transaction<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#transaction.getStore()) return work();
    return this.#withConnection(() =>
      this.#deps.client.transaction().execute((transaction) => this.#transaction.run(transaction, work)),
    );
  }

  async #copy(target: string, rows: Buffer<ArrayBuffer>): Promise<void> {
    if (this.#transaction.getStore()) throw new Error('a copy cannot join a transaction');
    await this.#withConnection(() => this.#deps.copyInto(target, rows));
  }

  /**
   * Runs reads like `#withConnection`, but when there is room for their rows. They are repeated if there is none left
   * meanwhile, so that no connection is held by what waits for room.
   */
  #reading<Result>(reads: () => Promise<Result>, nodeId: string): Promise<Result> {
    const waiting = this.#transaction.getStore() ? undefined : waitingRequest.getStore();
    if (!waiting) return this.#withConnection(reads, nodeId);
    return waiting.held.read((mayRead) =>
      waitingRequest.run({ ...waiting, isReading: true }, () =>
        this.#withConnection(() => (mayRead() ? reads() : Promise.reject(GIVEN_UP)), nodeId),
      ),
    );
  }

  /**
   * Runs `work` with a permit for a connection; inside a transaction, the transaction already holds it. A request without
   * a tenant waits 10 s at most, even if the server does not answer.
   */
  async #withConnection<Result>(work: () => Promise<Result>, nodeId?: string): Promise<Result> {
    if (this.#transaction.getStore()) return work();
    const waiting = waitingRequest.getStore();
    const { connections, timedOut } = this.#deps;
    try {
      if (!waiting) return await connections.run(undefined, work);
      const { held } = waiting;
      const owner = held.nodeId;
      const running = connections.run(owner ?? nodeId ?? UNIDENTIFIED, () => held.during(work));
      return await (owner === undefined ? withTimeout(running, MAX_WAIT_MS, serviceUnavailable) : running);
    } catch (error) {
      if (isServerAway(error)) Object.assign(error, { store: 'database' });
      throw waiting?.hasDeadline && sqlState(error) === QUERY_CANCELED ? timedOut(error) : error;
    }
  }

  async #runCompiled<Row>(query: CompiledQuery<Row>, nodeId: string, name?: string): Promise<Row[]> {
    const isAlone = this.#transaction.getStore() === undefined;
    const shared = isAlone && name !== undefined ? this.#shared.getStore() : undefined;
    const run = (): Promise<{ rows: Row[] }> => {
      const pool = isAlone ? (shared ?? this.#deps.pool) : undefined;
      if (!pool || name === undefined) return this.#kysely().executeQuery(query);
      const { sql: text, parameters: values } = query;
      return pool.query<Row>({ name, text, values, request: waitingRequest.getStore() });
    };
    const { rows } = await (shared ? run() : this.#reading(run, nodeId));
    return rows;
  }

  #scopedKysely(nodeId: string): ScopedKysely {
    const dialect = scopedDialect(new NodeScope(nodeId, this.#deps.scopes), {
      compile: (statement, queryId) => this.#kysely().getExecutor().compileQuery(statement, queryId),
      runCompiled: <Row>(query: CompiledQuery) => {
        const run = () => this.#kysely().executeQuery(query as CompiledQuery<Row>);
        return query.query.kind === 'SelectQueryNode' ? this.#reading(run, nodeId) : this.#withConnection(run, nodeId);
      },
    });
    return new Kysely({ dialect });
  }

  #kysely(): Kysely<Tables> {
    return this.#transaction.getStore() ?? this.#deps.client;
  }
}

/** What services that read or write rows by the time depend on. */
export interface DbAndClock {
  db: Db;
  nowMs(): number;
}

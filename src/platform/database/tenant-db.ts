import { AsyncLocalStorage } from 'node:async_hooks';
import type { SqlEntityManager } from '@mikro-orm/sql';
import {
  type ColumnType,
  type Compilable,
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  Kysely,
  PostgresAdapter,
  type QueryCompiler,
  type QueryResult,
  sql,
} from 'kysely';
import type { Semaphore } from '../../lib/semaphore.ts';
import { NodeScope, NodeScopeError, refusal, type TableScopes } from './node-scope.ts';
import {
  type FormedQuery,
  filled,
  nodePlaceholder,
  type PreparedQuery,
  placeholder,
  takeApart,
} from './prepared-query.ts';
import { sqlState } from './sql-state.ts';

/** Compiles and runs queries as they are, for the scoped dialect above it. */
interface Unscoped {
  compile: QueryCompiler['compileQuery'];
  runCompiled<Row>(query: CompiledQuery): Promise<QueryResult<Row>>;
}

/**
 * Returns a dialect of Kysely whose compiler scopes every statement to the tenant, and whose driver runs nothing but what
 * that compiler has made. A plugin could be taken off by `withoutPlugins`; a compiler and a driver cannot.
 */
export function scopedDialect(scope: NodeScope, unscoped: Unscoped): Dialect {
  const compiled = new WeakSet<CompiledQuery>();
  const connection: DatabaseConnection = {
    async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
      if (!compiled.has(query)) throw new NodeScopeError("only its own queries pass the tenant's door");
      return unscoped.runCompiled(query);
    },
    streamQuery: () => refuse('a stream'),
  };
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => driverOf(connection),
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

function driverOf(connection: DatabaseConnection): Driver {
  return {
    init: async () => undefined,
    acquireConnection: async () => connection,
    releaseConnection: async () => undefined,
    beginTransaction: async () => refuse('a transaction of its own'),
    commitTransaction: async () => refuse('a transaction of its own'),
    rollbackTransaction: async () => refuse('a transaction of its own'),
    destroy: async () => undefined,
  };
}

function refuse(what: string): never {
  throw refusal(what);
}

/** A query that has not run yet: any Kysely builder. */
interface Unexecuted<Row> {
  execute(): Promise<Row[]>;
}

/** The tables as statements of a tenant see them: `node_id` need not be given, and cannot be changed. */
export type Scoped<Tables> = {
  [Name in keyof Tables]: 'node_id' extends keyof Tables[Name]
    ? Omit<Tables[Name], 'node_id'> & { node_id: ColumnType<string, string | undefined, never> }
    : Tables[Name];
};

/** Runs queries of one tenant. */
interface TenantDatabase<Tables> {
  /** Runs the query with `node_id` added to every tenant table in it; raw text is refused. */
  run<Row>(build: (k: Kysely<Scoped<Tables>>) => Unexecuted<Row>): Promise<Row[]>;
}

/** Runs statements that belong to no tenant. */
export interface UnscopedDatabase<Tables> {
  /** Runs the query as it is. */
  run<Row>(build: (k: Kysely<Tables>) => Unexecuted<Row>): Promise<Row[]>;
  /** Runs a raw statement: the only place for what Kysely's builders cannot say. */
  raw<Row>(build: (text: typeof sql) => ReturnType<typeof sql<Row>>): Promise<Row[]>;
}

/** A compiled query and the name that connections prepare it under. */
interface Prepared<Row> {
  name: string;
  query: CompiledQuery<Row>;
}

/** A statement that a connection prepares once. */
interface NamedStatement {
  name: string;
  text: string;
  values: readonly unknown[];
  /** Whether it is limited in time: a pool hands it to a connection in the async context of another statement. */
  hasDeadline: boolean;
}

/**
 * Connections that keep prepared statements by name (PostgreSQL's extended protocol). The embedded database has none:
 * on its one connection a statement past the query builder's queue would land in another's transaction.
 */
export interface StatementPool {
  query<Row>(statement: NamedStatement): Promise<{ rows: Row[] }>;
}

/** What bounds the use of connections. */
interface ConnectionLimits {
  /** A permit for each connection, by tenant. */
  connections: Semaphore;
  /** Makes the error of a statement that took longer than a request may wait for. */
  timedOut(cause: unknown): Error;
}

/** Returns the tenant of a request, as soon as it is known. */
type NodeOf = () => string | undefined;

const QUERY_CANCELED = '57014';

interface WaitingRequest {
  nodeOf: NodeOf;
  /** Whether its statements are limited in time. */
  hasDeadline: boolean;
}

/** The request that waits for the work of the current async context. */
const waitingRequest = new AsyncLocalStorage<WaitingRequest | undefined>();

/** Returns whether a statement, as a connection gets it, is limited in time: a request waits for it. */
export function hasDeadline(statement: unknown): boolean {
  if (typeof statement === 'object' && statement !== null && 'hasDeadline' in statement) {
    return statement.hasDeadline === true;
  }
  return waitingRequest.getStore()?.hasDeadline === true;
}

/** Runs work that a request waits for: its statements are limited in time and take the tenant's share of the connections. */
export function inRequest<Result>(nodeOf: NodeOf, work: () => Result): Result {
  return waitingRequest.run({ nodeOf, hasDeadline: true }, work);
}

/** Runs work whose statements are not limited in time; those of a request still take the tenant's share of the connections. */
export function withoutDeadline<Result>(work: () => Result): Result {
  const waiting = waitingRequest.getStore();
  return waitingRequest.run(waiting && { ...waiting, hasDeadline: false }, work);
}

/** Runs work that no request waits for, though one may have begun it. */
export function outsideRequest<Result>(work: () => Result): Result {
  return waitingRequest.run(undefined, work);
}

/**
 * The only way to the database's query builders and raw SQL. All statements join the transaction of the current async
 * context and never take a second connection inside of one: the embedded database has only one. Work that a request waits
 * for takes its tenant's share of the connections; all other work has connections that no tenant can take.
 */
export class TenantDb<Tables extends object> {
  readonly #em: SqlEntityManager;
  readonly #scopes: TableScopes;
  readonly #transaction = new AsyncLocalStorage<SqlEntityManager>();
  readonly #limits: ConnectionLimits;
  readonly #pool: () => StatementPool | undefined;
  #prepared = 0;

  /** `pool` returns the driver's pool once there is one; without it prepared reads run like all other queries. */
  constructor(
    em: SqlEntityManager,
    scopes: TableScopes,
    limits: ConnectionLimits,
    pool: () => StatementPool | undefined = () => undefined,
  ) {
    this.#em = em;
    this.#scopes = scopes;
    this.#limits = limits;
    this.#pool = pool;
  }

  /** Returns the database of one tenant: rows of other tenants do not exist in it. */
  forNode(nodeId: string): TenantDatabase<Tables> {
    const scoped = this.#scopedKysely(nodeId);
    return { run: (build) => this.#withConnection(() => build(scoped).execute(), nodeId) };
  }

  /**
   * Compiles a read of tenants once, at its first run: for what is read with every request. `value(name)` stands for the
   * value that each run gives.
   */
  prepare<Row, Name extends string>(
    build: (k: Kysely<Scoped<Tables>>, value: <Value>(name: Name) => Value) => Compilable<Row>,
  ): PreparedQuery<Row, Name> {
    let prepared: Prepared<Row> | undefined;
    return {
      run: (nodeId, values) => {
        prepared ??= this.#prepare((k) => build(k, placeholder));
        return this.#runPrepared(prepared, nodeId, values);
      },
    };
  }

  /**
   * Compiles a read of tenants once for each form of its argument: `build` may look at booleans, at null and at which
   * members there are. Everything else is a value, which it cannot know.
   */
  prepareForms<Row, Given extends object>(
    build: (k: Kysely<Scoped<Tables>>, given: Given) => Compilable<Row>,
  ): FormedQuery<Row, Given> {
    const forms = new Map<string, Prepared<Row>>();
    return {
      run: (nodeId, given) => {
        const { form, values, template } = takeApart(given);
        let prepared = forms.get(form);
        if (!prepared) {
          prepared = this.#prepare((k) => build(k, template()));
          forms.set(form, prepared);
        }
        return this.#runPrepared(prepared, nodeId, values);
      },
    };
  }

  /** Returns the database for rows of no tenant. `_reason` tells the reader why no tenant applies; a test pins the callers. */
  unscoped(_reason: string): UnscopedDatabase<Tables> {
    return {
      run: (build) => this.#withConnection(() => build(this.#kysely()).execute()),
      raw: (build) => this.#withConnection(async () => (await build(sql).execute(this.#kysely())).rows),
    };
  }

  /** Runs `work` in a transaction, or in the current one. An error rolls it back and is rethrown. */
  transaction<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#transaction.getStore()) return work();
    return this.#withConnection(() => this.#em.fork().transactional((em) => this.#transaction.run(em, work)));
  }

  /** Runs `work` while holding a connection; within a transaction that is the transaction's. */
  async #withConnection<Result>(work: () => Promise<Result>, nodeId?: string): Promise<Result> {
    if (this.#transaction.getStore()) return work();
    const waiting = waitingRequest.getStore();
    const { connections, timedOut } = this.#limits;
    try {
      return await connections.run(waiting && (waiting.nodeOf() ?? nodeId), work);
    } catch (error) {
      throw waiting?.hasDeadline && sqlState(error) === QUERY_CANCELED ? timedOut(error) : error;
    }
  }

  #prepare<Row>(build: (k: Kysely<Scoped<Tables>>) => Compilable<Row>): Prepared<Row> {
    this.#prepared += 1;
    return { name: `portcullis_${this.#prepared}`, query: build(this.#scopedKysely(nodePlaceholder())).compile() };
  }

  async #runPrepared<Row>(
    { name, query }: Prepared<Row>,
    nodeId: string,
    values: Readonly<Record<string, unknown>>,
  ): Promise<Row[]> {
    const run = filled(query, nodeId, values);
    return this.#withConnection(async () => {
      const pool = this.#transaction.getStore() ? undefined : this.#pool();
      const { rows } = pool
        ? await pool.query<Row>({ name, text: run.sql, values: run.parameters, hasDeadline: hasDeadline(undefined) })
        : await this.#kysely().executeQuery(run);
      return rows;
    }, nodeId);
  }

  #scopedKysely(nodeId: string): Kysely<Scoped<Tables>> {
    const dialect = scopedDialect(new NodeScope(nodeId, this.#scopes), {
      compile: (statement, queryId) => this.#kysely().getExecutor().compileQuery(statement, queryId),
      runCompiled: <Row>(query: CompiledQuery) => this.#kysely().executeQuery(query as CompiledQuery<Row>),
    });
    return new Kysely({ dialect });
  }

  #kysely(): Kysely<Tables> {
    const client: unknown = (this.#transaction.getStore() ?? this.#em).getKysely();
    return client as Kysely<Tables>;
  }
}

import { AsyncLocalStorage } from 'node:async_hooks';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { type ColumnType, type Compilable, type CompiledQuery, Kysely, sql } from 'kysely';
import { NodeScope, type TableScopes } from './node-scope.ts';
import {
  type FormedQuery,
  filled,
  nodePlaceholder,
  type PreparedQuery,
  placeholder,
  takeApart,
} from './prepared-query.ts';
import { scopedDialect } from './scoped-dialect.ts';

/** A query that has not run yet: any Kysely builder, or a raw fragment bound to the door that gave it. */
interface Unexecuted<Row> {
  execute(): Promise<Row[]>;
}

/** The tables as the tenant's door shows them: it gives `node_id` itself. */
export type Scoped<Tables> = {
  [Name in keyof Tables]: 'node_id' extends keyof Tables[Name]
    ? Omit<Tables[Name], 'node_id'> & { node_id: ColumnType<string, string | undefined, never> }
    : Tables[Name];
};

/** The tenant's door: every query is scoped to one node. */
export interface NodeDoor<Tables> {
  /** Runs the query with `node_id` added to every tenant table in it; raw text is refused. */
  run<Row>(build: (k: Kysely<Scoped<Tables>>) => Unexecuted<Row>): Promise<Row[]>;
}

/** The door for statements that belong to no tenant. */
export interface UnscopedDoor<Tables> {
  /** Runs the query as it is. */
  run<Row>(build: (k: Kysely<Tables>) => Unexecuted<Row>): Promise<Row[]>;
  /** Runs a raw statement: the only place for what Kysely's builders cannot say. */
  raw<Row>(build: (text: typeof sql) => ReturnType<typeof sql<Row>>): Promise<Row[]>;
}

/** A query that has been compiled, by the name that connections keep it under. */
interface Prepared<Row> {
  name: string;
  query: CompiledQuery<Row>;
}

/**
 * Connections that keep prepared statements by name (PostgreSQL's extended protocol). The embedded database has none:
 * on its one connection a statement past the query builder's queue would land in another's transaction.
 */
export interface StatementPool {
  query<Row>(statement: { name: string; text: string; values: readonly unknown[] }): Promise<{ rows: Row[] }>;
}

/**
 * The only way to the database's query builders and raw SQL. Both doors use the transaction of the current async
 * context and never open a second connection inside one: the embedded database has only one.
 */
export class TenantDb<Tables extends object> {
  readonly #em: SqlEntityManager;
  readonly #scopes: TableScopes;
  readonly #transaction = new AsyncLocalStorage<SqlEntityManager>();
  readonly #pool: () => StatementPool | undefined;
  #prepared = 0;

  /** `pool` gives what it has once connected; without one, prepared reads go the way of all others. */
  constructor(em: SqlEntityManager, scopes: TableScopes, pool: () => StatementPool | undefined = () => undefined) {
    this.#em = em;
    this.#scopes = scopes;
    this.#pool = pool;
  }

  /** The door of one tenant: what belongs to another node does not exist behind it. */
  forNode(nodeId: string): NodeDoor<Tables> {
    const scoped = this.#scopedKysely(nodeId);
    return { run: (build) => build(scoped).execute() };
  }

  /**
   * Compiles a read of the tenant's door once, at its first run: for what is asked with every request. `value(name)`
   * stands for what each run gives.
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
   * Compiles a read of the tenant's door once for each form that what it is given takes: `build` may look at booleans, at
   * null and at which members there are. Everything else is a value, which it cannot know.
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

  /** The door for what no tenant owns. `_reason` says to the reader why no node applies; a test pins the callers. */
  unscoped(_reason: string): UnscopedDoor<Tables> {
    return {
      run: (build) => build(this.#kysely()).execute(),
      raw: async (build) => (await build(sql).execute(this.#kysely())).rows,
    };
  }

  /** Runs `work` in a transaction; inside of one it joins it. An error rolls back and is thrown on. */
  transaction<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#transaction.getStore()) return work();
    return this.#em.fork().transactional((em) => this.#transaction.run(em, work));
  }

  /** The entity manager of the current transaction, or a fresh one: for writing through the unit of work. */
  entities(): SqlEntityManager {
    return this.#transaction.getStore() ?? this.#em.fork();
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
    const pool = this.#transaction.getStore() ? undefined : this.#pool();
    const run = filled(query, nodeId, values);
    const { rows } = pool
      ? await pool.query<Row>({ name, text: run.sql, values: run.parameters })
      : await this.#kysely().executeQuery(run);
    return rows;
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

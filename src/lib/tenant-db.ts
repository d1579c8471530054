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
import { sqlState } from './sql-state.ts';
import type { TurnsByNode } from './turns-by-node.ts';

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

/** A statement that a connection prepares once. */
interface NamedStatement {
  name: string;
  text: string;
  values: readonly unknown[];
  /** Whether a request waits for it: a pool hands it to a connection in the async context of another. */
  isWaitedFor: boolean;
}

/**
 * Connections that keep prepared statements by name (PostgreSQL's extended protocol). The embedded database has none:
 * on its one connection a statement past the query builder's queue would land in another's transaction.
 */
export interface StatementPool {
  query<Row>(statement: NamedStatement): Promise<{ rows: Row[] }>;
}

/** What stands before the connections. */
export interface ConnectionTurns {
  turns: TurnsByNode;
  /** What a statement ends with that took longer than a request may wait for. */
  timedOut(cause: unknown): Error;
}

/** The node of a request, as soon as it is known. */
type NodeOf = () => string | undefined;

const QUERY_CANCELED = '57014';

interface WaitingRequest {
  nodeOf: NodeOf;
  /** Whether its statements are to end in time. */
  isHurried: boolean;
}

/** The request that waits for what the current async context does. */
const waitingRequest = new AsyncLocalStorage<WaitingRequest | undefined>();

/** Whether a request waits for a statement as a connection gets it, and not for as long as it takes: it is to end in time. */
export function isWaitedFor(statement: unknown): boolean {
  if (typeof statement === 'object' && statement !== null && 'isWaitedFor' in statement) {
    return statement.isWaitedFor === true;
  }
  return waitingRequest.getStore()?.isHurried === true;
}

/** Runs what a request waits for: what it asks of the database takes the turns of its node. */
export function forRequest<Result>(nodeOf: NodeOf, work: () => Result): Result {
  return waitingRequest.run({ nodeOf, isHurried: true }, work);
}

/** Runs what takes as long as it takes, whoever waits: a request's in the turns of its node all the same. */
export function unhurried<Result>(work: () => Result): Result {
  const waiting = waitingRequest.getStore();
  return waitingRequest.run(waiting && { ...waiting, isHurried: false }, work);
}

/** Runs what no request waits for, though one may have begun it. */
export function forNoRequest<Result>(work: () => Result): Result {
  return waitingRequest.run(undefined, work);
}

/**
 * The only way to the database's query builders and raw SQL. Both doors use the transaction of the current async
 * context and never open a second connection inside one: the embedded database has only one. Whatever a request waits for
 * takes the turns of its node, all else those that no node can take.
 */
export class TenantDb<Tables extends object> {
  readonly #em: SqlEntityManager;
  readonly #scopes: TableScopes;
  readonly #transaction = new AsyncLocalStorage<SqlEntityManager>();
  readonly #connections: ConnectionTurns;
  readonly #pool: () => StatementPool | undefined;
  #prepared = 0;

  /** `pool` gives what it has once connected; without one, prepared reads go the way of all others. */
  constructor(
    em: SqlEntityManager,
    scopes: TableScopes,
    connections: ConnectionTurns,
    pool: () => StatementPool | undefined = () => undefined,
  ) {
    this.#em = em;
    this.#scopes = scopes;
    this.#connections = connections;
    this.#pool = pool;
  }

  /** The door of one tenant: what belongs to another node does not exist behind it. */
  forNode(nodeId: string): NodeDoor<Tables> {
    const scoped = this.#scopedKysely(nodeId);
    return { run: (build) => this.#inTurn(() => build(scoped).execute(), nodeId) };
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
      run: (build) => this.#inTurn(() => build(this.#kysely()).execute()),
      raw: (build) => this.#inTurn(async () => (await build(sql).execute(this.#kysely())).rows),
    };
  }

  /** Runs `work` in a transaction; inside of one it joins it. An error rolls back and is thrown on. */
  transaction<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#transaction.getStore()) return work();
    return this.#inTurn(() => this.#em.fork().transactional((em) => this.#transaction.run(em, work)));
  }

  /** The entity manager of the current transaction, or a fresh one: for writing through the unit of work. */
  entities(): SqlEntityManager {
    return this.#transaction.getStore() ?? this.#em.fork();
  }

  /** A connection is held for as long as `work` goes on; within a transaction it is the transaction's. */
  async #inTurn<Result>(work: () => Promise<Result>, nodeId?: string): Promise<Result> {
    if (this.#transaction.getStore()) return work();
    const waiting = waitingRequest.getStore();
    const { turns, timedOut } = this.#connections;
    try {
      return await turns.run(waiting && (waiting.nodeOf() ?? nodeId), work);
    } catch (error) {
      throw waiting?.isHurried && sqlState(error) === QUERY_CANCELED ? timedOut(error) : error;
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
    return this.#inTurn(async () => {
      const pool = this.#transaction.getStore() ? undefined : this.#pool();
      const { rows } = pool
        ? await pool.query<Row>({ name, text: run.sql, values: run.parameters, isWaitedFor: isWaitedFor(undefined) })
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

import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  PostgresAdapter,
  type QueryCompiler,
  type QueryResult,
} from 'kysely';
import type { NodeScope } from './node-scope.ts';
import { NodeScopeError, refusal } from './node-scope-error.ts';

/** The connection below the tenant's door. */
export interface Unscoped {
  compile: QueryCompiler['compileQuery'];
  runCompiled<Row>(query: CompiledQuery): Promise<QueryResult<Row>>;
}

/**
 * A dialect whose compiler scopes every statement and whose driver runs what that compiler has made, and nothing else.
 * A plugin could be taken off by `withoutPlugins`; the compiler and the driver cannot.
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

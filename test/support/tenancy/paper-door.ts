import { Kysely, PostgresQueryCompiler } from 'kysely';
import { NodeScope } from '../../../src/platform/database/node-scope.ts';
import { scopedDialect } from '../../../src/platform/database/tenant-db.ts';

/** The builders without their types, on which the door does not lean. */
export type Untyped = Kysely<Record<string, Record<string, string>>>;

const scopes = {
  tenant: new Set(['accounts', 'users', 'wallets']),
  global: new Set(['networks']),
};

/** The tenant's door without a database behind it; `texts` keeps the SQL that came through. */
export function paperDoor(nodeId: string): { k: Untyped; texts: string[] } {
  const texts: string[] = [];
  const compiler = new PostgresQueryCompiler();
  const dialect = scopedDialect(new NodeScope(nodeId, scopes), {
    compile: (statement, queryId) => compiler.compileQuery(statement, queryId),
    runCompiled: async (query) => {
      texts.push(query.sql);
      return { rows: [] };
    },
  });
  return { k: new Kysely({ dialect }), texts };
}

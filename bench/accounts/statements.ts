import type { SqlEntityManager } from '@mikro-orm/sql';
import { Accounts } from '../../src/accounts/accounts.service.ts';
import type { Database } from '../../src/database.ts';

/** A statement as it reaches the driver. */
export interface Statement {
  text: string;
  values: unknown[];
  /** That of a prepared one. */
  name?: string;
}

type Query = (query: string | Statement, values?: unknown[], ...rest: unknown[]) => unknown;

/** The statements of a page of ten accounts, as the driver got them: the one with the total, then the one with the rows. */
export async function statementsOf(
  database: Database,
  { nodeId, page }: { nodeId: string; page: number },
): Promise<Statement[]> {
  const statements: Statement[] = [];
  const target = await driverOf(database);
  const { query } = target;
  target.query = function recorded(this: unknown, given, values, ...rest) {
    const statement = typeof given === 'string' ? { text: given, values: values ?? [] } : given;
    // The audit and the bus share the driver.
    if (/"account(s|_superblocks)"/.test(statement.text)) {
      const { text, name } = statement;
      statements.push({ text, values: statement.values, ...(name === undefined ? {} : { name }) });
    }
    return Reflect.apply(query, this, [given, values, ...rest]);
  };
  await new Accounts(database.db).page({ nodeId, page, limit: 10, includeDeleted: false });
  target.query = query;
  return statements;
}

/** Where every query passes: PGlite itself, or the prototype of the connections in the pool of pg. */
async function driverOf({ orm, isEmbedded }: Database): Promise<{ query: Query }> {
  const connection: unknown = (orm.em as SqlEntityManager).getConnection();
  const native = await (connection as { getNativeClient(): Promise<unknown> }).getNativeClient();
  return isEmbedded
    ? (native as { query: Query })
    : (native as { Client: { prototype: { query: Query } } }).Client.prototype;
}

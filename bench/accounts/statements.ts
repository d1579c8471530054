import { createRequire } from 'node:module';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { Accounts } from '../../src/features/accounts/accounts.service.ts';
import type { Database } from '../../src/platform/database/open-database.ts';
import { ROOT } from '../lib/product.ts';

/** A statement as it reaches the driver. */
export interface Statement {
  text: string;
  values: unknown[];
  /** That of a prepared one. */
  name?: string;
}

/** The statements of a page of ten accounts, as the driver got them: the one with the total, then the one with the rows. */
export async function statementsOf(
  database: Database,
  { nodeId, page }: { nodeId: string; page: number },
): Promise<Statement[]> {
  const statements: Statement[] = [];
  const record = ({ name, text, values }: Statement) => {
    // The audit and the bus share the driver.
    if (!/"account(s|_superblocks)"/.test(text)) return;
    statements.push({ text, values, ...(name === undefined ? {} : { name }) });
  };
  const stop = recordStatements(database, record);
  await new Accounts(database.db).page({ nodeId, page, limit: 10, includeDeleted: false });
  stop();
  return statements;
}

interface Driver {
  query(text: string, values?: unknown[], ...rest: unknown[]): unknown;
}

/** What pg makes of each statement, and sends. */
interface Sent extends Partial<Statement> {
  submit(...args: unknown[]): unknown;
}

/** Tells of each statement as it reaches PGlite, or as pg sends it. Returns what ends that. */
function recordStatements({ isEmbedded }: Database, record: (statement: Statement) => void): () => void {
  if (isEmbedded) {
    const driver = PGlite.prototype as unknown as Driver;
    const { query } = driver;
    driver.query = function recorded(this: unknown, text, values = [], ...rest) {
      record({ text, values });
      return Reflect.apply(query, this, [text, values, ...rest]);
    };
    return () => {
      driver.query = query;
    };
  }
  // The product's pg, and not that of this package.
  const { Query }: { Query: { prototype: Sent } } = createRequire(join(ROOT, 'package.json'))('pg');
  const { prototype } = Query;
  const { submit } = prototype;
  prototype.submit = function recorded(this: Sent, ...args) {
    const { name, text = '', values = [] } = this;
    record({ text, values, ...(name === undefined ? {} : { name }) });
    return Reflect.apply(submit, this, args);
  };
  return () => {
    prototype.submit = submit;
  };
}

import { writeFileSync } from 'node:fs';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { Accounts } from '../../src/accounts/accounts.service.ts';
import { readConfig } from '../../src/config/config.ts';
import { readSecrets } from '../../src/config/secrets.ts';
import type { Database } from '../../src/database.ts';
import type { Db } from '../../src/db.ts';
import type { Demo } from '../../src/demo/demo.ts';
import { ensureDemo } from '../../src/demo/ensure-demo.ts';
import { silentLog } from '../../src/lib/log.ts';
import { startService } from '../../src/service.ts';

/** A statement as it reaches the driver. */
export interface Statement {
  text: string;
  values: unknown[];
}

type Query = (query: string | Statement, values?: unknown[], ...rest: unknown[]) => unknown;

/** What the demo client gets where limits are asked for: each is checked at each call, and none refuses. */
const LIMITS = {
  requests_per_second: 1_000_000,
  requests_per_minute: 10_000_000,
  requests_per_hour: 100_000_000,
  monthly_limit: 1_000_000_000,
};

/**
 * Run as a process of its own: migrates and seeds the database that the environment names, writes `demo.json`, and
 * writes the statements of a page of accounts, as the driver got them, to the file of its argument. With `limits` as a
 * second argument the demo client gets limits.
 */
async function seed(statementsPath: string, withLimits: boolean): Promise<void> {
  const { config, env } = readConfig(process.env);
  await using service = await startService({ config, secrets: readSecrets(config, env), log: silentLog });
  const { context } = service;
  const demo = await ensureDemo(context);
  if (withLimits) await limitClient(context.database.db, demo);
  const statements = await statementsOf(context.database, demo.node_id);
  const plain = (_key: string, value: unknown) => (typeof value === 'bigint' ? Number(value) : value);
  writeFileSync(statementsPath, JSON.stringify(statements, plain));
}

async function limitClient(db: Db, { node_id: nodeId, client }: Demo): Promise<void> {
  await db.forNode(nodeId).run((k) => k.updateTable('clients').set(LIMITS).where('id', '=', client.client_id));
}

async function statementsOf(database: Database, nodeId: string): Promise<Statement[]> {
  const statements: Statement[] = [];
  const target = await driverOf(database);
  const { query } = target;
  target.query = function recorded(this: unknown, given, values, ...rest) {
    const statement = typeof given === 'string' ? { text: given, values: values ?? [] } : given;
    // The audit and the bus share the driver.
    if (statement.text.includes('"accounts"')) statements.push({ text: statement.text, values: statement.values });
    return Reflect.apply(query, this, [given, values, ...rest]);
  };
  await new Accounts(database.db).page({ nodeId, page: 1, limit: 10, includeDeleted: false });
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

const [, , statementsPath, limits] = process.argv;
if (statementsPath === undefined) throw new Error('usage: seed FILE [limits]');
await seed(statementsPath, limits === 'limits');

import { writeFileSync } from 'node:fs';
import type { Demo } from '../../src/app/demo/demo.ts';
import { ensureDemo } from '../../src/app/demo/ensure-demo.ts';
import { startService } from '../../src/app/service.ts';
import { silentLog } from '../../src/lib/log.ts';
import { readConfig } from '../../src/platform/config/config.ts';
import { readSecrets } from '../../src/platform/config/secrets.ts';
import type { Db } from '../../src/platform/database/database.ts';
import { statementsOf } from '../accounts/statements.ts';

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
  const statements = await statementsOf(context.database, { nodeId: demo.node_id, page: 1 });
  const plain = (_key: string, value: unknown) => (typeof value === 'bigint' ? Number(value) : value);
  writeFileSync(statementsPath, JSON.stringify(statements, plain));
}

async function limitClient(db: Db, { node_id: nodeId, client }: Demo): Promise<void> {
  await db.forNode(nodeId).run((k) => k.updateTable('clients').set(LIMITS).where('id', '=', client.client_id));
}

const [, , statementsPath, limits] = process.argv;
if (statementsPath === undefined) throw new Error('usage: seed FILE [limits]');
await seed(statementsPath, limits === 'limits');

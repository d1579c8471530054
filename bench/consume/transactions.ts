import { join } from 'node:path';
import { productEnv } from '../lib/product.ts';
import { runScript } from '../lib/run-script.ts';
import type { World } from '../lib/world.ts';
import type { Filling } from './fill.ts';

const FILL = join(import.meta.dirname, 'fill.ts');

/** Registers so many transactions in the demo's node, in one statement; what else is to be filled in comes after. */
export async function seedTransactions({ dataDir, servers }: World, transactions: number, more: Partial<Filling> = {}) {
  const { DATABASE_URL = '' } = servers;
  const env = { ...productEnv({ dataDir, servers: { DATABASE_URL } }), PORT: '0', ADMIN_PORT: '0' };
  const filling: Filling = { dataDir, transactions, notifications: 0, stride: 1, ...more };
  await runScript(FILL, filling, env);
}

import type { Context } from '../context.ts';
import { baseUrlOf } from '../lib/base-url.ts';
import { type Demo, newDemo } from './demo.ts';
import { readDemo, writeDemo } from './demo-file.ts';
import { seedDemo } from './seed.ts';

type DemoParts = Pick<Context, 'config' | 'secrets' | 'database' | 'passwords' | 'transactions'>;

/**
 * The demo in the database and in `DATA_DIR/demo.json`. The file comes first: whatever a kill leaves, the next start
 * finds the credentials and completes the rows.
 */
export async function ensureDemo({ config, secrets, database, passwords, transactions }: DemoParts): Promise<Demo> {
  const demo = readDemo(config.dataDir) ?? newDemo();
  const { username, password } = secrets.webhook;
  const baseUrl = config.publicUrl ?? baseUrlOf(config.host, config.port);
  writeDemo(config.dataDir, demo, { baseUrl, webhook: { username, password: password.current } });
  await seedDemo({ db: database.db, passwords, transactions, pepper: secrets.pepper.current }, demo);
  return demo;
}

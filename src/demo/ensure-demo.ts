import { notWhole, PARTS } from '../config/data-dir.ts';
import { instanceOfSecrets } from '../config/secrets.ts';
import type { Context } from '../context.ts';
import { baseUrlOf } from '../lib/base-url.ts';
import { type Demo, newDemo } from './demo.ts';
import { readDemo, writeDemo } from './demo-file.ts';
import { hasDemo, isSeeded, seedDemo } from './seed.ts';

type DemoParts = Pick<Context, 'config' | 'secrets' | 'database' | 'passwords' | 'transactions'>;

/**
 * The demo in the database and in `DATA_DIR/demo.json`. The file comes first: whatever a kill leaves, the next start
 * finds the credentials and completes the rows.
 * @throws StartError where the file is not that of the demo which an embedded database has.
 */
export async function ensureDemo({ config, secrets, database, passwords, transactions }: DemoParts): Promise<Demo> {
  const { db, isEmbedded } = database;
  const kept = readDemo(config.dataDir);
  if (isEmbedded && !(kept && (await isSeeded(db, kept))) && (await hasDemo(db))) {
    throw notWhole(config.dataDir, `${PARTS.demo} is ${kept ? 'of another instance' : 'gone'}`);
  }
  const demo = { ...(kept ?? newDemo()), ...(isEmbedded ? { instance_id: instanceOfSecrets(config.dataDir) } : {}) };
  const { username, password } = secrets.webhook;
  const baseUrl = config.publicUrl ?? baseUrlOf(config.host, config.port);
  writeDemo(config.dataDir, demo, { baseUrl, webhook: { username, password: password.current } });
  await seedDemo({ db, passwords, transactions, pepper: secrets.pepper.current }, demo);
  return demo;
}

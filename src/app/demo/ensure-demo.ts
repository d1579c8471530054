import type { Passwords } from '../../access/sessions/passwords.ts';
import type { Transactions } from '../../domain/transactions/transactions.service.ts';
import { baseUrlOf } from '../../lib/base-url.ts';
import type { Config } from '../../platform/config/config.ts';
import { notWhole, PARTS } from '../../platform/config/data-dir.ts';
import { instanceOfSecrets, type Secrets } from '../../platform/config/secrets.ts';
import type { Database } from '../../platform/database/database.ts';
import { type Demo, newDemo } from './demo.ts';
import { readDemo, writeDemo } from './demo-file.ts';
import { hasDemo, isSeeded, seedDemo } from './seed-demo.ts';

interface DemoParts {
  config: Config;
  secrets: Secrets;
  database: Database;
  passwords: Passwords;
  transactions: Transactions;
}

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

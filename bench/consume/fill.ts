import { EmbeddedStore } from '../../src/events/bus/embedded-bus.ts';
import { embeddedClusterDir } from '../../src/platform/config/secrets.ts';
import { openDatabase } from '../../src/platform/database/open-database.ts';
import { ID_IN_SQL } from '../lib/notifications.ts';
import { readDemoFile } from '../lib/product.ts';
import { type Notifications, notifications } from './notifications.ts';

/** What a seeded world is filled with. */
export interface Filling extends Notifications {
  dataDir: string;
  /** How many are registered by their owner, half of them of the admin topic and half of the user topic. */
  transactions: number;
}

const AT_ONCE = 1_000;

/**
 * Run as a process of its own, with a `Filling` as JSON: registers transactions by one statement, and on the embedded
 * stores puts notifications into the topics.
 */
async function fill({ dataDir, transactions, ...of }: Filling): Promise<void> {
  const { DATABASE_URL } = process.env;
  await using database = await openDatabase(
    DATABASE_URL ? { url: DATABASE_URL } : { dataDir: embeddedClusterDir(dataDir) },
  );
  const door = database.db.unscoped('a benchmark fills the tables');
  const { node_id: nodeId } = readDemoFile(dataDir);
  await door.raw(
    (text) => text`
      with ids as (
        insert into transaction_ids (id) select ${text.raw(ID_IN_SQL)} from generate_series(1, ${transactions}::integer) n
      )
      insert into transactions (id, node_id, collection, registered_type, registered_by, type)
      select ${text.raw(ID_IN_SQL)}, ${nodeId}::uuid,
        case when n % 2 = 0 then 'node_transactions' else 'user_transactions' end, 1, 'topic', 1
      from generate_series(1, ${transactions}::integer) n`,
  );
  for (const table of ['transaction_ids', 'transactions']) {
    await door.raw((text) => text`vacuum (analyze) ${text.table(table)}`);
  }
  const store = new EmbeddedStore(database.db);
  for (const batch of notifications(of, AT_ONCE)) await store.append(batch);
}

const [, , given] = process.argv;
if (given === undefined) throw new Error('usage: fill JSON');
await fill(JSON.parse(given));
process.stdout.write('null');

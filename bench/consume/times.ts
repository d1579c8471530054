import { embeddedClusterDir } from '../../src/platform/config/secrets.ts';
import { openDatabase } from '../../src/platform/database/open-database.ts';

/** When the event of a number and the last one were logged, in milliseconds since the epoch, and how many are between. */
export interface Times {
  fromMs: number;
  toMs: number;
  count: number;
}

/** Run as a process of its own, with a data directory and a number as JSON: prints the `Times` of the embedded database. */
async function times(dataDir: string, number: number): Promise<Times> {
  await using database = await openDatabase({ dataDir: embeddedClusterDir(dataDir) });
  const rows = await database.db.unscoped('a benchmark reads the log').raw(
    (text) => text<{ seq: number; at: number }>`
      select seq::float8 as seq, (extract(epoch from occurred_at) * 1000)::float8 as at
      from transaction_events where seq = ${number} or seq = (select max(seq) from transaction_events) order by seq`,
  );
  const [first, last] = rows;
  if (!first || !last) throw new Error('the log has not so many events');
  return { fromMs: first.at, toMs: last.at, count: last.seq - first.seq };
}

const [, , given] = process.argv;
if (given === undefined) throw new Error('usage: times JSON');
const { dataDir, number } = JSON.parse(given);
process.stdout.write(JSON.stringify(await times(dataDir, number)));

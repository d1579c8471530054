import type { Db } from '../platform/database/database.ts';
import type { Context } from './context.ts';

/** How often the position of the database is noted in Redis, in milliseconds. */
const NOTE_EVERY_MS = 5_000;

/**
 * Warns if the database is older than Redis remembers, as after a restore, and notes its position in Redis from then on.
 * Without Redis, or while it is empty or unavailable, nothing is known.
 */
export async function watchDatabaseAge(
  { config, database, cache, log }: Pick<Context, 'config' | 'database' | 'cache' | 'log'>,
  stack: AsyncDisposableStack,
): Promise<void> {
  if (config.redisUrl === undefined) return;
  // Redis is read first: what another process notes in between is then in the database, too.
  const note = async () => {
    const remembered = await cache.raisePosition('');
    const position = await positionOf(database.db);
    await cache.raisePosition(position);
    return remembered > position;
  };
  // The cache and the database log their own outages.
  const isOlder = () => note().catch(() => false);
  if (await isOlder()) {
    log.warn(
      { page: 'docs/operations/restore.md' },
      'the database is older than the last one that Redis knows; stop every process and run portcullis recover',
    );
  }
  const timer = setInterval(() => void isOlder(), NOTE_EVERY_MS);
  stack.defer(() => clearInterval(timer));
}

/**
 * Returns how far the database has come, as a text that sorts: its timeline, which `recover` and a promotion move
 * forward, and the number of its last audit record.
 */
async function positionOf(db: Db): Promise<string> {
  const [row] = await db.unscoped('the whole database').raw(
    (sql) => sql<{ position: string }>`
      select lpad((coalesce(max(seq), 0) / 4294967296)::text, 10, '0') || '/' ||
        lpad(coalesce(pg_sequence_last_value('audit_positions'), 0)::text, 20, '0') as position
      from node_event_seq`,
  );
  return row?.position ?? '';
}

import { readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { DEADLOCK, LOCK_TIMEOUT, sqlState } from '../errors.ts';
import type { Db } from './database.ts';
import { type Database, SCHEMA_MIGRATIONS } from './open-database.ts';

/** Not the number of 0.1.0: a statement that waits for a lock holds up the concurrent build of an index for ever. */
const LOCK = 4_273_007;
const RETRY_MS = 200;
/** The time in which others get the lock that a schema migration has not got. */
const PAUSE_MS = 1_000;
const MOST_DEADLOCKS = 10;

/** Returns the names of the schema migrations that have not run in the database yet, oldest first. */
export async function pendingSchemaMigrations({ db }: Database): Promise<string[]> {
  const names = readdirSync(SCHEMA_MIGRATIONS)
    .filter((file) => /^migration-.*\.ts$/.test(file))
    .map((file) => basename(file, '.ts'))
    .sort();
  const executed = new Set(await executedMigrations(db));
  return names.filter((name) => !executed.has(name));
}

/** Who is told of schema migrations as they run. */
export interface MigrationReports {
  onMigration?: ((step: { name: string; done: number; total: number }) => void) | undefined;
  /** Called with a sentence for each lock that is waited for, and again after a minute. */
  onWait?: ((message: string) => void) | undefined;
  /** The database by which the waits are seen, outside transactions. */
  observer?: Db;
}

/**
 * Runs the pending schema migrations and returns their names. An advisory lock makes other processes wait meanwhile, without
 * a statement that waits; the embedded database has one process and one connection, and needs none.
 */
export async function migrate(database: Database, reports: MigrationReports = {}): Promise<string[]> {
  if (database.isEmbedded) return runMigrations(database, reports);
  const unscoped = database.db.unscoped('advisory lock, no table');
  const waiting: Waiting = { backends: new Set(), isQueued: false };
  const ended = new AbortController();
  const { observer = database.db, onWait = () => undefined } = reports;
  const watching = watchLocks(observer, waiting, { lock: LOCK, signal: ended.signal, onWait });
  await using _watching = { [Symbol.asyncDispose]: () => watching };
  using _ended = { [Symbol.dispose]: () => ended.abort() };
  for (;;) {
    const executed = await database.db.transaction(async () => {
      // Without a parameter: what is bound keeps its snapshot in the transaction of an owner, for which the build waits.
      const [lock] = await unscoped.raw(
        (sql) => sql<{ taken: boolean }>`select pg_try_advisory_xact_lock(${sql.raw(String(LOCK))}) as taken`,
      );
      waiting.isQueued = !lock?.taken;
      return lock?.taken ? runMigrations(database, reports, waiting.backends) : undefined;
    });
    if (executed) return executed;
    await setTimeout(RETRY_MS);
  }
}

async function runMigrations(database: Database, reports: MigrationReports, backends?: Set<number>): Promise<string[]> {
  const pending = await pendingSchemaMigrations(database);
  if (pending.length === 0) return [];
  const { Migrator } = await import('@mikro-orm/migrations');
  const { em } = await database.openOrm(backends);
  const migrator = new Migrator(em).on('migrating', ({ name }) =>
    reports.onMigration?.({ name, done: pending.indexOf(name), total: pending.length }),
  );
  for (let deadlocks = 0; ; ) {
    try {
      await migrator.up();
      return pending;
    } catch (error) {
      // A running service has locked in another order, or does not give a lock: earlier schema migrations stay.
      const state = sqlState(error);
      if (state === DEADLOCK) deadlocks += 1;
      if ((state !== DEADLOCK && state !== LOCK_TIMEOUT) || deadlocks === MOST_DEADLOCKS) throw error;
      await setTimeout(PAUSE_MS);
    }
  }
}

async function executedMigrations(db: Database['db']): Promise<string[]> {
  const unscoped = db.unscoped('the schema is global');
  const [table] = await unscoped.raw(
    (sql) => sql<{ exists: boolean }>`select to_regclass('mikro_orm_migrations') is not null as exists`,
  );
  if (!table?.exists) return [];
  const rows = await unscoped.raw((sql) => sql<{ name: string }>`select name from mikro_orm_migrations`);
  return rows.map((row) => row.name);
}

/** Who waits for locks, which changes as migrations go on. */
export interface Waiting {
  /** The server's processes that migrate. */
  backends: Set<number>;
  /** Whether this process waits for another one to migrate. */
  isQueued: boolean;
}

/** A session that holds what a migration waits for. The last four are null if this role may not see them. */
interface Wait {
  lock: string;
  pid: number;
  observer: string;
  application: string | null;
  user: string | null;
  since: string | null;
  state: string | null;
  stateSince: string | null;
}

const LOOK_MS = 50;
const AGAIN_MS = 60_000;
const TIME = 'YYYY-MM-DD"T"HH24:MI:SS"Z"';

/**
 * Looks from another connection for what schema migrations wait for, until the signal, and says who holds it: when it is
 * seen for the second time, and then once a minute. It shows no query, which may have values. `lock` is the key of the
 * advisory lock of migrations.
 */
async function watchLocks(
  db: Db,
  waiting: Waiting,
  { lock, signal, onWait }: { lock: number; signal: AbortSignal; onWait(message: string): void },
): Promise<void> {
  let last = '';
  let nextTick = 0;
  while (!signal.aborted) {
    await setTimeout(LOOK_MS, undefined, { signal }).catch(() => undefined);
    // While the database is down, the migration itself fails.
    const wait = await oldestWait(db, waiting, lock).catch(() => undefined);
    if (!wait) continue;
    const key = `${wait.lock} ${wait.pid}`;
    if (key !== last) nextTick = 0;
    else if (performance.now() >= nextTick) {
      nextTick = performance.now() + AGAIN_MS;
      onWait(messageOf(wait));
    }
    last = key;
  }
}

/** Returns the wait for the session with the oldest transaction; undefined if nothing waits. */
async function oldestWait(db: Db, { backends, isQueued }: Waiting, key: number): Promise<Wait | undefined> {
  if (backends.size === 0 && !isQueued) return undefined;
  const [wait] = await db.unscoped('locks and sessions, no table').raw(
    (sql) => sql<Wait>`
      with held as (
        select holder as pid, case locktype
          when 'virtualxid' then 'the end of an older transaction'
          when 'transactionid' then 'the end of a transaction that has changed the same row'
          else mode || ' on ' || coalesce(relation::regclass::text, locktype) end as lock
        from pg_locks waiting, unnest(pg_blocking_pids(waiting.pid)) holder
        where not granted and waiting.pid = any(${[...backends]}::int[])
        union all
        select pid, 'the lock of another migration' from pg_locks
        where ${isQueued}::boolean and granted and locktype = 'advisory' and objid = ${key}
          and database = (select oid from pg_database where datname = current_database()))
      select lock, pid, current_user as observer, application_name as application, usename as user, state,
        to_char(xact_start at time zone 'UTC', ${TIME}) as since,
        to_char(state_change at time zone 'UTC', ${TIME}) as "stateSince"
      from held left join pg_stat_activity using (pid) order by xact_start nulls last, pid limit 1`,
  );
  return wait;
}

function messageOf({ lock, pid, observer, application, user, since, state, stateSince }: Wait): string {
  const session =
    pid === 0 ? 'a prepared transaction: see pg_prepared_xacts' : `application "${application}", user ${user}`;
  const unseen = `to see since when: grant pg_read_all_stats to ${observer}`;
  const what = since === null ? unseen : `in a transaction since ${since}, ${state} since ${stateSince}`;
  const fix = lock.endsWith('another migration') ? '' : `; to end that session: select pg_terminate_backend(${pid})`;
  return `waiting for ${lock}, held by pid ${pid} (${session}; ${what}). Requests go on meanwhile${fix}`;
}

import { setTimeout } from 'node:timers/promises';
import type { Db } from './database.ts';

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
export async function watchLocks(
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

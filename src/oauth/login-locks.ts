import type { Db } from '../db.ts';
import { isoFromPg } from '../lib/pg-time.ts';
import { uuidV7 } from '../lib/uuid-v7.ts';
import { FAILURES_TO_LOCK, lockedUntilMs, WINDOW_MS } from './login-lock.rules.ts';

const KEPT_MS = 60 * 60_000;
const PRUNE_EVERY_MS = 60_000;
const PRUNE_BATCH = 10_000;

interface LoginLocksParts {
  db: Db;
  nowMs(): number;
}

/** The name under which a login's failures count, whether or not a supervisor has it. */
export function lockName(username: string): string {
  return username.toLowerCase();
}

/** The failed logins of each username of a node, and the locks that follow from them. In PostgreSQL: for every replica. */
export class LoginLocks {
  readonly #parts: LoginLocksParts;
  #prunedAtMs = Number.NEGATIVE_INFINITY;

  constructor(parts: LoginLocksParts) {
    this.#parts = parts;
  }

  /** Whether this username is locked now, in any case of its letters. */
  async isLocked(nodeId: string, username: string): Promise<boolean> {
    const { db, nowMs } = this.#parts;
    const rows = await db
      .forNode(nodeId)
      .run((k) =>
        k
          .selectFrom('login_failures')
          .select('failed_at')
          .where('username', '=', lockName(username))
          .orderBy('failed_at', 'desc')
          .limit(FAILURES_TO_LOCK),
      );
    return lockedUntilMs(rows.map(failedAtMs), nowMs()) !== undefined;
  }

  /** Counts a failed login. */
  async recordFailure(nodeId: string, username: string): Promise<void> {
    const { db, nowMs } = this.#parts;
    const row = { id: uuidV7(), username: lockName(username), failed_at: new Date(nowMs()).toISOString() };
    await db.forNode(nodeId).run((k) => k.insertInto('login_failures').values(row));
    await this.#prune();
  }

  /** Forgets the failed logins of a username: after a good one, or because an administrator says so. */
  async unlock(nodeId: string, username: string): Promise<void> {
    await this.#parts.db
      .forNode(nodeId)
      .run((k) => k.deleteFrom('login_failures').where('username', '=', lockName(username)));
  }

  /**
   * Until when each of these usernames is locked, in milliseconds since the epoch, by the name as it was given; those
   * that are not locked are left out. One statement, however many.
   */
  async lockedUntil(nodeId: string, usernames: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const { db, nowMs } = this.#parts;
    const now = nowMs();
    // Of what is older no five can lock now; while a lock holds none is added, so that there are few.
    const since = new Date(now - 2 * WINDOW_MS).toISOString();
    const rows = await db.forNode(nodeId).run((k) =>
      k
        .selectFrom('login_failures')
        .select(['username', 'failed_at'])
        .where('username', 'in', usernames.length > 0 ? usernames.map(lockName) : [''])
        .where('failed_at', '>', since),
    );
    const failures = Map.groupBy(rows, (row) => row.username);
    return new Map(
      usernames.flatMap((username) => {
        const untilMs = lockedUntilMs((failures.get(lockName(username)) ?? []).map(failedAtMs), now);
        return untilMs === undefined ? [] : [[username, untilMs] as const];
      }),
    );
  }

  /** What another replica prunes at the same time is skipped. */
  async #prune(): Promise<void> {
    const { db, nowMs } = this.#parts;
    const now = nowMs();
    if (now - this.#prunedAtMs < PRUNE_EVERY_MS) return;
    this.#prunedAtMs = now;
    await db.unscoped('failed logins grow old on every node').run((k) =>
      k.deleteFrom('login_failures').where('id', 'in', (old) =>
        old
          .selectFrom('login_failures as f')
          .select('f.id')
          .where('f.failed_at', '<', new Date(now - KEPT_MS).toISOString())
          .orderBy('f.failed_at')
          .limit(PRUNE_BATCH)
          .forUpdate()
          .skipLocked(),
      ),
    );
  }
}

function failedAtMs({ failed_at }: { failed_at: string }): number {
  return Date.parse(isoFromPg(failed_at));
}

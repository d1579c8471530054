import type { Cache, SessionState } from '../cache/cache.ts';
import { CacheUnavailableError } from '../cache/cache-unavailable-error.ts';
import type { Db } from '../db.ts';
import { serviceUnavailable } from '../errors/app-error.ts';
import { isUuid } from '../lib/input.ts';
import type { AccessChange, AccessChanges } from './access-changes.ts';
import type { Principal } from './principal.ts';

const REBUILD_LOCK_MS = 10_000;
/** Logins under way at once may stand in the cache before those that they end have left it. */
const CACHE_SURPLUS = 100;

export interface NewSession {
  sessionId: string;
  nodeId: string;
  supervisorId: string;
  clientId: string;
  expiresAtMs: number;
}

/** What a login was judged by. */
interface SeenSupervisor {
  passwordHash: string;
  role: string;
}

interface SessionKey {
  nodeId: string;
  subject: string;
  sessionId: string;
}

/** Whose sessions, or which one. */
export type SessionsOf = { supervisorId: string } | { clientId: string } | { sessionId: string };

interface SessionsParts {
  db: Db;
  cache: Cache;
  /** Whether every replica has this cache: what is not in it is not live then. */
  isShared: boolean;
  changes: AccessChanges;
  maxSessions: number;
  nowMs(): number;
}

/** The live logins: PostgreSQL decides, the cache answers. */
export class Sessions {
  readonly #parts: SessionsParts;
  readonly #rebuilds = new Map<string, Promise<void>>();

  constructor(parts: SessionsParts) {
    this.#parts = parts;
  }

  /**
   * Whether the login token's session is still live.
   * @throws AppError 503 while the cache is away or being rebuilt.
   */
  isLive(principal: Pick<Principal, 'nodeId' | 'subject' | 'sessionId'>): boolean | Promise<boolean> {
    const { nodeId, subject, sessionId } = principal;
    if (sessionId === undefined) return false;
    const { cache, isShared, nowMs } = this.#parts;
    const state = orUnavailable(() => cache.sessionState(nodeId, subject, sessionId, nowMs()));
    if (state === 'live') return true;
    if (state === 'absent' && isShared) return false;
    return this.#judge(state, { nodeId, subject, sessionId });
  }

  /**
   * Records a login; beyond the allowed number those that would end first end now. False where the supervisor, seen with
   * this password and role, or the client has been disabled or changed since, and where there is, or was, the session.
   */
  async open(session: NewSession, seen: SeenSupervisor): Promise<boolean> {
    const { db, cache, changes, maxSessions, nowMs } = this.#parts;
    const { nodeId, supervisorId, sessionId, expiresAtMs } = session;
    const isOpen = await changes.commit(async (ended) => {
      if (!(await this.#holdAccess(session, seen))) return false;
      const row = {
        id: sessionId,
        node_id: nodeId,
        supervisor_id: supervisorId,
        client_id: session.clientId,
        expires_at: new Date(expiresAtMs).toISOString(),
      };
      const [added] = await db.forNode(nodeId).run((k) =>
        k
          .insertInto('sessions')
          .values(row)
          .onConflict((conflict) => conflict.column('id').doNothing())
          .returning('id'),
      );
      if (!added) return false;
      const oldest = await this.#endOldest(session);
      for (const id of oldest) ended({ kind: 'session', nodeId, subject: supervisorId, item: id });
      return true;
    });
    if (!isOpen) return false;
    // Those that had to go have left the cache before: it has room, and ends none by its own measure.
    await withCache(() =>
      cache.addSession(nodeId, supervisorId, sessionId, expiresAtMs, nowMs(), maxSessions + CACHE_SURPLUS),
    );
    return true;
  }

  /** Ends sessions, within the transaction of `commit`, whose `ended` it tells. */
  async end(nodeId: string, which: SessionsOf, ended: (change: AccessChange) => void): Promise<void> {
    if ('sessionId' in which && !isUuid(which.sessionId)) return;
    const now = new Date(this.#parts.nowMs()).toISOString();
    const rows = await this.#parts.db.forNode(nodeId).run((k) =>
      k
        .updateTable('sessions')
        .set({ revoked_at: now })
        .where('revoked_at', 'is', null)
        .where('expires_at', '>', now)
        .$if('supervisorId' in which, (q) =>
          q.where('supervisor_id', '=', 'supervisorId' in which ? which.supervisorId : ''),
        )
        .$if('clientId' in which, (q) => q.where('client_id', '=', 'clientId' in which ? which.clientId : ''))
        .$if('sessionId' in which, (q) => q.where('id', '=', 'sessionId' in which ? which.sessionId : ''))
        .returning(['id', 'supervisor_id']),
    );
    for (const row of rows) ended({ kind: 'session', nodeId, subject: row.supervisor_id, item: row.id });
  }

  /** Takes sessions that have ended out of the cache. */
  async forget(changes: readonly AccessChange[]): Promise<void> {
    for (const { nodeId, subject, item } of changes) {
      if (item !== null) await this.#parts.cache.removeSessions(nodeId, subject, [item]);
    }
  }

  /** Prolongs a session that is not revoked; false where there is none. */
  async prolong(session: NewSession): Promise<boolean> {
    const { nodeId, supervisorId, sessionId, expiresAtMs } = session;
    const rows = await this.#parts.db.forNode(nodeId).run((k) =>
      k
        .updateTable('sessions')
        .set({ expires_at: new Date(expiresAtMs).toISOString() })
        .where('id', '=', sessionId)
        .where('supervisor_id', '=', supervisorId)
        .where('client_id', '=', session.clientId)
        .where('revoked_at', 'is', null)
        .where('expires_at', '>', new Date(this.#parts.nowMs()).toISOString())
        .returning('id'),
    );
    if (rows.length === 0) return false;
    await withCache(() => this.#parts.cache.prolongSession(nodeId, supervisorId, sessionId, expiresAtMs));
    return true;
  }

  /** Logins of one supervisor take turns: each counts the ones before it, and none outlives what ended the others. */
  async #holdAccess({ nodeId, supervisorId, clientId }: NewSession, seen: SeenSupervisor): Promise<boolean> {
    const door = this.#parts.db.forNode(nodeId);
    const [supervisor] = await door.run((k) =>
      k
        .selectFrom('supervisors')
        .select('id')
        .where('id', '=', supervisorId)
        .where('status', '=', 'active')
        .where('password_hash', '=', seen.passwordHash)
        .where('role', '=', seen.role)
        .forUpdate(),
    );
    if (!supervisor) return false;
    const [client] = await door.run((k) =>
      k.selectFrom('clients').select('id').where('id', '=', clientId).where('status', '=', 'active').forShare(),
    );
    return client !== undefined;
  }

  async #endOldest({ nodeId, supervisorId, sessionId }: NewSession): Promise<string[]> {
    const { db, maxSessions, nowMs } = this.#parts;
    const now = new Date(nowMs()).toISOString();
    const rows = await db.forNode(nodeId).run((k) =>
      k
        .updateTable('sessions')
        .set({ revoked_at: now })
        .where('id', 'in', (oldest) =>
          oldest
            .selectFrom('sessions as s')
            .select('s.id')
            .where('s.supervisor_id', '=', supervisorId)
            .where('s.id', '!=', sessionId)
            .where('s.revoked_at', 'is', null)
            .where('s.expires_at', '>', now)
            // One that was prolonged is young again.
            .orderBy('s.expires_at', 'desc')
            .orderBy('s.id', 'desc')
            .offset(maxSessions - 1),
        )
        .returning('id'),
    );
    return rows.map((row) => row.id);
  }

  async #judge(pending: Promise<SessionState> | SessionState, session: SessionKey): Promise<boolean> {
    const { cache, isShared, nowMs } = this.#parts;
    const state = await withCache(async () => pending);
    if (state === 'live' || (state === 'absent' && isShared)) return state === 'live';
    if (state === 'absent') return this.#isLiveInDatabase(session);
    await this.#rebuilt(session.nodeId);
    const rebuilt = await withCache(async () =>
      cache.sessionState(session.nodeId, session.subject, session.sessionId, nowMs()),
    );
    if (rebuilt === 'unready') throw serviceUnavailable();
    return rebuilt === 'live';
  }

  /** A login through another replica is not in this process's own cache. */
  async #isLiveInDatabase({ nodeId, subject, sessionId }: SessionKey): Promise<boolean> {
    if (!isUuid(subject) || !isUuid(sessionId)) return false;
    const { db, cache, maxSessions, nowMs } = this.#parts;
    const [row] = await db
      .forNode(nodeId)
      .run((k) =>
        k
          .selectFrom('sessions')
          .select('expires_at')
          .where('id', '=', sessionId)
          .where('supervisor_id', '=', subject)
          .where('revoked_at', 'is', null)
          .where('expires_at', '>', new Date(nowMs()).toISOString()),
      );
    if (!row) return false;
    const expiresAtMs = Date.parse(row.expires_at);
    await cache.addSession(nodeId, subject, sessionId, expiresAtMs, nowMs(), maxSessions + CACHE_SURPLUS);
    return true;
  }

  /** Those of one process who find a node unready wait together. */
  #rebuilt(nodeId: string): Promise<void> {
    const before = this.#rebuilds.get(nodeId);
    if (before) return before;
    const rebuilding = this.#rebuild(nodeId).finally(() => this.#rebuilds.delete(nodeId));
    this.#rebuilds.set(nodeId, rebuilding);
    return rebuilding;
  }

  async #rebuild(nodeId: string): Promise<void> {
    const { db, cache, nowMs } = this.#parts;
    const release = await withCache(() => cache.lock(`rebuild:{${nodeId}}`, REBUILD_LOCK_MS));
    if (!release) throw serviceUnavailable();
    try {
      const rows = await db
        .forNode(nodeId)
        .run((k) =>
          k
            .selectFrom('sessions')
            .select(['id', 'supervisor_id', 'expires_at'])
            .where('revoked_at', 'is', null)
            .where('expires_at', '>', new Date(nowMs()).toISOString()),
        );
      const live = rows.map((row) => ({
        subject: row.supervisor_id,
        sessionId: row.id,
        expiresAtMs: Date.parse(row.expires_at),
      }));
      await withCache(() => cache.rebuildSessions(nodeId, live));
    } finally {
      await release();
    }
  }
}

function orUnavailable<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw error instanceof CacheUnavailableError ? serviceUnavailable(error) : error;
  }
}

async function withCache<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof CacheUnavailableError ? serviceUnavailable(error) : error;
  }
}

import type { Cache } from '../cache/cache.ts';
import { CacheUnavailableError } from '../cache/cache-unavailable-error.ts';
import type { Db } from '../db.ts';
import { serviceUnavailable } from '../errors/app-error.ts';
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

interface SessionsParts {
  db: Db;
  cache: Cache;
  maxSessions: number;
  nowMs(): number;
}

/** The live logins: PostgreSQL decides, the cache answers. */
export class Sessions {
  readonly #parts: SessionsParts;

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
    const state = orUnavailable(() => this.#parts.cache.sessionState(nodeId, subject, sessionId, this.#parts.nowMs()));
    if (state === 'live') return true;
    if (state === 'absent') return false;
    return this.#judge(state, { nodeId, subject, sessionId });
  }

  /** Records a login; beyond the allowed number those that would end first end now. */
  async open(session: NewSession): Promise<void> {
    const { db, cache, maxSessions, nowMs } = this.#parts;
    const { nodeId, supervisorId, sessionId, clientId, expiresAtMs } = session;
    const expiresAt = new Date(expiresAtMs).toISOString();
    const ended = await db.transaction(async () => {
      const door = db.forNode(nodeId);
      // Logins of one supervisor take turns: each counts the ones before it.
      await door.run((k) => k.selectFrom('supervisors').select('id').where('id', '=', supervisorId).forUpdate());
      await door.run((k) =>
        k.insertInto('sessions').values({
          id: sessionId,
          node_id: nodeId,
          supervisor_id: supervisorId,
          client_id: clientId,
          expires_at: expiresAt,
        }),
      );
      return this.#endOldest(session);
    });
    await withCache(async () => {
      // First: the cache has room then, and ends none by its own measure.
      if (ended.length > 0) await cache.removeSessions(nodeId, supervisorId, ended);
      await cache.addSession(nodeId, supervisorId, sessionId, expiresAtMs, nowMs(), maxSessions + CACHE_SURPLUS);
    });
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

  async #judge(
    pending: Promise<'live' | 'absent' | 'unready'> | 'unready',
    session: { nodeId: string; subject: string; sessionId: string },
  ): Promise<boolean> {
    const { cache, nowMs } = this.#parts;
    const state = await withCache(async () => pending);
    if (state !== 'unready') return state === 'live';
    await this.#rebuild(session.nodeId);
    const rebuilt = await withCache(async () =>
      cache.sessionState(session.nodeId, session.subject, session.sessionId, nowMs()),
    );
    if (rebuilt === 'unready') throw serviceUnavailable();
    return rebuilt === 'live';
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

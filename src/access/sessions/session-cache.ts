import { isUuid } from '../../lib/input.ts';
import { type Cache, CacheUnavailableError, type NodeSessions, type SessionState } from '../../platform/cache/cache.ts';
import type { Db } from '../../platform/database/database.ts';
import { serviceUnavailable } from '../../platform/errors.ts';
import type { Principal } from '../identity/principal.ts';
import type { AccessChange } from './access-changes.ts';

const REBUILD_LOCK_MS = 10_000;
/**
 * How many more logins the cache takes than may live: those that a login ends leave the cache after it has been added.
 */
const CACHE_SURPLUS = 100;

interface SessionKey {
  nodeId: string;
  subject: string;
  sessionId: string;
}

/** A session as the cache holds it. */
interface CachedLogin {
  nodeId: string;
  supervisorId: string;
  sessionId: string;
  expiresAtMs: number;
}

export interface SessionCacheParts {
  db: Db;
  cache: Cache;
  /** Whether all processes share the cache: a session that is not in it is not live then. */
  isShared: boolean;
  maxSessions: number;
  nowMs(): number;
}

/** Answers from the cache which sessions are live, and rebuilds it from PostgreSQL where it has lost them. */
export class SessionCache {
  readonly #parts: SessionCacheParts;
  readonly #rebuilds = new Map<string, Promise<void>>();

  constructor(parts: SessionCacheParts) {
    this.#parts = parts;
  }

  /**
   * Returns whether the session of a login token is live.
   * @throws AppError 503 while the cache is down or being rebuilt.
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

  /** Adds a session. Those that had to end for it have left the cache before. */
  async add({ nodeId, supervisorId, sessionId, expiresAtMs }: CachedLogin): Promise<void> {
    const { cache, maxSessions, nowMs } = this.#parts;
    await withCache(() =>
      cache.addSession(nodeId, supervisorId, sessionId, expiresAtMs, nowMs(), maxSessions + CACHE_SURPLUS),
    );
  }

  /** Moves the expiry of a session. */
  async prolong({ nodeId, supervisorId, sessionId, expiresAtMs }: CachedLogin): Promise<void> {
    await withCache(() => this.#parts.cache.prolongSession(nodeId, supervisorId, sessionId, expiresAtMs));
  }

  /** Removes sessions that have ended from the cache. */
  async forget(changes: readonly AccessChange[]): Promise<void> {
    for (const { nodeId, subject, item } of changes) {
      if (item !== null) await this.#parts.cache.removeSessions(nodeId, subject, [item]);
    }
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

  /** A session that another process has opened is not in this process's own cache. */
  async #isLiveInDatabase({ nodeId, subject, sessionId }: SessionKey): Promise<boolean> {
    if (!isUuid(subject) || !isUuid(sessionId)) return false;
    const { db, nowMs } = this.#parts;
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
    await this.add({ nodeId, supervisorId: subject, sessionId, expiresAtMs: Date.parse(row.expires_at) });
    return true;
  }

  /** Rebuilds the sessions of a tenant once, however many requests of this process wait for it. */
  #rebuilt(nodeId: string): Promise<void> {
    const before = this.#rebuilds.get(nodeId);
    if (before) return before;
    const rebuilding = this.#rebuild(nodeId).finally(() => this.#rebuilds.delete(nodeId));
    this.#rebuilds.set(nodeId, rebuilding);
    return rebuilding;
  }

  async #rebuild(nodeId: string): Promise<void> {
    const { cache } = this.#parts;
    const release = await withCache(() => cache.lock(`rebuild:{${nodeId}}`, REBUILD_LOCK_MS));
    if (!release) throw serviceUnavailable();
    try {
      await withCache(() => cache.rebuildSessions(nodeId, () => this.#read(nodeId)));
    } finally {
      await release();
    }
  }

  async #read(nodeId: string): Promise<NodeSessions> {
    const { db, nowMs } = this.#parts;
    const rows = await db
      .forNode(nodeId)
      .run((k) =>
        k
          .selectFrom('sessions')
          .select(['id', 'supervisor_id', 'expires_at', 'revoked_at'])
          .where('expires_at', '>', new Date(nowMs()).toISOString()),
      );
    const sessionOf = (row: (typeof rows)[number]) => ({
      subject: row.supervisor_id,
      sessionId: row.id,
      expiresAtMs: Date.parse(row.expires_at),
    });
    const { live = [], ended = [] } = Object.groupBy(rows, (row) => (row.revoked_at === null ? 'live' : 'ended'));
    return { live: live.map(sessionOf), ended: ended.map(sessionOf) };
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

import { isUuid } from '../../lib/input.ts';
import { type Cache, CacheUnavailableError, type NodeSessions } from '../../platform/cache/cache.ts';
import type { Db } from '../../platform/database/database.ts';
import { serviceUnavailable } from '../../platform/errors.ts';
import type { Principal } from '../identity/principal.ts';
import type { SupervisorRecord } from '../supervisors/supervisors.service.ts';
import type { AccessChange, AccessChanges } from './access-changes.ts';

interface NewSession {
  sessionId: string;
  nodeId: string;
  supervisorId: string;
  clientId: string;
  expiresAtMs: number;
}

/** A selection of sessions: all of a supervisor, all of a client, or a single one. */
type SessionsOf = { supervisorId: string } | { clientId: string } | { sessionId: string };

const REBUILD_LOCK_MS = 10_000;
/**
 * The number of sessions beyond `maxSessions` that the cache accepts, because sessions that a login ends may leave the
 * cache after the new one has been added.
 */
const CACHE_SURPLUS = 100;

/** The supervisor when a login was accepted. */
type SeenSupervisor = Pick<SupervisorRecord, 'passwordHash' | 'role'>;

interface SessionsDependencies {
  db: Db;
  changes: AccessChanges;
  cache: Cache;
  /** Whether all processes share the cache; then a session that is absent from it is not live. */
  isShared: boolean;
  maxSessions: number;
  nowMs(): number;
}

/** Creates, prolongs and ends sessions. The database decides; the cache answers whether a session is live. */
export class Sessions {
  readonly #deps: SessionsDependencies;
  readonly #rebuilds = new Map<string, Promise<void>>();

  constructor(deps: SessionsDependencies) {
    this.#deps = deps;
  }

  /**
   * Checks whether the session of a login token is live.
   * @throws Refusal `service_unavailable` while the cache is down or being rebuilt.
   */
  async isLive(principal: Pick<Principal, 'nodeId' | 'subject' | 'sessionId'>): Promise<boolean> {
    const { nodeId, subject, sessionId } = principal;
    if (sessionId === undefined) return false;
    const { cache, isShared, nowMs } = this.#deps;
    const ask = () => withCache(async () => cache.sessionState(nodeId, subject, sessionId, nowMs()));
    const state = await ask();
    if (state === 'live' || (state === 'absent' && isShared)) return state === 'live';
    if (state === 'absent') return this.#isLiveInDatabase(nodeId, subject, sessionId);
    await this.#rebuilt(nodeId);
    const rebuilt = await ask();
    if (rebuilt === 'unready') throw serviceUnavailable();
    return rebuilt === 'live';
  }

  /**
   * Creates a session. When the supervisor then has more than `maxSessions`, those that expire first are ended. Returns
   * false when the supervisor or the client has been disabled or changed since the login was accepted, and when the
   * session exists or has existed.
   * @throws Refusal `service_unavailable` when the cache does not accept it; there is no session then.
   */
  async open(session: NewSession, seen: SeenSupervisor): Promise<boolean> {
    this.#requireCache(session);
    const { db, changes } = this.#deps;
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
    try {
      await this.#cache(session);
    } catch (error) {
      // Its tokens were never sent. Deleted and not revoked, since an old refresh token begins the same session again.
      await db.forNode(nodeId).run((k) => k.deleteFrom('sessions').where('id', '=', sessionId));
      throw error;
    }
    return true;
  }

  /** Ends sessions within the transaction of `AccessChanges.commit`, and passes each revocation to `ended`. */
  async end(nodeId: string, which: SessionsOf, ended: (change: AccessChange) => void): Promise<void> {
    if ('sessionId' in which && !isUuid(which.sessionId)) return;
    const { column, id } = placeOf(which);
    const now = new Date(this.#deps.nowMs()).toISOString();
    const rows = await this.#deps.db
      .forNode(nodeId)
      .run((k) =>
        k
          .updateTable('sessions')
          .set({ revoked_at: now })
          .where('revoked_at', 'is', null)
          .where('expires_at', '>', now)
          .where(column, '=', id)
          .returning(['id', 'supervisor_id']),
      );
    for (const row of rows) ended({ kind: 'session', nodeId, subject: row.supervisor_id, item: row.id });
  }

  /** Removes ended sessions from the cache. */
  async forget(changes: readonly AccessChange[]): Promise<void> {
    const { cache } = this.#deps;
    const removed = changes.map(({ nodeId, subject, item }) =>
      item === null ? undefined : cache.removeSessions(nodeId, subject, [item]),
    );
    await Promise.all(removed);
  }

  /**
   * Prolongs a live session; returns false when there is none.
   * @throws Refusal `service_unavailable` when the cache does not accept it.
   */
  async prolong(session: NewSession): Promise<boolean> {
    this.#requireCache(session);
    const { nodeId, supervisorId, sessionId, expiresAtMs } = session;
    const rows = await this.#deps.db.forNode(nodeId).run((k) =>
      k
        .updateTable('sessions')
        .set({ expires_at: new Date(expiresAtMs).toISOString() })
        .where('id', '=', sessionId)
        .where('supervisor_id', '=', supervisorId)
        .where('client_id', '=', session.clientId)
        .where('revoked_at', 'is', null)
        .where('expires_at', '>', new Date(this.#deps.nowMs()).toISOString())
        .returning('id'),
    );
    if (rows.length === 0) return false;
    await withCache(() => this.#deps.cache.prolongSession(nodeId, supervisorId, sessionId, expiresAtMs));
    return true;
  }

  /** Refuses a login or refresh that the cache would refuse, before it ends older sessions in the database. */
  #requireCache({ nodeId }: NewSession): void {
    if (this.#deps.cache.refusesSessions(nodeId)) throw serviceUnavailable();
  }

  /**
   * Locks the supervisor and the client for a login; returns false when either has been disabled or changed. Logins of
   * one supervisor then run one after another, so that each counts those before it, and no login survives a revocation
   * that has just ended the others.
   */
  async #holdAccess({ nodeId, supervisorId, clientId }: NewSession, seen: SeenSupervisor): Promise<boolean> {
    const scoped = this.#deps.db.forNode(nodeId);
    const [supervisor] = await scoped.run((k) =>
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
    const [client] = await scoped.run((k) =>
      k.selectFrom('clients').select('id').where('id', '=', clientId).where('status', '=', 'active').forShare(),
    );
    return client !== undefined;
  }

  async #endOldest({ nodeId, supervisorId, sessionId }: NewSession): Promise<string[]> {
    const { db, maxSessions, nowMs } = this.#deps;
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
            // Sorted by expiry and not by creation, because sessions can be prolonged.
            .orderBy('s.expires_at', 'desc')
            .orderBy('s.id', 'desc')
            .offset(maxSessions - 1),
        )
        .returning('id'),
    );
    return rows.map((row) => row.id);
  }

  /** Adds a session to the cache. The sessions that were ended for it have usually left the cache before. */
  async #cache({ nodeId, supervisorId, sessionId, expiresAtMs }: Omit<NewSession, 'clientId'>): Promise<void> {
    const { cache, maxSessions, nowMs } = this.#deps;
    await withCache(() =>
      cache.addSession(nodeId, supervisorId, sessionId, expiresAtMs, nowMs(), maxSessions + CACHE_SURPLUS),
    );
  }

  /** Looks up a session in the database, because one created by another process is not in this process's own cache. */
  async #isLiveInDatabase(nodeId: string, subject: string, sessionId: string): Promise<boolean> {
    if (!isUuid(subject) || !isUuid(sessionId)) return false;
    const { db, nowMs } = this.#deps;
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
    await this.#cache({ nodeId, supervisorId: subject, sessionId, expiresAtMs: Date.parse(row.expires_at) });
    return true;
  }

  /** Rebuilds the cached sessions of a tenant; concurrent callers in this process share one rebuild. */
  #rebuilt(nodeId: string): Promise<void> {
    const before = this.#rebuilds.get(nodeId);
    if (before) return before;
    const rebuilding = this.#rebuild(nodeId).finally(() => this.#rebuilds.delete(nodeId));
    this.#rebuilds.set(nodeId, rebuilding);
    return rebuilding;
  }

  async #rebuild(nodeId: string): Promise<void> {
    const { cache } = this.#deps;
    const release = await withCache(() => cache.lock(`rebuild:{${nodeId}}`, REBUILD_LOCK_MS));
    if (!release) throw serviceUnavailable();
    try {
      await withCache(() => cache.rebuildSessions(nodeId, () => this.#read(nodeId)));
    } finally {
      await release();
    }
  }

  async #read(nodeId: string): Promise<NodeSessions> {
    const { db, nowMs } = this.#deps;
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

function placeOf(which: SessionsOf): { column: 'supervisor_id' | 'client_id' | 'id'; id: string } {
  if ('supervisorId' in which) return { column: 'supervisor_id', id: which.supervisorId };
  return 'clientId' in which ? { column: 'client_id', id: which.clientId } : { column: 'id', id: which.sessionId };
}

async function withCache<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof CacheUnavailableError ? serviceUnavailable(error) : error;
  }
}

import { isUuid } from '../../lib/input.ts';
import type { Principal } from '../identity/principal.ts';
import type { AccessChange, AccessChanges } from './access-changes.ts';
import { SessionCache, type SessionCacheParts } from './session-cache.ts';

interface NewSession {
  sessionId: string;
  nodeId: string;
  supervisorId: string;
  clientId: string;
  expiresAtMs: number;
}

/** The state of the supervisor by which a login was accepted. */
interface SeenSupervisor {
  passwordHash: string;
  role: string;
}

/** Selects the sessions of a supervisor or of a client, or one session. */
type SessionsOf = { supervisorId: string } | { clientId: string } | { sessionId: string };

interface SessionsParts extends SessionCacheParts {
  changes: AccessChanges;
}

/** Opens, prolongs and ends sessions: PostgreSQL decides, the cache answers. */
export class Sessions {
  readonly #parts: SessionsParts;
  readonly #cached: SessionCache;

  constructor(parts: SessionsParts) {
    this.#parts = parts;
    this.#cached = new SessionCache(parts);
  }

  /**
   * Returns whether the session of a login token is live.
   * @throws AppError 503 while the cache is down or being rebuilt.
   */
  isLive(principal: Pick<Principal, 'nodeId' | 'subject' | 'sessionId'>): boolean | Promise<boolean> {
    return this.#cached.isLive(principal);
  }

  /**
   * Opens a session; of more than the allowed number those that expire first end now. Returns false where the
   * supervisor or the client has been disabled or changed since the login was accepted, and where the session exists or
   * has existed.
   */
  async open(session: NewSession, seen: SeenSupervisor): Promise<boolean> {
    const { db, changes } = this.#parts;
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
    await this.#cached.add(session);
    return true;
  }

  /** Ends sessions, within the transaction of `AccessChanges.commit`, and hands each to `ended`. */
  async end(nodeId: string, which: SessionsOf, ended: (change: AccessChange) => void): Promise<void> {
    if ('sessionId' in which && !isUuid(which.sessionId)) return;
    const { column, id } = placeOf(which);
    const now = new Date(this.#parts.nowMs()).toISOString();
    const rows = await this.#parts.db
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

  /** Removes sessions that have ended from the cache. */
  forget(changes: readonly AccessChange[]): Promise<void> {
    return this.#cached.forget(changes);
  }

  /** Prolongs a session that is not revoked. Returns false where there is none. */
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
    await this.#cached.prolong(session);
    return true;
  }

  /**
   * Locks the supervisor and the client for a login: logins of one supervisor run one after another, so that each
   * counts those before it, and none survives what has just ended the others.
   */
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
            // A session that was prolonged expires late.
            .orderBy('s.expires_at', 'desc')
            .orderBy('s.id', 'desc')
            .offset(maxSessions - 1),
        )
        .returning('id'),
    );
    return rows.map((row) => row.id);
  }
}

function placeOf(which: SessionsOf): { column: 'supervisor_id' | 'client_id' | 'id'; id: string } {
  if ('supervisorId' in which) return { column: 'supervisor_id', id: which.supervisorId };
  return 'clientId' in which ? { column: 'client_id', id: which.clientId } : { column: 'id', id: which.sessionId };
}

import { isUuid } from '../lib/input.ts';
import type { AccessChange, AccessChanges } from './access-changes.ts';
import type { Principal } from './principal.ts';
import { SessionCache, type SessionCacheParts } from './session-cache.ts';

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

/** Whose sessions, or which one. */
export type SessionsOf = { supervisorId: string } | { clientId: string } | { sessionId: string };

interface SessionsParts extends SessionCacheParts {
  changes: AccessChanges;
}

/** The live logins: PostgreSQL decides, the cache answers. */
export class Sessions {
  readonly #parts: SessionsParts;
  readonly #cached: SessionCache;

  constructor(parts: SessionsParts) {
    this.#parts = parts;
    this.#cached = new SessionCache(parts);
  }

  /**
   * Whether the login token's session is still live.
   * @throws AppError 503 while the cache is away or being rebuilt.
   */
  isLive(principal: Pick<Principal, 'nodeId' | 'subject' | 'sessionId'>): boolean | Promise<boolean> {
    return this.#cached.isLive(principal);
  }

  /**
   * Records a login; beyond the allowed number those that would end first end now. False where the supervisor, seen with
   * this password and role, or the client has been disabled or changed since, and where there is, or was, the session.
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

  /** Ends sessions, within the transaction of `commit`, whose `ended` it tells. */
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

  /** Takes sessions that have ended out of the cache. */
  forget(changes: readonly AccessChange[]): Promise<void> {
    return this.#cached.forget(changes);
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
    await this.#cached.prolong(session);
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
}

function placeOf(which: SessionsOf): { column: 'supervisor_id' | 'client_id' | 'id'; id: string } {
  if ('supervisorId' in which) return { column: 'supervisor_id', id: which.supervisorId };
  return 'clientId' in which ? { column: 'client_id', id: which.clientId } : { column: 'id', id: which.sessionId };
}

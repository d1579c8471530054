import DataLoader from 'dataloader';
import { BoundedMap } from '../../lib/bounded-map.ts';
import { isUuid } from '../../lib/input.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import type { Db } from '../../platform/database/database.ts';
import { isOneOf } from '../../platform/database/keyset-list.ts';
import { serviceUnavailable } from '../../platform/errors.ts';
import { outsideRequest } from '../../platform/held-memory.ts';
import type { Principal } from '../identity/callers.ts';
import type { SupervisorRecord } from '../supervisors/supervisors.service.ts';
import type { AccessChange, AccessChanges } from './access-changes.ts';

/** A session that a login creates or a refresh prolongs. */
export interface NewSession {
  sessionId: string;
  nodeId: string;
  supervisorId: string;
  clientId: string;
  expiresAtMs: number;
}

/** A session that the database had as not revoked. */
interface KnownSession {
  nodeId: string;
  subject: string;
  expiresAtMs: number;
}

/** A selection of sessions: all of a supervisor, all of a client, or a single one. */
type SessionsOf = { supervisor_id: string } | { client_id: string } | { id: string };

/** The supervisor when a login was accepted. */
type SeenSupervisor = Pick<SupervisorRecord, 'passwordHash' | 'role'>;

const MAX_KNOWN = 50_000;
/** The longest time, in ms, that a request waits until its session has been read. */
const READ_WITHIN_MS = 2_000;

/**
 * Creates, prolongs and ends sessions. The database decides. Each process caches the sessions that it has seen, which
 * `forget` corrects; a session that is not cached is read, so that dropping one never ends it.
 */
export class Sessions {
  readonly #deps;
  readonly #maxKnown: number;
  #known: BoundedMap<string, KnownSession>;
  /** The generation of the database that `#known` was read in. */
  #knownIn: number;
  /** The sessions that were ended during the read that is running; undefined while none is. */
  #ended: Set<string> | undefined;
  #reading: Promise<unknown> = Promise.resolve();
  /** Reads sessions, one statement after another: what is asked for while one runs is in the next, of any tenant. */
  readonly #reads = new DataLoader((ids: readonly string[]) => this.#read(ids), {
    cache: false,
    batchScheduleFn: (read) => void this.#reading.then(read),
  });

  constructor(
    deps: {
      db: Db;
      changes: AccessChanges;
      /** Returns a number that changes when another server is met, which may lack what was last committed. */
      generation(): number;
      maxSessions: number;
      /** The clock of the sessions' ends, in ms since 1970. */
      clock: { nowMs(): number };
      /** Called after a session was created or prolonged. Never rejects. */
      mirror?: ((session: NewSession) => Promise<void>) | undefined;
    },
    maxKnown = MAX_KNOWN,
  ) {
    this.#deps = deps;
    this.#maxKnown = maxKnown;
    this.#known = new BoundedMap(maxKnown);
    this.#knownIn = deps.generation();
  }

  /**
   * Checks whether the session of a login token is live. Without a statement if the session is cached; sessions that
   * end are checked by the deny list first.
   * @throws Refusal `service_unavailable` when the session cannot be read.
   */
  async isLive({ nodeId, subject, sessionId }: Pick<Principal, 'nodeId' | 'subject' | 'sessionId'>): Promise<boolean> {
    if (sessionId === undefined || !isUuid(sessionId)) return false;
    const { clock } = this.#deps;
    this.#followServer();
    let session = this.#known.get(sessionId);
    // A refresh by another process may have prolonged it.
    if (!session || session.expiresAtMs <= clock.nowMs()) session = await this.#readSoon(sessionId);
    return session?.nodeId === nodeId && session.subject === subject && session.expiresAtMs > clock.nowMs();
  }

  /**
   * Creates a session. When the supervisor then has more than `maxSessions`, those that expire first are ended. Returns
   * false when the supervisor or the client has been disabled or changed since the login was accepted, and when the
   * session exists or has existed.
   */
  async open(session: NewSession, seen: SeenSupervisor): Promise<boolean> {
    const { nodeId, supervisorId, sessionId, expiresAtMs } = session;
    const isOpen = await this.#deps.changes.commit(async (recordRevocation) => {
      if (!(await this.#holdAccess(session, seen))) return false;
      const row = {
        id: sessionId,
        node_id: nodeId,
        supervisor_id: supervisorId,
        client_id: session.clientId,
        expires_at: new Date(expiresAtMs).toISOString(),
      };
      const [added] = await this.#deps.db.forNode(nodeId).run((k) =>
        k
          .insertInto('sessions')
          .values(row)
          .onConflict((conflict) => conflict.column('id').doNothing())
          .returning('id'),
      );
      if (!added) return false;
      const oldest = await this.#endOldest(session);
      for (const id of oldest) recordRevocation({ kind: 'session', nodeId, subject: supervisorId, item: id });
      return true;
    });
    if (isOpen) await this.#deps.mirror?.(session);
    return isOpen;
  }

  /** Ends sessions within the transaction of `AccessChanges.commit`, and passes each one to `recordRevocation`. */
  async end(nodeId: string, which: SessionsOf, recordRevocation: (change: AccessChange) => void): Promise<void> {
    if ('id' in which && !isUuid(which.id)) return;
    const now = this.#now();
    const rows = await this.#deps.db.forNode(nodeId).run((k) =>
      k
        .updateTable('sessions')
        .set({ revoked_at: now })
        .where('revoked_at', 'is', null)
        .where('expires_at', '>', now)
        .where((eb) => eb.and(which))
        .returning(['id', 'supervisor_id']),
    );
    for (const row of rows) recordRevocation({ kind: 'session', nodeId, subject: row.supervisor_id, item: row.id });
  }

  /** Drops ended sessions from the cache, and from the result of a read in progress, which may have begun before. */
  forget(changes: readonly AccessChange[]): void {
    for (const { kind, item } of changes) {
      if (kind !== 'session' || item === null) continue;
      this.#known.delete(item);
      this.#ended?.add(item);
    }
  }

  /** Prolongs a live session; returns false when there is none. */
  async prolong(session: NewSession): Promise<boolean> {
    const { nodeId, supervisorId, sessionId, expiresAtMs } = session;
    const rows = await this.#deps.db.forNode(nodeId).run((k) =>
      k
        .updateTable('sessions')
        .set({ expires_at: new Date(expiresAtMs).toISOString() })
        .where('id', '=', sessionId)
        .where('supervisor_id', '=', supervisorId)
        .where('client_id', '=', session.clientId)
        .where('revoked_at', 'is', null)
        .where('expires_at', '>', this.#now())
        .returning('id'),
    );
    if (rows.length === 0) return false;
    await this.#deps.mirror?.(session);
    return true;
  }

  #now(): string {
    return new Date(this.#deps.clock.nowMs()).toISOString();
  }

  /** Empties the cache when the database's server has changed. */
  #followServer(): void {
    const generation = this.#deps.generation();
    if (generation === this.#knownIn) return;
    this.#known = new BoundedMap(this.#maxKnown);
    this.#knownIn = generation;
  }

  async #readSoon(sessionId: string): Promise<KnownSession | undefined> {
    try {
      return await withTimeout(this.#reads.load(sessionId), READ_WITHIN_MS);
    } catch (error) {
      throw serviceUnavailable(error);
    }
  }

  #read(ids: readonly string[]): Promise<(KnownSession | undefined)[]> {
    const reading = outsideRequest(() => this.#readNow(ids));
    const isOver = () => {
      this.#ended = undefined;
    };
    this.#reading = reading.then(isOver, isOver);
    return reading;
  }

  async #readNow(ids: readonly string[]): Promise<(KnownSession | undefined)[]> {
    const endedIds = new Set<string>();
    this.#ended = endedIds;
    const generation = this.#deps.generation();
    const rows = await this.#deps.db.unscoped('sessions of all nodes').run((k) =>
      k
        .selectFrom('sessions')
        .select(['id', 'node_id', 'supervisor_id', 'expires_at'])
        .where((eb) => isOneOf(eb, 'id', ids))
        .where('revoked_at', 'is', null),
    );
    const live = new Map<string, KnownSession>();
    for (const { id, node_id: nodeId, supervisor_id: subject, expires_at } of rows) {
      if (!endedIds.has(id)) live.set(id, { nodeId, subject, expiresAtMs: Date.parse(expires_at) });
    }
    this.#followServer();
    // What a former server had says nothing about the present one.
    if (generation === this.#knownIn) for (const [id, session] of live) this.#known.set(id, session);
    return ids.map((id) => live.get(id));
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
    const now = this.#now();
    const rows = await this.#deps.db.forNode(nodeId).run((k) =>
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
            .offset(this.#deps.maxSessions - 1),
        )
        .returning('id'),
    );
    return rows.map((row) => row.id);
  }
}

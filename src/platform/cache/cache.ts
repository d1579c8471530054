import type { CountedFailure, CountedRequest, RequestLimits } from './counts.rules.ts';

/** Thrown when the cache does not respond. The command may or may not have taken effect. */
export class CacheUnavailableError extends Error {
  override name = 'CacheUnavailableError';

  constructor(cause?: unknown) {
    super('the cache is unavailable', cause === undefined ? undefined : { cause });
  }
}

/**
 * Whether a session is live. `unready` means that the cache cannot say: it was emptied or lost its last writes, and has
 * not been rebuilt yet.
 */
export type SessionState = 'live' | 'absent' | 'unready';

interface CachedSession {
  subject: string;
  sessionId: string;
  expiresAtMs: number;
}

/** The sessions of a tenant, as read from the database. */
export interface NodeSessions {
  live: readonly CachedSession[];
  /** The sessions that were revoked before their expiry. */
  ended?: readonly Omit<CachedSession, 'expiresAtMs'>[];
}

/**
 * The data that all processes share in memory; where it differs from the database, the database is right. Every method
 * rejects (a synchronous one throws) with a CacheUnavailableError while the cache is down, and within two seconds of
 * when it freezes.
 *
 * A session that was removed cannot be added again for a minute: a login, a refresh or a rebuild that read the database
 * before the removal may reach the cache after it.
 */
export interface Cache {
  /** Returns whether a session is live at `nowMs`. One round trip; the in-process cache is synchronous. */
  sessionState(nodeId: string, subject: string, sessionId: string, nowMs: number): SessionState | Promise<SessionState>;

  /**
   * Adds a session after removing the subject's expired ones, and evicts those that expire first so that at most
   * `maxSessions` are left. Returns the ids of the evicted ones.
   */
  addSession(
    nodeId: string,
    subject: string,
    sessionId: string,
    expiresAtMs: number,
    nowMs: number,
    maxSessions: number,
  ): Promise<string[]>;

  /**
   * Extends the life of a session that is present, and never shortens it. Call it after the database has committed the
   * same.
   */
  prolongSession(nodeId: string, subject: string, sessionId: string, expiresAtMs: number): Promise<void>;

  /** Removes sessions of a subject, whether present or not. Call it after the database has committed the removal. */
  removeSessions(nodeId: string, subject: string, sessionIds: readonly string[]): Promise<void>;

  /**
   * Calls `read` for the sessions of a tenant, removes the ended ones, adds the live ones, and then marks the tenant as
   * ready. Rejects, and leaves the tenant unready, if the cache is lost or emptied meanwhile, since a removal may be
   * lost too.
   */
  rebuildSessions(nodeId: string, read: () => Promise<NodeSessions>): Promise<void>;

  /**
   * Counts a request of a client against each of its limits, or against none if one is used up. One round trip; the
   * in-process cache is synchronous. `seed` is the quota used this month according to another source: counting
   * continues from the larger number. Without it, the outcome is `unknown` if the cache has no count for the month.
   */
  countRequest(
    clientId: string,
    limits: RequestLimits,
    nowMs: number,
    seed: number | undefined,
  ): CountedRequest | Promise<CountedRequest>;

  /**
   * Counts a failure of a key, in a window of one minute that begins with its first call; with a step of 0 it only reads
   * the count. One round trip.
   */
  countFailure(key: string, nowMs: number, step?: 0 | 1): CountedFailure | Promise<CountedFailure>;

  /** A number that changes when the cache was down for a time, or has lost its last writes. */
  readonly generation: number;

  /**
   * Takes a lock that all processes share, and that expires after `ttlMs`.
   * @returns the function that releases it, which never rejects; undefined if another holder has the lock.
   */
  lock(name: string, ttlMs: number): Promise<(() => Promise<void>) | undefined>;

  /** Writes and reads; rejects if the cache does not respond or refuses. */
  checkHealth(): Promise<void>;

  /** Whether a server refused the last `checkHealth`, by an error and not by silence. */
  readonly isRefusing: boolean;

  /** Whether the server that has the sessions of a tenant did. Without a round trip. */
  refusesSessions(nodeId: string): boolean;

  stop(): Promise<void>;
}

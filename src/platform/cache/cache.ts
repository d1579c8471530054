import type { CountedFailure, CountedRequest, RequestLimits } from './counts.rules.ts';

/** Says that the cache does not reply now. Whether the command has taken effect is not known. */
export class CacheUnavailableError extends Error {
  override name = 'CacheUnavailableError';

  constructor(cause?: unknown) {
    super('the cache is unavailable', cause === undefined ? undefined : { cause });
  }
}

/** `unready`: the cache was emptied, or lost its last writes, and is not rebuilt yet: it knows nothing of sessions. */
export type SessionState = 'live' | 'absent' | 'unready';

interface CachedSession {
  subject: string;
  sessionId: string;
  expiresAtMs: number;
}

/** One that is revoked, and would live on otherwise. */
interface EndedSession {
  subject: string;
  sessionId: string;
}

/** The sessions of a tenant, as the database has them. */
export interface NodeSessions {
  live: readonly CachedSession[];
  ended?: readonly EndedSession[];
}

/**
 * The shared memory of all processes; where it and the database differ, the database is right. Every method rejects (a
 * synchronous one throws) with a CacheUnavailableError while the cache is down, and within two seconds of its freezing.
 *
 * A session that was removed does not come back for a minute, whatever adds it: a login, a refresh or a rebuild that
 * read the database before the removal may reach the cache after it.
 */
export interface Cache {
  /** Whether a session lives at `nowMs`. One round trip; the in-process cache is synchronous. */
  sessionState(nodeId: string, subject: string, sessionId: string, nowMs: number): SessionState | Promise<SessionState>;

  /**
   * Adds a session, after dropping the subject's expired ones. Of the others the ones that end first go, so that no
   * more than `maxSessions` are left; gives the ids of those.
   */
  addSession(
    nodeId: string,
    subject: string,
    sessionId: string,
    expiresAtMs: number,
    nowMs: number,
    maxSessions: number,
  ): Promise<string[]>;

  /** Lets a session that is present live longer, never shorter. Call it after the database has agreed. */
  prolongSession(nodeId: string, subject: string, sessionId: string, expiresAtMs: number): Promise<void>;

  /** Removes sessions of a subject; unknown ones too. Call it after the database has committed. */
  removeSessions(nodeId: string, subject: string, sessionIds: readonly string[]): Promise<void>;

  /**
   * Reads the sessions of a tenant, removes those that have ended, adds every live one, then makes the tenant ready. A cache
   * that is lost, or emptied, from before the reading on does not become ready: it may have lost a removal, too.
   */
  rebuildSessions(nodeId: string, read: () => Promise<NodeSessions>): Promise<void>;

  /**
   * Counts a request of a client in every limit that it has, or in none where one is used up: one round trip; the
   * in-process cache is synchronous. `seed` is the quota used in this month as known from elsewhere (the larger one
   * goes on); without it a month that the cache knows nothing of is `unknown`.
   */
  countRequest(
    clientId: string,
    limits: RequestLimits,
    nowMs: number,
    seed: number | undefined,
  ): CountedRequest | Promise<CountedRequest>;

  /** Counts a failure of a key, for a minute from its first one on. One round trip. */
  countFailure(key: string, nowMs: number): CountedFailure | Promise<CountedFailure>;

  /** Changes when the cache was out of reach meanwhile, or has lost its last writes. */
  readonly generation: number;

  /**
   * Takes a lock among all processes that ends by itself after `ttlMs`.
   * @returns the function that releases it, which never rejects; undefined where somebody else has it.
   */
  lock(name: string, ttlMs: number): Promise<(() => Promise<void>) | undefined>;

  /** Resolves when the cache replies. */
  checkHealth(): Promise<void>;

  stop(): Promise<void>;
}

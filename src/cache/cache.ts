import type { CountedFailure } from './failure-counts.rules.ts';
import type { CountedRequest, RequestLimits } from './request-counts.rules.ts';

/** `unready`: the cache was emptied, or lost what it was told last, and is not rebuilt yet: it knows nothing of sessions. */
export type SessionState = 'live' | 'absent' | 'unready';

export interface CachedSession {
  subject: string;
  sessionId: string;
  expiresAtMs: number;
}

/** One that is revoked, and would live on otherwise. */
export interface EndedSession {
  subject: string;
  sessionId: string;
}

/** The sessions of a node, as the database has them. */
export interface NodeSessions {
  live: readonly CachedSession[];
  ended?: readonly EndedSession[];
}

/**
 * The shared memory of all replicas: it answers, the database decides. Every method rejects (where it answers at once:
 * throws) with a CacheUnavailableError while the cache is away, and within two seconds of its freezing.
 *
 * A session that was removed does not come back for a minute, whatever adds it: a login, a refresh or a rebuild that
 * read the database before the removal may reach the cache after it.
 */
export interface Cache {
  /** Whether a session lives at `nowMs`. One round trip; the in-process cache answers at once. */
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
   * Reads the sessions of a node, removes those that have ended, adds every live one, then makes the node ready. A cache
   * that is lost, or emptied, from before the reading on does not become ready: it may have lost a removal, too.
   */
  rebuildSessions(nodeId: string, read: () => Promise<NodeSessions>): Promise<void>;

  /**
   * Counts a request of a client in every limit that it has, or in none where one is used up: one round trip; the
   * in-process cache answers at once. `seed` is the quota used in this month as known from elsewhere (the larger one
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

  /** Another number than before: the cache was out of reach meanwhile, or has lost what it was told last. */
  readonly generation: number;

  /**
   * Takes a lock of all replicas that ends by itself after `ttlMs`.
   * @returns the function that releases it, which never rejects; undefined where somebody else has it.
   */
  lock(name: string, ttlMs: number): Promise<(() => Promise<void>) | undefined>;

  /** Resolves when the cache answers. */
  checkHealth(): Promise<void>;

  stop(): Promise<void>;
}

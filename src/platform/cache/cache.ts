import type { CountedFailure, CountedRequest, RequestLimits } from './counts.rules.ts';

/** Thrown when the cache does not respond or rejects a command, which may or may not have taken effect. The message has the reply. */
export class CacheUnavailableError extends Error {
  override name = 'CacheUnavailableError';
  readonly store = 'cache';

  constructor(cause?: unknown) {
    super(
      `the cache is unavailable${cause instanceof Error ? `: ${cause.message}` : ''}`,
      cause === undefined ? undefined : { cause },
    );
  }
}

/**
 * The counts that all processes share in memory, and that may be lost at any time. Every method rejects (a synchronous
 * one throws) with a CacheUnavailableError while the cache is down or refuses, and within two seconds of when it
 * freezes.
 */
export interface Cache {
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

  /**
   * Raises a position that is kept for all processes, unless it is higher already, and returns the higher one. Positions
   * compare as texts.
   */
  raisePosition(position: string): Promise<string>;

  /** Writes and reads; rejects if the cache does not respond or refuses. */
  checkHealth(): Promise<void>;

  stop(): Promise<void>;
}

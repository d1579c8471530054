import { BoundedMap } from '../../lib/bounded-map.ts';
import {
  type CountedFailure,
  type CountedRequest,
  countRequest,
  FAILURE_WINDOW_MS,
  NOTHING_COUNTED,
  type RequestCounts,
  type RequestLimits,
  secondsLeft,
} from './counts.rules.ts';

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

const MAX_KEYS = 50_000;

/**
 * The failures that one process has counted, for at most 50,000 keys: beyond that, the key that was counted longest ago
 * is forgotten.
 */
export class MemoryFailureCounts {
  readonly #failures: BoundedMap<string, { startedAtMs: number; count: number }>;

  constructor(maxKeys = MAX_KEYS) {
    this.#failures = new BoundedMap(maxKeys);
  }

  count(key: string, nowMs: number, step: 0 | 1 = 1): CountedFailure {
    const last = this.#failures.get(key);
    const { startedAtMs, count } =
      last && nowMs < last.startedAtMs + FAILURE_WINDOW_MS ? last : { startedAtMs: nowMs, count: 0 };
    this.#failures.set(key, { startedAtMs, count: count + step });
    return { count: count + step, resetInSeconds: secondsLeft(startedAtMs, nowMs) };
  }
}

const MAX_CLIENTS = 10_000;

/**
 * The requests that one process has counted, for at most 10,000 clients: beyond that, the client whose last request was
 * longest ago is forgotten.
 */
export class MemoryRequestCounts {
  readonly #counts: BoundedMap<string, RequestCounts>;

  constructor(maxClients = MAX_CLIENTS) {
    this.#counts = new BoundedMap(maxClients);
  }

  count(clientId: string, limits: RequestLimits, nowMs: number, seed: number | undefined): CountedRequest {
    const counted = countRequest(this.#counts.get(clientId) ?? NOTHING_COUNTED, limits, nowMs, seed);
    if (counted.outcome !== 'counted' && seed === undefined) return counted;
    this.#counts.set(clientId, counted);
    return counted;
  }

  get size(): number {
    return this.#counts.size;
  }

  /** Forgets the counts of a client. Returns false if there were none. */
  forget(clientId: string): boolean {
    return this.#counts.delete(clientId);
  }
}

/** The cache of a single process. */
export class MemoryCache implements Cache {
  readonly #requests = new MemoryRequestCounts();
  readonly #failures = new MemoryFailureCounts();
  #position = '';

  countRequest(clientId: string, limits: RequestLimits, nowMs: number, seed: number | undefined): CountedRequest {
    return this.#requests.count(clientId, limits, nowMs, seed);
  }

  countFailure(key: string, nowMs: number, step?: 0 | 1): CountedFailure {
    return this.#failures.count(key, nowMs, step);
  }

  async raisePosition(position: string): Promise<string> {
    if (position > this.#position) this.#position = position;
    return this.#position;
  }

  async checkHealth(): Promise<void> {}

  async stop(): Promise<void> {}
}

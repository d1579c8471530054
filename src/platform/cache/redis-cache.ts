import { ErrorReply } from 'redis';
import { type Cache, CacheUnavailableError } from './cache.ts';
import {
  type CountedFailure,
  type CountedRequest,
  FAILURE_WINDOW_MS,
  monthAtOf,
  NOTHING_COUNTED,
  RATE_WINDOWS,
  type RequestLimits,
  secondsLeft,
  WINDOWS,
} from './counts.rules.ts';
import { RedisConnection } from './redis-connection.ts';
import { COUNT_FAILURE, COUNT_REQUEST, type LuaScript, RAISE_POSITION } from './redis-scripts.ts';

const [{ numberOf: secondOf }] = RATE_WINDOWS;

/** Requests of a client that one call of the script `COUNT_REQUEST` counts: of one second, so that they are alike. */
interface Counting {
  readonly limits: RequestLimits;
  readonly nowMs: number;
  requests: number;
  readonly reply: Promise<unknown>;
}

/**
 * Parses the reply of the script `COUNT_REQUEST` for one of the requests, numbered from 0; windows that it does not
 * number belong to `nowMs`. @throws CacheUnavailableError for an unexpected reply.
 */
function parseCount(reply: unknown, nowMs: number, index: number): CountedRequest {
  if (reply === -1) return { ...NOTHING_COUNTED, outcome: 'unknown' };
  if (!Array.isArray(reply)) throw new CacheUnavailableError(new Error('a stored count is malformed'));
  const [counted = 0, ...numbers]: number[] = reply;
  // What those behind it have added, which are counted as long as none is refused.
  const later = Math.max(0, counted - 1 - index);
  const counts = { ...NOTHING_COUNTED };
  for (const [windowIndex, { at, count, numberOf }] of WINDOWS.entries()) {
    counts[at] = numbers[WINDOWS.length + windowIndex] ?? numberOf(nowMs);
    counts[count] = (numbers[windowIndex] ?? 0) - later;
  }
  return { ...counts, outcome: index < counted ? 'counted' : 'refused' };
}

export interface RedisCacheOptions {
  url: string;
  /** The prefix of every key. */
  keyPrefix?: string | undefined;
  /** Called once for each outage, with its first error, and once when a server begins to reject the health check. */
  onOutage?: ((error: unknown) => void) | undefined;
}

/** The cache that all processes share. All keys of a script are in one slot, since they have the same hash tag. */
export class RedisCache implements Cache {
  readonly #deps;
  readonly #countings = new Map<string, Counting>();
  /** Whether a server answered the last health check by an error. */
  #isRejected = false;

  /**
   * Opens the cache even if Redis does not respond yet; needs Redis 6.2 or later.
   * @throws ConfigError if Redis is a cluster and the URL names a database other than 0.
   */
  static async open(options: RedisCacheOptions): Promise<RedisCache> {
    return new RedisCache(await RedisConnection.open(options), options);
  }

  private constructor(redis: RedisConnection, { keyPrefix = '', onOutage = () => undefined }: RedisCacheOptions) {
    this.#deps = { redis, prefix: keyPrefix, onOutage };
  }

  /** Counts the requests of a client that come within one tick of the event loop, and the same second, by one call. */
  async countRequest(
    clientId: string,
    limits: RequestLimits,
    nowMs: number,
    seed: number | undefined,
  ): Promise<CountedRequest> {
    if (seed !== undefined) {
      return parseCount(await this.#count(clientId, { limits, nowMs, requests: 1 }, seed), nowMs, 0);
    }
    let counting = this.#countings.get(clientId);
    if (counting?.limits !== limits || secondOf(counting.nowMs) !== secondOf(nowMs)) {
      counting = this.#gather(clientId, limits, nowMs);
    }
    const index = counting.requests++;
    return parseCount(await counting.reply, counting.nowMs, index);
  }

  #gather(clientId: string, limits: RequestLimits, nowMs: number): Counting {
    const { promise: reply, resolve } = Promise.withResolvers<unknown>();
    const counting: Counting = { limits, nowMs, requests: 0, reply };
    this.#countings.set(clientId, counting);
    setImmediate(() => {
      if (this.#countings.get(clientId) === counting) this.#countings.delete(clientId);
      resolve(this.#count(clientId, counting, -1));
    });
    return counting;
  }

  #count(clientId: string, { limits, nowMs, requests }: Omit<Counting, 'reply'>, seed: number): Promise<unknown> {
    const args = [nowMs, monthAtOf(nowMs), seed, requests, ...WINDOWS.map(({ limit }) => limits[limit])];
    return this.#deps.redis.run(COUNT_REQUEST, [`${this.#deps.prefix}limits:{${clientId}}`], args);
  }

  async countFailure(key: string, nowMs: number, step: 0 | 1 = 1): Promise<CountedFailure> {
    const keys = [`${this.#deps.prefix}failures:{${key}}`];
    const reply = await this.#deps.redis.run(COUNT_FAILURE, keys, [nowMs, FAILURE_WINDOW_MS, step]);
    const [count, startedAtMs] = Array.isArray(reply) ? reply.map(Number) : [];
    return { count: count ?? 0, resetInSeconds: secondsLeft(startedAtMs ?? nowMs, nowMs) };
  }

  async raisePosition(position: string): Promise<string> {
    return String(await this.#deps.redis.run(RAISE_POSITION, [`${this.#deps.prefix}position`], [position]));
  }

  async checkHealth(): Promise<void> {
    const wasRejected = this.#isRejected;
    this.#isRejected = false;
    try {
      await this.#deps.redis.checkHealth(`${this.#deps.prefix}health`);
    } catch (error) {
      this.#isRejected = error instanceof CacheUnavailableError && error.cause instanceof ErrorReply;
      if (this.#isRejected && !wasRejected) this.#deps.onOutage(error);
      throw error;
    }
  }

  /** Runs a script on keys of one slot, for `session-mirror.ts`: to be deleted with it. */
  run(script: LuaScript, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    return this.#deps.redis.run(
      script,
      keys.map((key) => `${this.#deps.prefix}${key}`),
      args,
    );
  }

  async stop(): Promise<void> {
    await this.#deps.redis.stop();
  }
}

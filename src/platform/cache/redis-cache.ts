import { randomUUID } from 'node:crypto';
import { type Cache, CacheUnavailableError, type NodeSessions, type SessionState } from './cache.ts';
import {
  type CountedFailure,
  type CountedRequest,
  FAILURE_WINDOW_MS,
  HOUR_MS,
  MINUTE_MS,
  monthAtOf,
  NOTHING_COUNTED,
  type RequestLimits,
  SECOND_MS,
  secondsLeft,
} from './counts.rules.ts';
import { RedisConnection } from './redis-connection.ts';
import {
  ADD_SESSION,
  BEGIN_REBUILD,
  COUNT_FAILURE,
  COUNT_REQUEST,
  MAKE_READY,
  PROLONG_SESSION,
  REBUILD_SUBJECT,
  RELEASE_LOCK,
  REMOVE_SESSIONS,
  SESSION_STATE,
  TAKE_LOCK,
} from './redis-scripts.ts';

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
function parseCount(reply: unknown, { nowMs, limits }: Omit<Counting, 'reply'>, index: number): CountedRequest {
  if (reply === -1) return { ...NOTHING_COUNTED, outcome: 'unknown' };
  if (!Array.isArray(reply)) throw new CacheUnavailableError(new Error('a stored count is malformed'));
  const counts: number[] = reply;
  const [counted = 0, second = 0, minute = 0, hour = 0, month = 0, secondAt, minuteAt, hourAt, monthAt] = counts;
  // What those behind it have added, which are counted as long as none is refused.
  const later = Math.max(0, counted - 1 - index);
  return {
    outcome: index < counted ? 'counted' : 'refused',
    secondAt: secondAt ?? Math.floor(nowMs / SECOND_MS),
    second: second - later,
    minuteAt: minuteAt ?? Math.floor(nowMs / MINUTE_MS),
    minute: minute - later,
    hourAt: hourAt ?? Math.floor(nowMs / HOUR_MS),
    hour: hour - later,
    monthAt: monthAt ?? monthAtOf(nowMs),
    month: limits.perMonth > 0 ? month - later : month,
  };
}

function secondOf(ms: number): number {
  return Math.floor(ms / SECOND_MS);
}

const REMOVED_FOR_MS = 60_000;
const REBUILD_FOR_MS = 60_000;
// Longer than any session can live, even if clocks are wrong: it only removes unused keys.
const KEY_LIFETIME_MS = 366 * 24 * 3_600_000;
const SUBJECTS_AT_ONCE = 200;

export interface RedisCacheOptions {
  url: string;
  /** The prefix of every key. */
  keyPrefix?: string | undefined;
  /** Called once for each outage, with its first error. */
  onOutage?: ((error: unknown) => void) | undefined;
  /** Called when `isRefusing` has become true, with the refusal. */
  onRefusal?: ((error: unknown) => void) | undefined;
}

/** The cache that all processes share. All keys of a script are in one slot, since they have the same hash tag. */
export class RedisCache implements Cache {
  readonly #redis: RedisConnection;
  readonly #prefix: string;
  readonly #onRefusal: (error: unknown) => void;
  readonly #countings = new Map<string, Counting>();

  /**
   * Opens the cache even if Redis does not respond yet; needs Redis 6.2 or later.
   * @throws ConfigError if Redis is a cluster and the URL names a database other than 0.
   */
  static async open(options: RedisCacheOptions): Promise<RedisCache> {
    return new RedisCache(await RedisConnection.open(options), options);
  }

  private constructor(redis: RedisConnection, { keyPrefix = '', onRefusal = () => undefined }: RedisCacheOptions) {
    this.#redis = redis;
    this.#prefix = keyPrefix;
    this.#onRefusal = onRefusal;
  }

  async sessionState(nodeId: string, subject: string, sessionId: string, nowMs: number): Promise<SessionState> {
    const [sessions, , ready] = this.#keys(nodeId, subject);
    const state = await this.#redis.route.run(SESSION_STATE, [sessions, ready], [sessionId, nowMs]);
    if (state === -1) return 'unready';
    return state === 1 ? 'live' : 'absent';
  }

  async addSession(
    nodeId: string,
    subject: string,
    sessionId: string,
    expiresAtMs: number,
    nowMs: number,
    maxSessions: number,
  ): Promise<string[]> {
    const args = [sessionId, expiresAtMs, nowMs, maxSessions, KEY_LIFETIME_MS, REMOVED_FOR_MS];
    const evicted = await this.#redis.route.run(ADD_SESSION, this.#keys(nodeId, subject), args);
    return Array.isArray(evicted) ? evicted.map(String) : [];
  }

  async prolongSession(nodeId: string, subject: string, sessionId: string, expiresAtMs: number): Promise<void> {
    await this.#redis.route.run(PROLONG_SESSION, this.#keys(nodeId, subject), [
      sessionId,
      expiresAtMs,
      KEY_LIFETIME_MS,
    ]);
  }

  async removeSessions(nodeId: string, subject: string, sessionIds: readonly string[]): Promise<void> {
    if (sessionIds.length === 0) return;
    await this.#redis.route.run(REMOVE_SESSIONS, this.#keys(nodeId, subject), [REMOVED_FOR_MS, ...sessionIds]);
  }

  async rebuildSessions(nodeId: string, read: () => Promise<NodeSessions>): Promise<void> {
    const token = randomUUID();
    const rebuilding = `${this.#prefix}rebuilding:{${nodeId}}`;
    await this.#redis.route.run(BEGIN_REBUILD, [rebuilding], [token, REBUILD_FOR_MS]);
    const { live, ended = [] } = await read();
    await ofEachSubject(ended, async (subject, own) => {
      const ids = own.map(({ sessionId }) => sessionId);
      await this.removeSessions(nodeId, subject, ids);
    });
    await ofEachSubject(live, async (subject, own) => {
      const pairs = own.flatMap(({ sessionId, expiresAtMs }) => [sessionId, expiresAtMs]);
      const keys = [...this.#keys(nodeId, subject), rebuilding];
      await this.#redis.route.run(REBUILD_SUBJECT, keys, [KEY_LIFETIME_MS, token, ...pairs]);
    });
    const isWhole = await this.#redis.route.run(MAKE_READY, [rebuilding, this.#readyKey(nodeId)], [token]);
    if (isWhole !== 1) throw new CacheUnavailableError(new Error('the cache was lost while it was rebuilt'));
  }

  /** Counts the requests of a client that come within one tick of the event loop, and the same second, by one call. */
  async countRequest(
    clientId: string,
    limits: RequestLimits,
    nowMs: number,
    seed: number | undefined,
  ): Promise<CountedRequest> {
    if (seed !== undefined) {
      const alone = { limits, nowMs, requests: 1 };
      return parseCount(await this.#count(clientId, alone, seed), alone, 0);
    }
    let counting = this.#countings.get(clientId);
    if (counting?.limits !== limits || secondOf(counting.nowMs) !== secondOf(nowMs)) {
      counting = this.#gather(clientId, limits, nowMs);
    }
    const index = counting.requests++;
    return parseCount(await counting.reply, counting, index);
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
    const { perSecond, perMinute, perHour, perMonth } = limits;
    const args = [nowMs, monthAtOf(nowMs), seed, perSecond, perMinute, perHour, perMonth, requests];
    return this.#redis.route.run(COUNT_REQUEST, [`${this.#prefix}limits:{${clientId}}`], args);
  }

  async countFailure(key: string, nowMs: number, step: 0 | 1 = 1): Promise<CountedFailure> {
    const keys = [`${this.#prefix}failures:{${key}}`];
    const reply = await this.#redis.route.run(COUNT_FAILURE, keys, [nowMs, FAILURE_WINDOW_MS, step]);
    const [count, startedAtMs] = Array.isArray(reply) ? reply.map(Number) : [];
    return { count: count ?? 0, resetInSeconds: secondsLeft(startedAtMs ?? nowMs, nowMs) };
  }

  get generation(): number {
    return this.#redis.generation;
  }

  async lock(name: string, ttlMs: number): Promise<(() => Promise<void>) | undefined> {
    const key = `${this.#prefix}lock:${name}`;
    const token = randomUUID();
    if ((await this.#redis.route.run(TAKE_LOCK, [key], [token, ttlMs])) === null) return undefined;
    return async () => {
      // A lock that cannot be released now expires.
      await this.#redis.route.run(RELEASE_LOCK, [key], [token]).catch(() => undefined);
    };
  }

  async checkHealth(): Promise<void> {
    const wasRefusing = this.isRefusing;
    try {
      await this.#redis.route.checkHealth(`${this.#prefix}health`);
    } catch (error) {
      if (this.isRefusing && !wasRefusing && error instanceof CacheUnavailableError) this.#onRefusal(error.cause);
      throw error;
    }
  }

  get isRefusing(): boolean {
    return this.#redis.route.isRefusing;
  }

  refusesSessions(nodeId: string): boolean {
    return this.#redis.route.refuses(this.#readyKey(nodeId));
  }

  async stop(): Promise<void> {
    await this.#redis.stop();
  }

  #readyKey(nodeId: string): string {
    return `${this.#prefix}ready:{${nodeId}}`;
  }

  #keys(nodeId: string, subject: string): [sessions: string, removed: string, ready: string] {
    const ofSubject = `{${nodeId}}:${subject}`;
    return [`${this.#prefix}s:${ofSubject}`, `${this.#prefix}removed:${ofSubject}`, this.#readyKey(nodeId)];
  }
}

/** Calls `work` with the sessions of each subject, for up to 200 subjects at a time. */
async function ofEachSubject<Session extends { subject: string }>(
  sessions: readonly Session[],
  work: (subject: string, own: readonly Session[]) => Promise<void>,
): Promise<void> {
  const subjects = [...Map.groupBy(sessions, ({ subject }) => subject)];
  for (let first = 0; first < subjects.length; first += SUBJECTS_AT_ONCE) {
    const some = subjects.slice(first, first + SUBJECTS_AT_ONCE);
    await Promise.all(some.map(([subject, own]) => work(subject, own)));
  }
}

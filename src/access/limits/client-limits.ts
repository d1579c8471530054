import { createHash } from 'node:crypto';
import { Counter, type Metric } from 'prom-client';
import { callerAddress } from '../../lib/ip-address.ts';
import type { Log } from '../../lib/log.ts';
import { counterBy, gauge } from '../../lib/meters.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import {
  type Cache,
  CacheUnavailableError,
  MemoryFailureCounts,
  MemoryRequestCounts,
} from '../../platform/cache/cache.ts';
import {
  type CountedFailure,
  type CountedRequest,
  monthAtOf,
  type RequestLimits,
  WINDOWS,
} from '../../platform/cache/counts.rules.ts';
import { Refusal, serviceUnavailable } from '../../platform/errors.ts';
import type { ClientRecord } from '../identity/callers.ts';
import { type LimitVerdict, verdictOf } from './limits.rules.ts';
import type { QuotaCount, QuotaCounts } from './quota-counts.ts';

/** The longest time, in ms, that a request waits for the count in the database when this process also has one. */
const SYNC_WAIT_MS = 1_000;

/** A request that is being counted, with its client's limits. */
interface Count {
  readonly use: QuotaCount;
  readonly limits: RequestLimits;
  readonly nowMs: number;
}

/**
 * Enforces the rates and monthly quotas of clients (docs/contract.md, 8), counted in the cache and saved to the
 * database. While the cache is down each process counts for itself, and no request fails because of it.
 */
export class ClientLimits {
  /** The counter of requests that were counted without the cache; to be registered with the metrics of the process. */
  readonly countedAlone = new Counter({
    name: 'portcullis_requests_counted_alone_total',
    help: 'Rate-limited requests counted locally because the cache was unavailable.',
    registers: [],
  });
  readonly #deps;
  readonly #alone = new MemoryRequestCounts();
  #isAlone = false;

  constructor(deps: {
    cache: Pick<Cache, 'countRequest'>;
    counts: Pick<QuotaCounts, 'of' | 'sync'>;
    log: Log;
    nowMs(): number;
  }) {
    this.#deps = deps;
  }

  /**
   * Counts a request against the rates and the quota of its client, or against none if one is exceeded.
   * @throws Refusal `service_unavailable` when neither the cache nor the database can return the quota's count.
   */
  async check(client: ClientRecord): Promise<LimitVerdict> {
    const nowMs = this.#deps.nowMs();
    const use = this.#deps.counts.of(client);
    const { limits } = client;
    if (WINDOWS.every(({ limit }) => limits[limit] === 0)) {
      use.used(nowMs);
      return { headers: [] };
    }
    const count = { use, limits, nowMs };
    if (limits.perMonth === 0) return this.#ask(count, undefined);
    // The first time, and after this process has counted alone, the cache lacks what processes have counted and saved.
    return use.isUnsynced || use.seeding ? this.#seed(count) : this.#ask(count, use.takeSeed(monthAtOf(nowMs)));
  }

  async #ask(count: Count, seed: number | undefined): Promise<LimitVerdict> {
    const { use, limits, nowMs } = count;
    let counted: CountedRequest;
    try {
      counted = await this.#deps.cache.countRequest(use.clientId, limits, nowMs, seed);
    } catch (error) {
      if (!(error instanceof CacheUnavailableError)) throw error;
      return this.#countAlone(count, error);
    }
    if (this.#alone.size > 0 && this.#alone.forget(use.clientId)) {
      use.isUnsynced = true;
      this.#endOutage();
    }
    if (counted.outcome === 'unknown') return this.#seed(count);
    if (limits.perMonth > 0) {
      use.noteCount(counted.monthAt, counted.month);
      // A replica that lacked the last requests has taken over: it is given their count, and this request again.
      const lostSeed = seed === undefined ? use.takeSeed(counted.monthAt) : undefined;
      if (lostSeed !== undefined && lostSeed > counted.month) return this.#ask(count, lostSeed);
    }
    return decide(count, counted);
  }

  /** Restores the count in the cache from the database, because the cache has or may have lost it. */
  async #seed(count: Count): Promise<LimitVerdict> {
    const { use } = count;
    const monthAt = monthAtOf(count.nowMs);
    if (use.seeding?.monthAt !== monthAt) {
      const seeding = { monthAt, count: this.#savedCount(use, monthAt) };
      const isOver = () => {
        if (use.seeding === seeding) use.seeding = undefined;
      };
      seeding.count.then(() => {
        use.isUnsynced = false;
        isOver();
      }, isOver);
      use.seeding = seeding;
    }
    return this.#ask(count, await use.seeding.count);
  }

  /**
   * Returns the count saved in the database; if reading takes too long and this process has a count, returns that one.
   * @throws Refusal `service_unavailable` when the database fails and this process has no count.
   */
  async #savedCount(use: QuotaCount, monthAt: number): Promise<number> {
    const saved = this.#deps.counts.sync(use, monthAt);
    if (use.known(monthAt) === undefined) {
      return saved.catch((error: unknown) => {
        throw serviceUnavailable(error);
      });
    }
    return (await withTimeout(saved, SYNC_WAIT_MS).catch(() => undefined)) ?? use.handOver(monthAt);
  }

  /** Counts the request only in this process, while the cache is down. */
  async #countAlone(count: Count, outage: CacheUnavailableError): Promise<LimitVerdict> {
    const { use, limits, nowMs } = count;
    if (!this.#isAlone) this.#beginOutage(outage);
    const monthAt = monthAtOf(nowMs);
    const seed = use.known(monthAt) ?? (limits.perMonth > 0 ? await this.#savedCount(use, monthAt) : undefined);
    this.countedAlone.inc();
    const counted = this.#alone.count(use.clientId, limits, nowMs, seed);
    if (limits.perMonth > 0 && counted.outcome === 'counted') use.countedAlone(counted.monthAt);
    return decide(count, counted);
  }

  #beginOutage(error: unknown): void {
    this.#isAlone = true;
    this.#deps.log.warn({ err: error }, 'Redis unavailable; counting client requests in this process only');
  }

  // Reports the end of an outage, once a client that was counted in this process alone is counted in the cache again.
  // Other clients prove nothing, as only a part of a Redis Cluster may have been down.
  #endOutage(): void {
    if (!this.#isAlone) return;
    this.#isAlone = false;
    this.#deps.log.info({}, 'Redis available again; it counts client requests');
  }
}

function decide({ use, limits, nowMs }: Count, counted: CountedRequest): LimitVerdict {
  if (counted.outcome === 'counted') use.used(nowMs);
  return verdictOf(limits, counted, nowMs);
}

const MAX_FAILURES = 20;
const TOO_MANY = { reason: 'wrong_secrets' };

/**
 * Limits guessing of client secrets, and of passwords at the console. While the cache is down each process counts for
 * itself.
 */
export class Throttle {
  /** The counter of wrong client secrets by outcome; to be registered with the metrics of the process. */
  readonly wrongSecrets = counterBy('outcome', ['refused', 'throttled'], {
    name: 'portcullis_wrong_secrets_total',
    help: 'Failed client authentications, by outcome (refused, throttled).',
  });
  readonly #deps;
  readonly #alone = new MemoryFailureCounts();

  constructor(deps: { cache: Pick<Cache, 'countFailure'>; nowMs(): number }) {
    this.#deps = deps;
  }

  /**
   * Counts a wrong secret for a caller and, if the request named one, a client. A correct secret is never throttled.
   * `subject` is whom the request named, for its record.
   * @throws Refusal `rate_limit_exceeded` from the twenty-first wrong secret within a minute on.
   */
  async failed(address: string, clientId: string | undefined, subject?: string): Promise<void> {
    const { count, resetInSeconds } = await this.#count(keyOf(address, clientId));
    const isThrottled = count > MAX_FAILURES;
    this.wrongSecrets.inc({ outcome: isThrottled ? 'throttled' : 'refused' });
    if (isThrottled)
      throw new Refusal('rate_limit_exceeded', { ...TOO_MANY, retryAfterSeconds: resetInSeconds, subject });
  }

  /**
   * Rejects a caller that has failed too often, even with the right secret.
   * @throws Refusal `rate_limit_exceeded` after twenty failures within a minute.
   */
  async requireAttemptsLeft(address: string, clientId: string | undefined): Promise<void> {
    const { count, resetInSeconds } = await this.#count(keyOf(address, clientId), 0);
    if (count >= MAX_FAILURES)
      throw new Refusal('rate_limit_exceeded', { ...TOO_MANY, retryAfterSeconds: resetInSeconds });
  }

  async #count(key: string, step: 0 | 1 = 1): Promise<CountedFailure> {
    const { cache, nowMs } = this.#deps;
    try {
      return await cache.countFailure(key, nowMs(), step);
    } catch (error) {
      if (!(error instanceof CacheUnavailableError)) throw error;
      return this.#alone.count(key, nowMs(), step);
    }
  }
}

/** Returns a hash of caller and client, so that the key has a fixed length. */
function keyOf(address: string, clientId: string | undefined): string {
  return createHash('sha256')
    .update(JSON.stringify([callerAddress(address), clientId ?? null]))
    .digest('base64url');
}

/** How far apart two wrong secrets of a client may be, in ms, to count as one run. */
const GAP_MS = 5 * 60_000;

/** Notes since when clients show wrong secrets, as after a rotation that one of their servers has missed. */
export class WrongSecrets {
  readonly #runs = new Map<string, { sinceMs: number; lastMs: number; isWrong: boolean }>();
  readonly #nowMs: () => number;
  readonly longest: Metric = gauge(
    'portcullis_client_secrets_wrong_seconds',
    'Longest time over which one client has sent wrong secrets, at most five minutes apart; 0 if its last one was right.',
    () => this.#longestSeconds(),
  );

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Notes a secret of a client that exists. A right one interrupts a run, which the next wrong one continues. */
  note(clientId: string, isWrong: boolean): void {
    const run = this.#runs.get(clientId);
    if (!run && !isWrong) return;
    const nowMs = this.#nowMs();
    const { sinceMs, lastMs } = run && nowMs - run.lastMs <= GAP_MS ? run : { sinceMs: nowMs, lastMs: nowMs };
    this.#runs.set(clientId, { sinceMs, lastMs: isWrong ? nowMs : lastMs, isWrong });
  }

  #longestSeconds(): number {
    const nowMs = this.#nowMs();
    for (const [clientId, { lastMs }] of this.#runs) if (nowMs - lastMs > GAP_MS) this.#runs.delete(clientId);
    const wrong = this.#runs.values().filter(({ isWrong }) => isWrong);
    return Math.max(0, ...wrong.map(({ sinceMs, lastMs }) => (lastMs - sinceMs) / 1_000));
  }
}

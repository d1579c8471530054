import { Counter } from 'prom-client';
import type { Log } from '../../lib/log.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import { type Cache, CacheUnavailableError } from '../../platform/cache/cache.ts';
import { type CountedRequest, monthAtOf, type RequestLimits, WINDOWS } from '../../platform/cache/counts.rules.ts';
import { MemoryRequestCounts } from '../../platform/cache/memory-cache.ts';
import { serviceUnavailable } from '../../platform/errors.ts';
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
    if (use.isUnsynced || use.seeding) return this.#seed(count);
    return this.#ask(count, use.takeSeed(monthAtOf(nowMs)));
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
    const answer = await withTimeout(saved, SYNC_WAIT_MS).catch(() => undefined);
    return answer ?? use.handOver(monthAt);
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

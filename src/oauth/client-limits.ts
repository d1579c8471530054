import { Counter } from 'prom-client';
import type { Cache } from '../cache/cache.ts';
import { CacheUnavailableError } from '../cache/cache-unavailable-error.ts';
import { MemoryRequestCounts } from '../cache/memory-request-counts.ts';
import { type CountedRequest, monthAtOf, type RequestLimits } from '../cache/request-counts.rules.ts';
import type { ClientRecord } from '../clients/client-record.ts';
import { serviceUnavailable } from '../errors/app-error.ts';
import type { Log } from '../lib/log.ts';
import type { ClientUsage } from './client-usage.ts';
import type { ClientUse } from './client-use.ts';
import { ClientUses } from './client-uses.ts';
import { addLimitHeaders, type LimitVerdict, limitsOf, refusalOf, WITHIN_LIMITS } from './limits.rules.ts';

/** How long a request waits for the database where this process knows a count itself. */
const SYNC_WAIT_MS = 1_000;

interface LimitsParts {
  cache: Pick<Cache, 'countRequest' | 'generation'>;
  usage: Pick<ClientUsage, 'save'>;
  log: Log;
  nowMs(): number;
}

/** A request that is being counted. */
interface Count {
  readonly use: ClientUse;
  readonly limits: RequestLimits;
  readonly headers: Record<string, string>;
  readonly nowMs: number;
}

/**
 * The rate limits and monthly quotas of clients (specification section 8), counted in the cache and saved to the
 * database. While the cache is away each process counts by itself; no request fails for it.
 */
export class ClientLimits {
  /** For the registry of the process. */
  readonly countedAlone = new Counter({
    name: 'portcullis_requests_counted_alone_total',
    help: 'Requests of limited clients that this process has counted by itself, since the cache was away.',
    registers: [],
  });
  readonly #parts: LimitsParts;
  readonly #uses: ClientUses;
  readonly #alone = new MemoryRequestCounts();
  #isAlone = false;

  constructor(parts: LimitsParts) {
    this.#parts = parts;
    this.#uses = new ClientUses({
      usage: parts.usage,
      onError: (error) => parts.log.warn({ err: error }, 'what clients have used cannot be saved now'),
    });
  }

  /** Saves from now on, every two seconds. */
  start(): void {
    this.#uses.start();
  }

  /** Saves a last time. */
  stop(): Promise<void> {
    return this.#uses.stop();
  }

  /** Saves now; never rejects. */
  save(): Promise<void> {
    return this.#uses.save();
  }

  /**
   * Counts a request in every limit of its client, or in none where one is used up, and adds the headers of the limits.
   * Answers at once where the cache does.
   * @throws AppError 503 where neither cache nor database can tell what is used of the quota.
   */
  check(client: ClientRecord, headers: Record<string, string>): LimitVerdict | Promise<LimitVerdict> {
    const { cache } = this.#parts;
    const nowMs = this.#parts.nowMs();
    const use = this.#uses.of(client);
    const limits = limitsOf(client);
    if (!limits) {
      use.used(nowMs);
      return WITHIN_LIMITS;
    }
    const count = { use, limits, headers, nowMs };
    if (limits.perMonth === 0) return this.#ask(count, undefined);
    // The first time, and after the cache was out of reach: others may have counted without it.
    if (use.generation !== cache.generation || use.seeding) return this.#seed(count);
    return this.#ask(count, use.takeSeed(monthAtOf(nowMs)));
  }

  #ask(count: Count, seed: number | undefined): LimitVerdict | Promise<LimitVerdict> {
    const { use, limits, nowMs } = count;
    try {
      const counted = this.#parts.cache.countRequest(use.clientId, limits, nowMs, seed);
      if (!(counted instanceof Promise)) return this.#told(count, counted);
      return counted.then(
        (answer) => this.#told(count, answer),
        (error) => this.#askNobody(count, error),
      );
    } catch (error) {
      return this.#askNobody(count, error);
    }
  }

  #told(count: Count, counted: CountedRequest): LimitVerdict | Promise<LimitVerdict> {
    if (this.#alone.size > 0 && this.#alone.forget(count.use.clientId)) this.#endOutage();
    if (counted.outcome === 'unknown') return this.#seed(count);
    if (count.limits.perMonth > 0) count.use.saw(counted.monthAt, counted.month);
    return judge(count, counted);
  }

  /** Asks with what the database knows of the quota: the cache has lost it, or may have. */
  async #seed(count: Count): Promise<LimitVerdict> {
    const { use } = count;
    const { generation } = this.#parts.cache;
    const monthAt = monthAtOf(count.nowMs);
    if (use.seeding?.monthAt !== monthAt) {
      const seeding = { monthAt, count: this.#savedCount(use, monthAt) };
      const isOver = () => {
        if (use.seeding === seeding) use.seeding = undefined;
      };
      seeding.count.then(() => {
        use.generation = generation;
        isOver();
      }, isOver);
      use.seeding = seeding;
    }
    return this.#ask(count, await use.seeding.count);
  }

  /** What the database has of the month; where it is slow and this process knows a count, that one. */
  async #savedCount(use: ClientUse, monthAt: number): Promise<number> {
    const saved = this.#uses.sync(use, monthAt);
    if (use.known(monthAt) === undefined) {
      return saved.catch((error: unknown) => {
        throw serviceUnavailable(error);
      });
    }
    const { promise: tooLate, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, SYNC_WAIT_MS);
    const answer = await Promise.race([saved.catch(() => undefined), tooLate]);
    clearTimeout(timer);
    return answer ?? use.handOver(monthAt);
  }

  /** Counts in this process alone. */
  #askNobody(count: Count, error: unknown): LimitVerdict | Promise<LimitVerdict> {
    if (!(error instanceof CacheUnavailableError)) throw error;
    const { use, limits, nowMs } = count;
    if (!this.#isAlone) this.#beginOutage(error);
    const monthAt = monthAtOf(nowMs);
    const known = use.known(monthAt);
    if (limits.perMonth > 0 && known === undefined) {
      return this.#savedCount(use, monthAt).then((saved) => this.#countAlone(count, saved));
    }
    return this.#countAlone(count, known);
  }

  #countAlone(count: Count, seed: number | undefined): LimitVerdict {
    const { use, limits, nowMs } = count;
    this.countedAlone.inc();
    const counted = this.#alone.count(use.clientId, limits, nowMs, seed);
    if (limits.perMonth > 0 && counted.outcome === 'counted') use.countedAlone(counted.monthAt);
    return judge(count, counted);
  }

  #beginOutage(error: unknown): void {
    this.#isAlone = true;
    this.#parts.log.warn({ err: error }, 'the cache is away: this process counts the requests of clients by itself');
  }

  // Of a cluster a part may be away: that another client is counted there says nothing.
  #endOutage(): void {
    if (!this.#isAlone) return;
    this.#isAlone = false;
    this.#parts.log.info({}, 'the cache counts the requests of clients again');
  }
}

function judge({ use, limits, headers, nowMs }: Count, counted: CountedRequest): LimitVerdict {
  addLimitHeaders(headers, limits, counted, nowMs);
  if (counted.outcome === 'counted') {
    use.used(nowMs);
    return WITHIN_LIMITS;
  }
  return refusalOf(limits, counted, nowMs);
}

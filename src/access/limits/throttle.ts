import { createHash } from 'node:crypto';
import type { Metric } from 'prom-client';
import { callerAddress } from '../../lib/ip-address.ts';
import { counterBy, gauge } from '../../lib/meters.ts';
import { type Cache, CacheUnavailableError } from '../../platform/cache/cache.ts';
import type { CountedFailure } from '../../platform/cache/counts.rules.ts';
import { MemoryFailureCounts } from '../../platform/cache/memory-cache.ts';
import { Refusal } from '../../platform/errors.ts';

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
  const pair = JSON.stringify([callerAddress(address), clientId ?? null]);
  return createHash('sha256').update(pair).digest('base64url');
}

/** How far apart two wrong secrets of a client may be, in ms, to count as one run. */
const GAP_MS = 5 * 60_000;

/** A run of wrong secrets of one client; `isWrong` says that its last secret was wrong. */
interface Run {
  sinceMs: number;
  lastMs: number;
  isWrong: boolean;
}

/** Notes since when clients show wrong secrets, as after a rotation that one of their servers has missed. */
export class WrongSecrets {
  readonly #runs = new Map<string, Run>();
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

import { createHash } from 'node:crypto';
import { callerAddress } from '../../lib/ip-address.ts';
import { counterBy } from '../../lib/meters.ts';
import { type Cache, CacheUnavailableError } from '../../platform/cache/cache.ts';
import type { CountedFailure } from '../../platform/cache/counts.rules.ts';
import { MemoryFailureCounts } from '../../platform/cache/memory-cache.ts';
import { Refusal } from '../../platform/errors.ts';

const MAX_FAILURES = 20;
const TOO_MANY = { reason: 'wrong_secrets' };

interface ThrottleDependencies {
  cache: Pick<Cache, 'countFailure'>;
  nowMs(): number;
}

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
  readonly #deps: ThrottleDependencies;
  readonly #alone = new MemoryFailureCounts();

  constructor(deps: ThrottleDependencies) {
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

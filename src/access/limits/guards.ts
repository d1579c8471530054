import { Counter } from 'prom-client';
import type { Step } from '../../lib/steps.ts';
import { AppError } from '../../platform/errors.ts';
import type { ClientRecord } from '../identity/client-record.ts';
import type { Principal } from '../identity/principal.ts';
import { isAllowedAddress } from './ip-allowlist.ts';
import type { LimitHeaders, LimitVerdict } from './limits.rules.ts';

/** The origin of a client's request. */
export interface Origin {
  /** The caller's IP address as determined through trusted proxies; undefined when unknown. */
  address: string | undefined;
  /** The `ssl-client-fingerprint` header forwarded by a trusted proxy; undefined when there is none. */
  fingerprint: string | undefined;
}

/** A client's request while it passes the guards. */
interface GuardedRequest {
  client: ClientRecord;
  origin: Origin;
  headers: LimitHeaders;
  /** The verdict on rate and quota, which one call to the cache decides together; undefined before that call. */
  verdict: LimitVerdict | undefined;
}

interface CountedGuard {
  name: string;
  /** Lets a request pass, or refuses it by throwing an AppError. */
  guard: Step<GuardedRequest>;
  passed: number;
  refused: number;
  failed: number;
}

interface GuardDependencies {
  limits: { check(client: ClientRecord, headers: LimitHeaders): LimitVerdict | Promise<LimitVerdict> };
  clients: { client(clientId: string): ClientRecord | undefined | Promise<ClientRecord | undefined> };
}

/**
 * Runs the client guards (specification sections 5.3 and 8): certificate, addresses, rate, quota. A refused request
 * counts against no limit.
 */
export class ClientGuards {
  /** The counter of the decisions of each guard; to be registered with the metrics of the process. */
  readonly decisions: Counter;
  readonly #clients: GuardDependencies['clients'];
  readonly #guards: readonly CountedGuard[];

  constructor({ limits, clients }: GuardDependencies) {
    /**
     * Applies the rates in windows of a second, a minute and an hour. Counts the request in these windows and in the
     * quota, or in none of them.
     */
    function rateLimit(request: GuardedRequest): void | Promise<void> {
      const verdict = limits.check(request.client, request.headers);
      if (verdict instanceof Promise) return verdict.then((judged) => applyRate(request, judged));
      applyRate(request, verdict);
    }

    this.#clients = clients;
    const guards = [
      counted('certificate', checkCertificate),
      counted('ip_allowlist', checkAddress),
      counted('rate_limit', rateLimit),
      counted('monthly_quota', checkQuota),
    ];
    this.#guards = guards;
    this.decisions = new Counter({
      name: 'portcullis_guard_decisions_total',
      help: 'Requests of clients that a guard has let pass or refused, or could not judge, by guard.',
      labelNames: ['guard', 'outcome'],
      registers: [],
      collect() {
        this.reset();
        for (const guard of guards)
          for (const outcome of ['passed', 'refused', 'failed'] as const)
            this.inc({ guard: guard.name, outcome }, guard[outcome]);
      },
    });
  }

  /**
   * Returns the client whose guards a principal's requests must pass; undefined unless the principal has an API token
   * of a client.
   */
  clientOf({ tokenUse, clientId }: Principal): ClientRecord | undefined | Promise<ClientRecord | undefined> {
    return tokenUse === 'api' && clientId !== undefined ? this.#clients.client(clientId) : undefined;
  }

  /**
   * Runs the guards for a request; synchronous as long as the guards are. It adds the client's limit headers to
   * `headers`, for the response whatever its status.
   * @throws AppError 403 or 429 from the guard that refuses.
   */
  run(client: ClientRecord, origin: Origin, headers: LimitHeaders): void | Promise<void> {
    return this.#runFrom(0, { client, origin, headers, verdict: undefined });
  }

  #runFrom(first: number, request: GuardedRequest): void | Promise<void> {
    for (let at = first; at < this.#guards.length; at += 1) {
      const guard = this.#guards[at];
      const pending = guard && runCounted(guard, request, () => this.#runFrom(at + 1, request));
      if (pending) return pending;
    }
  }
}

/**
 * Runs only the guards that count nothing: certificate and addresses.
 * @throws AppError 403 from the guard that refuses.
 */
export function checkOrigin(request: Pick<GuardedRequest, 'client' | 'origin'>): void {
  checkCertificate(request);
  checkAddress(request);
}

/** Normalizes a fingerprint for comparison: without colons, in lower case; empty for undefined. */
export function plainFingerprint(fingerprint: string | undefined): string {
  return (fingerprint ?? '').replaceAll(':', '').trim().toLowerCase();
}

function checkCertificate({ client, origin }: Pick<GuardedRequest, 'client' | 'origin'>): void {
  if (!client.requireCertificate) return;
  const expected = plainFingerprint(client.certFingerprint);
  if (expected === '' || plainFingerprint(origin.fingerprint) !== expected) throw new AppError(403, 'mtls_required');
}

function checkAddress({ client, origin: { address } }: Pick<GuardedRequest, 'client' | 'origin'>): void {
  if (client.allowedIps.length === 0) return;
  if (address === undefined || !isAllowedAddress(client, address)) throw new AppError(403, 'ip_not_allowed');
}

function applyRate(request: GuardedRequest, verdict: LimitVerdict): void {
  request.verdict = verdict;
  if (verdict.refusal === 'rate_limit_exceeded') throw tooMany(verdict.refusal, verdict);
}

/** Applies the quota by the verdict that the rate guard stored. */
function checkQuota({ verdict }: GuardedRequest): void {
  if (verdict?.refusal === 'monthly_limit_exceeded') throw tooMany(verdict.refusal, verdict);
}

function tooMany(message: NonNullable<LimitVerdict['refusal']>, { retryAfterSeconds }: LimitVerdict): AppError {
  return new AppError(429, message, { headers: { 'Retry-After': String(retryAfterSeconds) } });
}

function counted(name: string, guard: Step<GuardedRequest>): CountedGuard {
  return { name, guard, passed: 0, refused: 0, failed: 0 };
}

/** Runs a guard and counts its decision; calls `next` after one that was not synchronous. */
function runCounted(guard: CountedGuard, request: GuardedRequest, next: Step<void>): void | Promise<void> {
  let pending: void | Promise<void>;
  try {
    pending = guard.guard(request);
  } catch (error) {
    countThrown(guard, error);
  }
  if (!pending) {
    guard.passed += 1;
    return;
  }
  return pending.then(
    () => {
      guard.passed += 1;
      return next();
    },
    (error: unknown) => countThrown(guard, error),
  );
}

function countThrown(guard: CountedGuard, error: unknown): never {
  guard[error instanceof AppError && error.status < 500 ? 'refused' : 'failed'] += 1;
  throw error;
}

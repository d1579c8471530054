import type { ClientRecord } from '../clients/client-record.ts';
import { AppError } from '../errors/app-error.ts';
import { countedGuards } from './guard-counts.ts';
import { isAllowedAddress } from './ip-allowlist.ts';
import type { LimitVerdict } from './limits.rules.ts';

/** A request of a known client, as its guards see it. */
export interface GuardedCall {
  client: ClientRecord;
  /** The caller's address, behind trusted proxies; undefined where it is not known. */
  address: string | undefined;
  /** `ssl-client-fingerprint` as a trusted proxy forwarded it. */
  fingerprint: string | undefined;
  /** Gets the headers of the client's limits: for the answer, whatever it will be. */
  headers: Record<string, string>;
  /** What the one question to the cache has told, once it has been asked. */
  verdict?: LimitVerdict;
}

/** One client-level guard (specification section 5.3): refuses by throwing an `AppError`. */
export type Guard = (call: GuardedCall) => void | Promise<void>;

/** Counts requests of clients. */
interface Limits {
  check(client: ClientRecord, headers: Record<string, string>): LimitVerdict | Promise<LimitVerdict>;
}

/** The guards in their order (specification section 5.3 and section 8): what one refuses uses up nothing. */
export function guardsOf(limits: Limits) {
  /** Rate: fixed windows of a second, a minute and an hour. Counts the request in them and in the quota, or in none. */
  function rateLimitGuard(call: GuardedCall): void | Promise<void> {
    const verdict = limits.check(call.client, call.headers);
    if (verdict instanceof Promise) return verdict.then((judged) => applyRate(call, judged));
    applyRate(call, verdict);
  }
  return countedGuards({
    certificate: certificateGuard,
    ip_allowlist: ipAllowlistGuard,
    rate_limit: rateLimitGuard,
    monthly_quota: monthlyQuotaGuard,
  });
}

/** Certificate: the forwarded fingerprint must be the client's, case and colons ignored. */
export function certificateGuard({ client, fingerprint }: Pick<GuardedCall, 'client' | 'fingerprint'>): void {
  if (!client.requireCertificate) return;
  const expected = plainFingerprint(client.certFingerprint);
  if (expected === '' || plainFingerprint(fingerprint) !== expected) throw new AppError(403, 'mtls_required');
}

/** IP allowlist: the caller's address must be known, and one of the client's addresses or in one of its networks. */
export function ipAllowlistGuard({ client, address }: Pick<GuardedCall, 'client' | 'address'>): void {
  if (client.allowedIps.length === 0) return;
  if (address === undefined || !isAllowedAddress(client, address)) throw new AppError(403, 'ip_not_allowed');
}

/** Runs the guards, from one of them on; the first refusal is thrown. Synchronous as long as they are. */
export function runGuards(guards: readonly Guard[], call: GuardedCall, from = 0): void | Promise<void> {
  for (let at = from; at < guards.length; at += 1) {
    const pending = guards[at]?.(call);
    if (pending) return pending.then(() => runGuards(guards, call, at + 1));
  }
}

function applyRate(call: GuardedCall, verdict: LimitVerdict): void {
  call.verdict = verdict;
  if (verdict.refusal === 'rate_limit_exceeded') throw tooMany(verdict.refusal, verdict);
}

/** Monthly quota: judges what the rate's question has told. */
function monthlyQuotaGuard({ verdict }: GuardedCall): void {
  if (!verdict) throw new Error('the rate is judged first');
  if (verdict.refusal === 'monthly_limit_exceeded') throw tooMany(verdict.refusal, verdict);
}

function tooMany(message: NonNullable<LimitVerdict['refusal']>, { retryAfterSeconds }: LimitVerdict): AppError {
  return new AppError(429, message, { headers: { 'Retry-After': String(retryAfterSeconds) } });
}

/** A fingerprint as it is compared: without its colons, in small letters; empty for none. */
export function plainFingerprint(fingerprint: string | undefined): string {
  return (fingerprint ?? '').replaceAll(':', '').trim().toLowerCase();
}

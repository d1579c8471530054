import { Counter } from 'prom-client';
import { isOverload, Refusal } from '../../platform/errors.ts';
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

/** How often a guard has let a request pass or refused it, or could not judge. */
interface Decisions {
  passed: number;
  refused: number;
  failed: number;
}

interface GuardDependencies {
  limits: { check(client: ClientRecord, headers: LimitHeaders): Promise<LimitVerdict> };
  clients: { client(clientId: string): Promise<ClientRecord | undefined> };
}

/**
 * Runs the client guards (specification sections 5.3 and 8): certificate, addresses, rate, quota. A refused request
 * counts against no limit.
 */
export class ClientGuards {
  /** The counter of the decisions of each guard; to be registered with the metrics of the process. */
  readonly decisions: Counter;
  readonly #clients: GuardDependencies['clients'];
  readonly #limits: GuardDependencies['limits'];
  readonly #counts = { certificate: none(), ip_allowlist: none(), rate_limit: none(), monthly_quota: none() };

  constructor({ limits, clients }: GuardDependencies) {
    this.#limits = limits;
    this.#clients = clients;
    const counts = Object.entries(this.#counts);
    this.decisions = new Counter({
      name: 'portcullis_guard_decisions_total',
      help: 'Client guard decisions, by guard and outcome (passed, refused, failed).',
      labelNames: ['guard', 'outcome'],
      registers: [],
      collect() {
        this.reset();
        for (const [guard, decisions] of counts)
          for (const [outcome, count] of Object.entries(decisions)) this.inc({ guard, outcome }, count);
      },
    });
  }

  /**
   * Returns the client whose guards a principal's requests must pass; undefined unless the principal has an API token
   * of a client.
   */
  async clientOf({ tokenUse, clientId }: Principal): Promise<ClientRecord | undefined> {
    return tokenUse === 'api' && clientId !== undefined ? this.#clients.client(clientId) : undefined;
  }

  /**
   * Runs the guards for a request. It adds the client's limit headers to `headers`, for the response whatever its status.
   * One call to the cache decides on rate and quota together: it has counted the request in the windows of a second, a
   * minute and an hour and in the quota, or in none of them.
   * @throws Refusal from the guard that refuses.
   */
  async run(client: ClientRecord, origin: Origin, headers: LimitHeaders): Promise<void> {
    const { certificate, ip_allowlist, rate_limit, monthly_quota } = this.#counts;
    counted(certificate, () => checkCertificate(client, origin));
    counted(ip_allowlist, () => checkAddress(client, origin));
    const verdict = await this.#limits.check(client, headers).catch((error) => countThrown(rate_limit, error));
    counted(rate_limit, () => refuseBeyond('rate_limit_exceeded', verdict));
    counted(monthly_quota, () => refuseBeyond('monthly_limit_exceeded', verdict));
  }
}

/**
 * Runs only the guards that count nothing: certificate and addresses.
 * @throws Refusal from the guard that refuses.
 */
export function checkOrigin(client: ClientRecord, origin: Origin): void {
  checkCertificate(client, origin);
  checkAddress(client, origin);
}

/** Normalizes a fingerprint for comparison: without colons, in lower case; empty for undefined. */
export function plainFingerprint(fingerprint: string | undefined): string {
  return (fingerprint ?? '').replaceAll(':', '').trim().toLowerCase();
}

function checkCertificate({ requireCertificate, certFingerprint }: ClientRecord, { fingerprint }: Origin): void {
  if (!requireCertificate) return;
  const expected = plainFingerprint(certFingerprint);
  if (expected === '' || plainFingerprint(fingerprint) !== expected) throw new Refusal('mtls_required');
}

function checkAddress(client: ClientRecord, { address }: Origin): void {
  if (client.allowedIps.length === 0) return;
  if (address === undefined || !isAllowedAddress(client, address)) throw new Refusal('ip_not_allowed');
}

function refuseBeyond(limit: LimitVerdict['refusal'], { refusal, retryAfterSeconds }: LimitVerdict): void {
  if (!refusal || refusal !== limit) return;
  throw new Refusal(refusal, { retryAfterSeconds });
}

function none(): Decisions {
  return { passed: 0, refused: 0, failed: 0 };
}

/** Runs a guard, which lets a request pass or refuses it by throwing a Refusal, and counts its decision. */
function counted(decisions: Decisions, guard: () => void): void {
  try {
    guard();
  } catch (error) {
    countThrown(decisions, error);
  }
  decisions.passed += 1;
}

function countThrown(decisions: Decisions, error: unknown): never {
  decisions[error instanceof Refusal && !isOverload(error) ? 'refused' : 'failed'] += 1;
  throw error;
}

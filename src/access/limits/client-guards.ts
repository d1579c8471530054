import { counters } from '../../lib/meters.ts';
import { isOverload, Refusal } from '../../platform/errors.ts';
import type { ClientRecord, Principal } from '../identity/callers.ts';
import { isAllowedAddress } from './ip-allowlist.ts';
import type { LimitVerdict } from './limits.rules.ts';

/** The parts of a request that the guards look at, and of its response that they set. */
export interface GuardedRequest {
  readonly req: { readonly headers: NodeJS.Dict<string | string[]> };
  readonly res: { setHeader(name: string, value: string): unknown };
  /** Set for a request on a WebSocket, whose response has no limit headers. */
  readonly upgrade: object | undefined;
  /** The caller's IP address as determined through trusted proxies; undefined when unknown. */
  readonly clientAddress: string | undefined;
}

/** How often a guard has let a request pass or refused it, or could not judge. */
interface Decisions {
  passed: number;
  refused: number;
  failed: number;
}

interface GuardDependencies {
  limits: { check(client: ClientRecord): Promise<LimitVerdict> };
  clients: { client(clientId: string): Promise<ClientRecord | undefined> };
}

/**
 * Runs the client guards (docs/contract.md, 5.3 and 8): certificate, addresses, rate, quota. A refused request
 * counts against no limit.
 */
export class ClientGuards {
  readonly #clients: GuardDependencies['clients'];
  readonly #limits: GuardDependencies['limits'];
  readonly #counts = { certificate: none(), ip_allowlist: none(), rate_limit: none(), monthly_quota: none() };
  /** The counter of the decisions of each guard; to be registered with the metrics of the process. */
  readonly decisions = counters({
    name: 'portcullis_guard_decisions_total',
    help: 'Client guard decisions, by guard and outcome (passed, refused, failed).',
    labelNames: ['guard', 'outcome'],
    read: () =>
      Object.entries(this.#counts).flatMap(([guard, decisions]) =>
        Object.entries(decisions).map(([outcome, count]) => [{ guard, outcome }, count]),
      ),
  });

  constructor({ limits, clients }: GuardDependencies) {
    this.#limits = limits;
    this.#clients = clients;
  }

  /**
   * Runs the guards of a client for a request, and sets its limit headers on every response. `caller` is the client, or
   * the principal of a token: a login passes, since its client was checked when it was issued. One call to the cache
   * decides on rate and quota together: it has counted the request in the windows of a second, a minute and an hour and
   * in the quota, or in none of them. With `isCounted` false, only certificate and address are checked: for a WebSocket
   * that opens, because its operations are counted.
   * @throws Refusal from the guard that refuses.
   */
  async check(request: GuardedRequest, caller: ClientRecord | Principal, isCounted = true): Promise<void> {
    const client = 'tokenUse' in caller ? await this.#clientOf(caller) : caller;
    if (!client) return;
    const { certificate, ip_allowlist, rate_limit, monthly_quota } = this.#counts;
    if (!isCounted) {
      checkCertificate(client, request);
      checkAddress(client, request);
      return;
    }
    counted(certificate, () => checkCertificate(client, request));
    counted(ip_allowlist, () => checkAddress(client, request));
    const { refusal, headers } = await this.#limits.check(client).catch((error) => countThrown(rate_limit, error));
    const { res, upgrade } = request;
    if (!upgrade)
      for (let at = 1; at < headers.length; at += 2) res.setHeader(headers[at - 1] ?? '', headers[at] ?? '');
    counted(rate_limit, () => {
      if (refusal?.code === 'rate_limit_exceeded') throw refusal;
    });
    counted(monthly_quota, () => {
      if (refusal) throw refusal;
    });
  }

  async #clientOf({ tokenUse, clientId }: Principal): Promise<ClientRecord | undefined> {
    return tokenUse === 'api' && clientId !== undefined ? this.#clients.client(clientId) : undefined;
  }
}

/** Normalizes a fingerprint for comparison: without colons, in lower case; empty for undefined. */
export function plainFingerprint(fingerprint: string | undefined): string {
  return (fingerprint ?? '').replaceAll(':', '').trim().toLowerCase();
}

function checkCertificate({ requireCertificate, certFingerprint }: ClientRecord, { req }: GuardedRequest): void {
  if (!requireCertificate) return;
  const fingerprint = req.headers['ssl-client-fingerprint']?.toString();
  const expected = plainFingerprint(certFingerprint);
  if (expected === '' || plainFingerprint(fingerprint) !== expected) throw new Refusal('mtls_required');
}

function checkAddress(client: ClientRecord, { clientAddress: address }: GuardedRequest): void {
  if (client.allowedIps.length === 0) return;
  if (address === undefined || !isAllowedAddress(client, address)) throw new Refusal('ip_not_allowed');
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

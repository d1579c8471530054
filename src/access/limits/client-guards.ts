import { isIP } from 'node:net';
import { groupsOf, plainAddress, withoutZone } from '../../lib/ip-address.ts';
import { counters } from '../../lib/meters.ts';
import { isOverload, Refusal } from '../../platform/errors.ts';
import type { ClientRecord, Principal } from '../identity/callers.ts';
import type { LimitVerdict } from './limits.rules.ts';

/** What the guards look at in a request. */
export interface GuardedRequest {
  /** The fingerprint of the caller's certificate, as a trusted proxy has sent it. */
  readonly fingerprint: string | undefined;
  /** The caller's IP address as determined through trusted proxies; undefined when unknown. */
  readonly address: string | undefined;
}

/** How often a guard has let a request pass or refused it, or could not judge. */
interface Decisions {
  passed: number;
  refused: number;
  failed: number;
}

/**
 * Runs the client guards (docs/contract.md, 5.3 and 8): certificate, addresses, rate, quota. A refused request
 * counts against no limit.
 */
export class ClientGuards {
  readonly #deps;
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

  constructor(deps: {
    limits: { check(client: ClientRecord): Promise<LimitVerdict> };
    clients: { client(clientId: string): Promise<ClientRecord | undefined> };
  }) {
    this.#deps = deps;
  }

  /**
   * Runs the guards of a client for a request. `caller` is the client, or the principal of a token: a login passes, since
   * its client was checked when it was issued. One call to the cache decides on rate and quota together: it has counted
   * the request in the windows of a second, a minute and an hour and in the quota, or in none of them. The verdict has the
   * limit headers of every response. With `isCounted` false, only certificate and address are checked: for a WebSocket
   * that opens, because its operations are counted, and for what was admitted before.
   * @throws Refusal `mtls_required` or `ip_not_allowed`.
   */
  async check(caller: ClientRecord | Principal, request: GuardedRequest, isCounted = true): Promise<LimitVerdict> {
    const client = 'tokenUse' in caller ? await this.#clientOf(caller) : caller;
    if (!client) return UNLIMITED;
    const { certificate, ip_allowlist, rate_limit, monthly_quota } = this.#counts;
    counted(isCounted ? certificate : none(), () => checkCertificate(client, request));
    counted(isCounted ? ip_allowlist : none(), () => checkAddress(client, request));
    if (!isCounted) return UNLIMITED;
    const verdict = await this.#deps.limits.check(client).catch((error) => countThrown(rate_limit, error));
    const isRate = verdict.refusal?.code === 'rate_limit_exceeded';
    rate_limit[isRate ? 'refused' : 'passed'] += 1;
    if (!isRate) monthly_quota[verdict.refusal ? 'refused' : 'passed'] += 1;
    return verdict;
  }

  async #clientOf({ tokenUse, clientId }: Principal): Promise<ClientRecord | undefined> {
    return tokenUse === 'api' && clientId !== undefined ? this.#deps.clients.client(clientId) : undefined;
  }
}

const UNLIMITED: LimitVerdict = { headers: [] };

/** Checks whether a refusal is a guard's for a certificate or an address, which is refused until the client is changed. */
export function isGuardRefusal({ code }: Refusal): boolean {
  return code === 'mtls_required' || code === 'ip_not_allowed';
}

/** Normalizes a fingerprint for comparison: without colons, in lower case; empty for none. */
export function plainFingerprint(fingerprint: string | null | undefined): string {
  return (fingerprint ?? '').replaceAll(':', '').trim().toLowerCase();
}

function checkCertificate(
  { requireCertificate, certFingerprint }: ClientRecord,
  { fingerprint }: GuardedRequest,
): void {
  if (!requireCertificate) return;
  const expected = plainFingerprint(certFingerprint);
  if (expected === '' || plainFingerprint(fingerprint) !== expected) throw new Refusal('mtls_required');
}

function checkAddress(client: ClientRecord, { address }: GuardedRequest): void {
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

/** What checks an address or a network against the allowed ones of a client. */
const allowed = new WeakMap<ClientRecord, (prefix: string) => boolean>();

/** Checks whether an address is one of the client's allowed addresses or in one of its allowed networks. */
export function isAllowedAddress(client: ClientRecord, address: string): boolean {
  const prefix = isIP(address) === 0 ? undefined : prefixOf(address);
  const isAllowed = allowed.getOrInsertComputed(client, ({ allowedIps }) => within(allowedIps));
  return prefix !== undefined && isAllowed(prefix);
}

/** Checks whether each valid inner entry is contained in one of the outer entries; invalid entries allow no address. */
export function areAllNetworksWithin(outer: readonly string[], inner: readonly string[]): boolean {
  return prefixesOf(inner).every(within(outer));
}

/** Returns what checks whether one of the entries contains the address or network of a prefix. */
function within(entries: readonly string[]): (prefix: string) => boolean {
  const known = new Set(prefixesOf(entries));
  const lengths = new Set(Array.from(known, ({ length }) => length));
  return (prefix) => lengths.values().some((length) => length <= prefix.length && known.has(prefix.slice(0, length)));
}

function prefixesOf(entries: readonly string[]): string[] {
  return entries.map((entry) => prefixOf(entry.trim())).filter((prefix) => prefix !== undefined);
}

/**
 * Returns the prefix of an address or a network (RFC 4632, RFC 4291) as text: its family, and its first bits as digits.
 * Returns undefined for any other text, which allows no address.
 */
function prefixOf(entry: string): string | undefined {
  const [, address = '', digits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(entry) ?? [];
  const family = isIP(address);
  const bits = family === 6 ? 128 : 32;
  const length = Number(digits ?? bits);
  if (family === 0 || length > bits) return undefined;
  const plain = plainAddress(address);
  // An IPv6 network that is wider than the range of IPv4-mapped addresses stays an IPv6 network.
  if (isIP(plain) === 4 && length >= bits - 32)
    return `ipv4 ${digitsOf(plain.split('.').map(Number), 8).slice(0, length - (bits - 32))}`;
  return `ipv6 ${digitsOf(groupsOf(withoutZone(address)), 16).slice(0, length)}`;
}

/** Returns the bits of numbers that have `width` bits each. */
function digitsOf(numbers: readonly number[], width: number): string {
  return numbers.map((number) => number.toString(2).padStart(width, '0')).join('');
}

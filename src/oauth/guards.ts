import { BlockList, isIP } from 'node:net';
import type { ClientRecord } from '../clients/client-record.ts';
import { AppError } from '../errors/app-error.ts';

/** A request of a known client, as its guards see it. */
export interface GuardedCall {
  client: ClientRecord;
  /** The caller's address, behind trusted proxies. */
  realIp: string;
  /** `ssl-client-fingerprint` as a trusted proxy forwarded it. */
  fingerprint: string | undefined;
}

/** One client-level guard (specification section 5.3): refuses by throwing an `AppError`. */
export type Guard = (call: GuardedCall) => void | Promise<void>;

/** Certificate: the forwarded fingerprint must be the client's, case and colons ignored. */
export function certificateGuard({ client, fingerprint }: GuardedCall): void {
  if (!client.requireCertificate) return;
  const expected = plainFingerprint(client.certFingerprint);
  if (expected === '' || plainFingerprint(fingerprint) !== expected) throw new AppError(403, 'mtls_required');
}

/** IP allowlist: the caller's address must be one of the client's addresses or in one of its networks. */
export function ipAllowlistGuard({ client, realIp }: GuardedCall): void {
  if (client.allowedIps.length > 0 && !isAllowed(client.allowedIps, realIp)) throw new AppError(403, 'ip_not_allowed');
}

/** Rate limit: fixed windows of a second, a minute and an hour. Nothing is counted yet: every call passes. */
export function rateLimitGuard(_call: GuardedCall): void {}

/** Monthly quota. Nothing is counted yet: every call passes. */
export function monthlyQuotaGuard(_call: GuardedCall): void {}

/** The guards in their order. */
export const guards: readonly Guard[] = [certificateGuard, ipAllowlistGuard, rateLimitGuard, monthlyQuotaGuard];

/** Runs every guard; the first refusal is thrown. */
export async function runGuards(call: GuardedCall): Promise<void> {
  for (const guard of guards) {
    const pending = guard(call);
    if (pending) await pending;
  }
}

function plainFingerprint(fingerprint: string | undefined): string {
  return (fingerprint ?? '').replaceAll(':', '').trim().toLowerCase();
}

function isAllowed(allowed: readonly string[], address: string): boolean {
  const list = new BlockList();
  for (const entry of allowed) addEntry(list, entry);
  const plain = withoutMapping(address);
  const family = isIP(plain);
  return family !== 0 && list.check(plain, family === 6 ? 'ipv6' : 'ipv4');
}

function addEntry(list: BlockList, entry: string): void {
  const [address = '', prefix] = entry.split('/');
  const plain = withoutMapping(address);
  const family = isIP(plain);
  if (family === 0) return;
  const type = family === 6 ? 'ipv6' : 'ipv4';
  if (prefix === undefined) list.addAddress(plain, type);
  else list.addSubnet(plain, plain === address ? Number(prefix) : Number(prefix) - 96, type);
}

/** An IPv4 address in IPv6's clothes (RFC 4291 section 2.5.5.2) is that IPv4 address. */
function withoutMapping(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  return mapped ?? address;
}

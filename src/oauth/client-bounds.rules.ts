import type { ClientRow } from '../clients/client-pages.service.ts';
import { plainFingerprint } from './guards.ts';
import { areAllNetworksWithin } from './ip-allowlist.ts';

const LIMITS = [
  { name: 'requests_per_second', text: 'a limit of requests per second' },
  { name: 'requests_per_minute', text: 'a limit of requests per minute' },
  { name: 'requests_per_hour', text: 'a limit of requests per hour' },
  { name: 'monthly_limit', text: 'a monthly limit' },
] as const;

/** What holds a client back beside its scopes; empty and null are unlimited. */
export type ClientBounds = Pick<
  ClientRow,
  'allowed_ips' | 'require_certificate' | 'cert_fingerprint' | (typeof LIMITS)[number]['name']
>;

/** What holds nothing back: a login, once it is issued. */
export const UNBOUND: ClientBounds = {
  allowed_ips: [],
  require_certificate: false,
  cert_fingerprint: null,
  requests_per_second: null,
  requests_per_minute: null,
  requests_per_hour: null,
  monthly_limit: null,
};

/** What of a target would have to be otherwise for it to be at most as free as its maker (decisions: who may administer). */
export function freerThanMaker(maker: ClientBounds, target: ClientBounds): string[] {
  const wanting: string[] = [];
  if (!isWithinAddresses(maker, target)) wanting.push("allow addresses of the maker's alone");
  if (!isWithinCertificate(maker, target)) wanting.push("require the maker's certificate");
  for (const { name, text } of LIMITS) {
    const most = maker[name] ?? Number.POSITIVE_INFINITY;
    if ((target[name] ?? Number.POSITIVE_INFINITY) > most) wanting.push(`set ${text} within the maker's`);
  }
  return wanting;
}

function isWithinAddresses(maker: ClientBounds, target: ClientBounds): boolean {
  if (maker.allowed_ips.length === 0) return true;
  return target.allowed_ips.length > 0 && areAllNetworksWithin(maker.allowed_ips, target.allowed_ips);
}

/** Another certificate is another holder's: it must be the same one. */
function isWithinCertificate(maker: ClientBounds, target: ClientBounds): boolean {
  if (!maker.require_certificate) return true;
  const fingerprint = plainFingerprint(target.cert_fingerprint ?? undefined);
  return target.require_certificate && fingerprint === plainFingerprint(maker.cert_fingerprint ?? undefined);
}

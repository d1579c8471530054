import { isIP } from 'node:net';

/** Returns an IPv6 address without its zone (RFC 4007, section 11). */
export function withoutZone(address: string): string {
  return address.replace(/%.*$/, '');
}

/**
 * Returns an IP address in its plain form: without a zone, and an IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2)
 * as IPv4.
 */
export function plainAddress(address: string): string {
  if (isIP(address) !== 6) return address;
  const bare = withoutZone(address);
  if (!/ffff:/i.test(bare)) return bare;
  const mapped = bare.slice('::ffff:'.length);
  // The form in which the operating system writes it.
  if (/^::ffff:/i.test(bare) && isIP(mapped) === 4) return mapped;
  const [, high, low] = /^\[::ffff:([0-9a-f]+):([0-9a-f]+)\]$/.exec(new URL(`http://[${bare}]/`).hostname) ?? [];
  if (high === undefined || low === undefined) return bare;
  const [first, second] = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return [first >> 8, first & 255, second >> 8, second & 255].join('.');
}

/**
 * Returns the part of a plain IP address that identifies its holder: all of an IPv4 address, the first 64 bits of an
 * IPv6 address, whose holder has the whole /64 network (RFC 6177).
 */
export function holderOf(address: string): string {
  if (isIP(address) !== 6) return address;
  const [left = [], right] = address.split('::').map((side) => (side === '' ? [] : side.split(':')));
  const zeros = right ? Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0') : [];
  return [...left, ...zeros, ...(right ?? [])].slice(0, 4).join(':');
}

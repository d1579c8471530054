import { isIP, isIPv6 } from 'node:net';

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
  const groups = groupsOf(bare);
  if (groups.slice(0, 6).join() !== '0,0,0,0,0,65535') return bare;
  return groups
    .slice(6)
    .flatMap((group) => [group >> 8, group & 255])
    .join('.');
}

/** Returns the eight numbers of an IPv6 address without a zone (RFC 4291 section 2.2). */
export function groupsOf(address: string): number[] {
  const [head = [], tail = []] = new URL(`http://[${address}]/`).hostname
    .slice(1, -1)
    .split('::')
    .map((side) => (side === '' ? [] : side.split(':').map((group) => Number.parseInt(group, 16))));
  return [...head, ...Array.from({ length: 8 - head.length - tail.length }, () => 0), ...tail];
}

/**
 * Returns the caller that an address, in any spelling, is counted as: the address itself of IPv4, the /64 network of
 * IPv6, all of which one holder has (RFC 6177).
 */
export function callerAddress(address: string): string {
  const plain = plainAddress(address);
  if (isIP(plain) !== 6) return plain;
  return `${groupsOf(plain)
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`;
}

/** Returns the base URL of an HTTP listener; an IPv6 address is put in brackets (RFC 3986, section 3.2.2). */
export function baseUrlOf(host: string, port: number): string {
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

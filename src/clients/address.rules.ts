import { isIP } from 'node:net';

const ENTRY = /^([0-9a-f.:]+)(?:\/(0|[1-9]\d{0,2}))?$/i;

/** Whether a text is an IPv4 or IPv6 address, without a zone, or a network of either in CIDR notation (RFC 4632, RFC 4291). */
export function isAddressOrNetwork(text: string): boolean {
  const [, address = '', prefix] = ENTRY.exec(text) ?? [];
  const family = isIP(address);
  return family !== 0 && Number(prefix ?? 0) <= (family === 6 ? 128 : 32);
}

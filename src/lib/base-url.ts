import { isIPv6 } from 'node:net';

/** The base URL of a listener; an IPv6 address stands in brackets (RFC 3986 section 3.2.2). */
export function baseUrlOf(host: string, port: number): string {
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

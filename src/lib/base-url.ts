import { isIPv6 } from 'node:net';

/** Returns the base URL of an HTTP listener; an IPv6 address is put in brackets (RFC 3986, section 3.2.2). */
export function baseUrlOf(host: string, port: number): string {
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

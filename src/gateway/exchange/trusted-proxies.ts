import { isIP } from 'node:net';
import proxyAddr from 'proxy-addr';
import { plainAddress } from '../../lib/ip-address.ts';
import type { IncomingRequest } from './exchange.ts';

/** Returns whether a peer is a trusted proxy. */
export type TrustedPeers = (address: string, index: number) => boolean;

/** How many verdicts are cached: parsing an address costs more than all else here. */
const KNOWN_PEERS = 10_000;

/** How many entries of `X-Forwarded-For` are read: no chain of proxies is as long, and each entry costs a verdict. */
const MAX_HOPS = 32;

/**
 * Matches fields that only a proxy may send, with any character for a hyphen: CGI and WSGI make an underscore of it.
 */
const PROXY_HEADER = /^(?:x[^a-z\d])?forwarded|^x[^a-z\d]real[^a-z\d]ip|^ssl[^a-z\d]client/;

/** Compiles `TRUST_PROXY`: addresses, networks, and the names loopback, linklocal, uniquelocal. */
export function compileTrust(peers: readonly string[]): TrustedPeers {
  const trusts = proxyAddr.compile([...peers]);
  const known = new Map<string, boolean>();
  return function trustsPeer(address, index) {
    const before = known.get(address);
    if (before !== undefined) return before;
    if (known.size >= KNOWN_PEERS) known.clear();
    const verdict = trusts(address, index);
    known.set(address, verdict);
    return verdict;
  };
}

/**
 * Determines the client's address, and removes the fields that only a trusted proxy may send where another peer has
 * sent them.
 */
export function settleClientAddress(request: IncomingRequest, trusts: TrustedPeers): void {
  const { req } = request;
  request.remoteAddress = plainAddress(req.socket.remoteAddress ?? '');
  if (trusts(request.remoteAddress, 0)) {
    request.isPeerTrusted = true;
    request.clientAddress = clientAddress(request, trusts);
  } else {
    for (const name in req.headers) if (PROXY_HEADER.test(name)) delete req.headers[name];
    request.clientAddress = request.remoteAddress;
  }
  request.realIp = request.clientAddress ?? request.remoteAddress;
}

/**
 * Returns the rightmost address of `X-Forwarded-For` that is no trusted proxy; without that field the one in
 * `X-Real-IP`, else the peer. Undefined where the entry is no address, or stands behind too many proxies: who wrote
 * what is left of it is unknown.
 */
function clientAddress({ req: { headers }, remoteAddress }: IncomingRequest, trusts: TrustedPeers): string | undefined {
  const { 'x-forwarded-for': forwarded, 'x-real-ip': real } = headers;
  if (forwarded === undefined) return real === undefined ? remoteAddress : addressIn(String(real));
  const entries = String(forwarded);
  let end = entries.length;
  for (let hop = 0; hop < MAX_HOPS; hop += 1) {
    const comma = end === 0 ? -1 : entries.lastIndexOf(',', end - 1);
    const address = addressIn(entries.slice(comma + 1, end));
    if (address === undefined || !trusts(address, 0)) return address;
    if (comma === -1) return remoteAddress;
    end = comma;
  }
  return undefined;
}

/** Parses an entry, which may have a port, and brackets around an IPv6 address. */
function addressIn(entry: string): string | undefined {
  const text = entry.trim();
  const [, ipv6, ipv4] = /^(?:\[([^[\]]+)\]|([\d.]+))(?::\d{1,5})?$/.exec(text) ?? [];
  const address = ipv6 ?? ipv4 ?? text;
  if (isIP(address) === 0 || (ipv6 !== undefined && isIP(ipv6) !== 6)) return undefined;
  // A slice would keep the whole field in memory.
  return plainAddress(Buffer.from(address).toString());
}

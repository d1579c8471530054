import { isIP } from 'node:net';
import proxyAddr from 'proxy-addr';
import { plainAddress } from '../lib/ip-address.ts';
import type { Exchange } from './exchange.ts';

/** Which peers may speak for a client behind them. */
export type TrustedPeers = (address: string, index: number) => boolean;

/** Verdicts are kept: parsing an address costs more than the rest of the door. */
const KNOWN_PEERS = 10_000;

/** How many entries of `X-Forwarded-For` are read: no chain of proxies is as long, and each costs a verdict. */
const MAX_HOPS = 32;

/** What only a proxy says, with whatever stands for a hyphen: to a service behind CGI or WSGI an underscore is one. */
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
 * What happens to a request before the chain: the client's address is settled, and what only a trusted proxy may say
 * is removed where another peer says it.
 */
export function enter(exchange: Exchange, trusts: TrustedPeers): void {
  const { req } = exchange;
  exchange.remoteAddress = plainAddress(req.socket.remoteAddress ?? '');
  if (trusts(exchange.remoteAddress, 0)) {
    exchange.isPeerTrusted = true;
    exchange.clientAddress = clientAddress(exchange, trusts);
  } else {
    for (const name in req.headers) if (PROXY_HEADER.test(name)) delete req.headers[name];
    exchange.clientAddress = exchange.remoteAddress;
  }
  exchange.realIp = exchange.clientAddress ?? exchange.remoteAddress;
}

/**
 * The rightmost address of `X-Forwarded-For` that is no trusted proxy's; without that field the one in `X-Real-IP`, else
 * the peer's. Undefined where what should be the client's is no address, or stands behind too many proxies: who
 * wrote what stands left is not known.
 */
function clientAddress({ req: { headers }, remoteAddress }: Exchange, trusts: TrustedPeers): string | undefined {
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

/** The address in an entry, which may have a port, and brackets around one of IPv6. */
function addressIn(entry: string): string | undefined {
  const text = entry.trim();
  const [, ipv6, ipv4] = /^(?:\[([^[\]]+)\]|([\d.]+))(?::\d{1,5})?$/.exec(text) ?? [];
  const address = ipv6 ?? ipv4 ?? text;
  if (isIP(address) === 0 || (ipv6 !== undefined && isIP(ipv6) !== 6)) return undefined;
  // A slice would keep the whole field for as long as the address is known.
  return plainAddress(Buffer.from(address).toString());
}

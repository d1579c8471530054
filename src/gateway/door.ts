import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import proxyAddr from 'proxy-addr';
import type { Exchange } from './exchange.ts';

/** Which peers may speak for a client behind them. */
export type TrustedPeers = (address: string, index: number) => boolean;

/** Verdicts are kept: parsing an address costs more than the rest of the door. */
const KNOWN_PEERS = 10_000;

const PROXY_HEADERS = [
  'forwarded',
  'x-real-ip',
  'ssl-client-fingerprint',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarded-port',
  'x-forwarded-prefix',
  'x-forwarded-server',
] as const;

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
  if (!trusts(exchange.remoteAddress, 0)) {
    for (const name of PROXY_HEADERS) delete req.headers[name];
    exchange.realIp = exchange.remoteAddress;
    return;
  }
  exchange.isPeerTrusted = true;
  exchange.realIp = clientAddress(req, trusts) ?? exchange.remoteAddress;
}

/** The rightmost address of `X-Forwarded-For` that is no trusted proxy's, else `X-Real-IP`. */
function clientAddress({ headers }: IncomingMessage, trusts: TrustedPeers): string | undefined {
  const forwarded = addresses(headers['x-forwarded-for']);
  const client = forwarded.findLast((address) => !trusts(address, 0));
  // What stands left of no address was said by nobody who is known.
  if (client !== undefined && isIP(client) !== 0) return client;
  const [real] = addresses(headers['x-real-ip']);
  return real !== undefined && isIP(real) !== 0 ? real : undefined;
}

function addresses(header: string | string[] | undefined): string[] {
  if (header === undefined) return [];
  return String(header)
    .split(',')
    .map((address) => plainAddress(address.trim()));
}

/** An IPv4 peer on a dual-stack listener shows as `::ffff:…`. */
function plainAddress(address: string): string {
  return /^::ffff:/i.test(address) && isIP(address.slice(7)) === 4 ? address.slice(7) : address;
}

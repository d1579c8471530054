import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import proxyAddr from 'proxy-addr';
import type { Exchange } from './exchange.ts';

/** Which peers may speak for a client behind them. */
export type TrustedPeers = (address: string, index: number) => boolean;

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
  return proxyAddr.compile([...peers]);
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
  exchange.realIp = plainAddress(clientAddress(req, trusts) ?? exchange.remoteAddress);
}

/** The rightmost address of `X-Forwarded-For` that is no trusted proxy's, else `X-Real-IP`. */
function clientAddress(req: IncomingMessage, trusts: TrustedPeers): string | undefined {
  if (req.headers['x-forwarded-for'] !== undefined) {
    const address = proxyAddr(req, trusts);
    return isIP(address) === 0 ? undefined : address;
  }
  const real = req.headers['x-real-ip'];
  return typeof real === 'string' && isIP(real.trim()) !== 0 ? real.trim() : undefined;
}

/** An IPv4 peer on a dual-stack listener shows as `::ffff:…`. */
function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && isIP(address.slice(7)) === 4 ? address.slice(7) : address;
}

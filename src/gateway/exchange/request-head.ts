import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import proxyAddr from 'proxy-addr';
import { plainAddress } from '../../lib/ip-address.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import { type Issue, invalidRequest } from '../../platform/errors.ts';
import type { Exchange } from './exchange.ts';

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
export function settleClientAddress(request: Exchange, trusts: TrustedPeers): void {
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

/** Parses an entry, which may have a port, and brackets around an IPv6 address. */
function addressIn(entry: string): string | undefined {
  const text = entry.trim();
  const [, ipv6, ipv4] = /^(?:\[([^[\]]+)\]|([\d.]+))(?::\d{1,5})?$/.exec(text) ?? [];
  const address = ipv6 ?? ipv4 ?? text;
  if (isIP(address) === 0 || (ipv6 !== undefined && isIP(ipv6) !== 6)) return undefined;
  // A slice would keep the whole field in memory.
  return plainAddress(Buffer.from(address).toString());
}

/** The longest correlation id that is forwarded. */
export const MAX_CORRELATION_ID_BYTES = 1024;

/**
 * Forwards the caller's `X-Correlation-ID` as received, or creates one, and echoes it on the response.
 * @throws AppError 400 for one that is too long; the request gets one of its own all the same.
 */
export function correlation(request: Exchange): void {
  const { headers } = request.req;
  const given = headers['x-correlation-id'];
  const received = Array.isArray(given) ? given.join(', ') : given;
  const tooLong = received !== undefined && Buffer.byteLength(received, 'latin1') > MAX_CORRELATION_ID_BYTES;
  request.correlationId = received && !tooLong ? received : uuidV7();
  headers['x-correlation-id'] = request.correlationId;
  request.res.setHeader('X-Correlation-ID', request.correlationId);
  if (tooLong)
    throw invalidRequest([{ path: 'X-Correlation-ID', message: `at most ${MAX_CORRELATION_ID_BYTES} bytes` }]);
}

const UNRESERVED = /[A-Za-z0-9._~-]/;
const ESCAPE = /%([0-9A-Fa-f]{2})/g;
/** Also with a parameter (RFC 3986 section 3.3): some services cut that off first. */
const DOT_SEGMENT = /(?:^|\/)\.\.?(?:[;/]|%3B|$)/;
const AMBIGUOUS = /\/\/|\\|\0/;
const BROKEN_ESCAPE = /%(?![0-9A-Fa-f]{2})/;
/** Scheme, user and host of the absolute form; a host is never empty (RFC 9110 section 4.2). */
const ORIGIN = /^https?:\/\/(?:[\w.~!$&'()*+,;=:%-]*@)?((?:\[[0-9a-f:.]+\]|[\w.~!$&'()*+,;=-]+)(?::\d*)?)(?=[/?]|$)/i;

/** A request target, split and normalised once, so that what is authorised is what is served. */
export interface NormalTarget {
  path: string;
  /** Without the question mark; empty where there is none. */
  query: string;
  /** Host and port of the absolute form. */
  host?: string;
}

/**
 * Normalises the path of a request target (RFC 3986 section 6.2.2): escaped unreserved characters are decoded, and the
 * absolute form is accepted. Returns undefined for anything that a service could read as another path than the
 * authorised one: an encoded slash, backslash or null byte, a dot segment, a double slash, a broken or overlong escape.
 */
export function normalTarget(target: string): NormalTarget | undefined {
  if (target.startsWith('/')) return normalRelative(target);
  const [origin, host] = ORIGIN.exec(target) ?? [];
  if (origin === undefined || host === undefined) return undefined;
  const rest = target.slice(origin.length);
  const normal = normalRelative(rest.startsWith('/') ? rest : `/${rest}`);
  return normal && { ...normal, host };
}

function normalRelative(relative: string): NormalTarget | undefined {
  if (relative.includes('#')) return undefined;
  const mark = relative.indexOf('?');
  const raw = mark < 0 ? relative : relative.slice(0, mark);
  const path = raw.includes('%') ? decodeUnreserved(raw) : raw;
  if (path === undefined || AMBIGUOUS.test(path) || DOT_SEGMENT.test(path)) return undefined;
  return { path, query: mark < 0 ? '' : relative.slice(mark + 1) };
}

function decodeUnreserved(path: string): string | undefined {
  if (BROKEN_ESCAPE.test(path)) return undefined;
  const decoded = path.replace(ESCAPE, (spelling, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16));
    return UNRESERVED.test(character) ? character : spelling.toUpperCase();
  });
  if (/%(2F|5C|00)/.test(decoded)) return undefined;
  try {
    decodeURIComponent(decoded);
  } catch {
    return undefined;
  }
  return decoded;
}

type Head = Pick<IncomingMessage, 'httpVersion' | 'headers' | 'rawHeaders'>;

const NO_BODY = 'an upgrade has no body';

/** `uri-host [":" port]` (RFC 9110 section 7.2). */
const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/;

/**
 * Returns the issue of a head that Node's parser accepts and RFC 9112 does not: another version, or a Host or framing
 * that two readers can take in two ways, such as a body after the head of an upgrade, where the frames of the new
 * protocol begin. Undefined for a good head.
 */
export function headFault({ httpVersion, headers, rawHeaders }: Head, isUpgrade = false): Issue | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return { path: '', message: 'must be HTTP/1.1' };
  const { host, 'transfer-encoding': coding } = headers;
  if (host === undefined && httpVersion === '1.1') return { path: 'Host', message: 'is required' };
  if (host !== undefined && (!HOST.test(host) || hosts(rawHeaders) > 1)) {
    return { path: 'Host', message: 'must be one host' };
  }
  if (coding !== undefined && (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked')) {
    return { path: 'Transfer-Encoding', message: 'must be chunked, in HTTP/1.1' };
  }
  if (!isUpgrade) return undefined;
  if (coding !== undefined) return { path: 'Transfer-Encoding', message: NO_BODY };
  if (Number(headers['content-length'] ?? 0) > 0) return { path: 'Content-Length', message: NO_BODY };
  return undefined;
}

/** Returns whether a request announces a body (RFC 9112 section 6.3). */
export function announcesBody({ headers }: Pick<Head, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Counts Host fields: of two, Node's parser keeps the first (RFC 9112 section 3.2). */
function hosts(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}

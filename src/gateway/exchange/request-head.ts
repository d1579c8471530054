import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import proxyAddr from 'proxy-addr';
import { QUOTA_HEADERS, RATE_HEADERS } from '../../access/limits/limits.rules.ts';
import { isSecretHeader } from '../../audit/mask.ts';
import { SECRETS, withoutOwnSecrets } from '../../audit/masked-names.ts';
import { plainAddress } from '../../lib/ip-address.ts';
import { parsedOrNone } from '../../lib/json.ts';
import { uuidV7 } from '../../lib/uuid-v7.ts';
import { type Issue, invalidRequest } from '../../platform/errors.ts';
import type { Exchange, NormalTarget } from './exchange.ts';

/** A function that checks whether an address belongs to a trusted proxy. */
export type TrustedPeers = (address: string, index: number) => boolean;

/**
 * The most entries of `X-Forwarded-For` or `Forwarded` that are read: real chains of proxies are shorter, and each entry costs a check.
 */
const MAX_HOPS = 32;

/**
 * Matches header fields that only a proxy may send, with any character for a hyphen: CGI and WSGI turn it into an
 * underscore.
 */
const PROXY_HEADER = /^(?:x[^a-z\d])?forwarded|^x[^a-z\d]real[^a-z\d]ip|^ssl[^a-z\d]client/;

/** Compiles the entries of `TRUST_PROXY`: addresses, networks, and the names loopback, linklocal, uniquelocal. */
export function compileTrust(peers: readonly string[]): TrustedPeers {
  return proxyAddr.compile([...peers]);
}

/**
 * Determines the client's address. If the peer is not a trusted proxy, removes the header fields that only such a proxy
 * may send.
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
 * Returns the rightmost address of `X-Forwarded-For` that is not a trusted proxy, or the peer's if all are; without
 * that field the same of `Forwarded`, then the address in `X-Real-IP`, or else the peer's. A field without entries
 * counts as absent. Returns undefined when an entry on the way is not an address, or the last `MAX_HOPS` entries are
 * all empty or trusted proxies, because the rest may be forged.
 */
function clientAddress({ req: { headers }, remoteAddress }: Exchange, trusts: TrustedPeers): string | undefined {
  const { 'x-forwarded-for': forwardedFor, forwarded, 'x-real-ip': real } = headers;
  if (hasEntries(forwardedFor)) return farthest(String(forwardedFor), addressIn);
  if (hasEntries(forwarded)) return farthest(String(forwarded), (element) => addressIn(forwardedNode(element)));
  return real === undefined ? remoteAddress : addressIn(String(real));

  function farthest(entries: string, read: (entry: string) => string | undefined): string | undefined {
    let end = entries.length;
    for (let hop = 0; hop < MAX_HOPS; hop += 1) {
      const start = entryStart(entries, end);
      const entry = entries.slice(start, end).trim();
      const address = entry === '' ? remoteAddress : read(entry);
      if (entry !== '' && (address === undefined || !trusts(address, 0))) return address;
      if (start === 0) return remoteAddress;
      end = start - 1;
    }
    return undefined;
  }
}

/** Checks whether a list has an entry that is not empty. */
function hasEntries(list: string | string[] | undefined): boolean {
  return list !== undefined && /[^\s,]/.test(String(list));
}

/** Returns where the entry of a list begins that ends at `end`: behind a comma outside quotes, or at the start. */
function entryStart(list: string, end: number): number {
  let isQuoted = false;
  for (let at = end - 1; at >= 0; at -= 1) {
    if (list[at] === ',' && !isQuoted) return at + 1;
    if (list[at] === '"' && list[at - 1] !== '\\') isQuoted = !isQuoted;
  }
  return 0;
}

/** Matches a pair of an element of `Forwarded` (RFC 7239 section 4); values with colons are often sent without quotes. */
const PAIR = /([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s";,]*))\s*(?:;\s*|$)/gy;

/** Returns the node that an element of `Forwarded` names; empty if it is malformed or does not name one. */
function forwardedNode(element: string): string {
  const pairs = [...element.matchAll(PAIR)];
  const isWhole = pairs.reduce((length, [pair]) => length + pair.length, 0) === element.length;
  const nodes = pairs.filter(([, name = '']) => name.toLowerCase() === 'for');
  const [[, , quoted, plain] = []] = nodes;
  return isWhole && nodes.length === 1 ? (quoted?.replace(/\\(.)/g, '$1') ?? plain ?? '') : '';
}

/**
 * Returns the IP address of an entry, which may have a port, and brackets around an IPv6 address; undefined when it is
 * invalid.
 */
function addressIn(entry: string): string | undefined {
  const text = entry.trim();
  const [, ipv6, ipv4] = /^(?:\[([^[\]]+)\]|([\d.]+))(?::\d{1,5})?$/.exec(text) ?? [];
  const address = ipv6 ?? ipv4 ?? text;
  if (isIP(address) === 0 || (ipv6 !== undefined && isIP(ipv6) !== 6)) return undefined;
  // A plain slice would hold the whole field in memory.
  return plainAddress(Buffer.from(address).toString());
}

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

/** The most names that a preflight gets allowed. */
const MAX_NAMES = 64;
/** Matches the name of a header field (RFC 9110 section 5.1). */
const FIELD_NAME = /^[\w!#$%&'*+.^`|~-]+$/;

const EXPOSED_HEADERS = [
  'X-Correlation-ID',
  'WWW-Authenticate',
  'Retry-After',
  'Location',
  'ETag',
  ...[0, 1, 2].flatMap((part) => RATE_HEADERS.map((names) => names[part])),
  ...QUOTA_HEADERS,
].join(', ');

/** Returns the header fields for browsers of a response to a request with this `Origin`. */
export type Cors = (origin: string | undefined) => Readonly<Record<string, string>>;

/**
 * Creates the function that returns the CORS headers of a response, of an error too: `Vary` on every one, and the others
 * where the request names an origin. Does not allow credentials.
 */
export function cors(origins: readonly string[]): Cors {
  const any = origins.includes('*');
  const allowed = new Set(origins);
  return (origin) => {
    if (origin === undefined || !(any || allowed.has(origin))) return { Vary: 'Origin' };
    return {
      Vary: 'Origin',
      'Access-Control-Allow-Origin': any ? '*' : origin,
      'Access-Control-Expose-Headers': EXPOSED_HEADERS,
    };
  };
}

/**
 * Answers an OPTIONS request on any path: with the headers of a CORS preflight if it names an allowed origin. All
 * requested header fields are allowed by name, since `*` excludes Authorization (Fetch standard, section 3.3.3).
 */
export function answerPreflight({ req, res }: Exchange): void {
  if (res.hasHeader('Access-Control-Allow-Origin')) {
    const requestedHeaders = (req.headers['access-control-request-headers'] ?? '')
      .split(',')
      .map((name) => name.trim());
    const names = requestedHeaders.filter((name) => FIELD_NAME.test(name)).slice(0, MAX_NAMES);
    res.setHeader('Access-Control-Allow-Methods', METHODS);
    if (names.length > 0) res.setHeader('Access-Control-Allow-Headers', names.join(', '));
    res.setHeader('Access-Control-Max-Age', '600');
  }
  res.statusCode = 204;
  res.end();
}

/**
 * Returns the secrets in the head of a request: of the fields whose values are masked what follows a scheme, and each
 * part, such as one cookie or the password of HTTP Basic; of the query what has the name of a secret.
 */
export function secretsIn(rawHeaders: readonly string[], target = ''): string[] {
  const fields = rawHeaders.filter((value, at) => at % 2 === 1 && isSecretHeader(rawHeaders[at - 1] ?? '', value));
  return [
    ...fields.map((field) => field.replace(/^\S+\s+/, '')),
    // A field of commas has as many parts as characters.
    ...fields
      .join(' ')
      .split(/[\s,;]+/, 1_024)
      .flatMap((part) => [
        part,
        part.replace(/^[^=]*=/, ''),
        Buffer.from(part, 'base64')
          .toString()
          .replace(/^[^:]*:/, ''),
      ]),
    ...[...new URLSearchParams(target.split('?', 2)[1])].flatMap(([name, value]) =>
      SECRETS.isSecretKey(name) ? value : [],
    ),
  ];
}

/** The longest correlation id that is accepted from a caller, in bytes. */
export const MAX_CORRELATION_ID_BYTES = 1024;

/**
 * Takes the correlation id from the caller's `X-Correlation-ID`, or creates one, and sets it on request and response. If
 * it contains the credentials of the request, all else has its hash.
 * @throws Refusal 400 when the caller's is too long; the request then has a new one.
 */
export function correlation(request: Exchange): void {
  const { headers } = request.req;
  const received = headers['x-correlation-id']?.toString();
  const tooLong = received !== undefined && Buffer.byteLength(received, 'latin1') > MAX_CORRELATION_ID_BYTES;
  const id = received && !tooLong ? received : uuidV7();
  headers['x-correlation-id'] = id;
  request.res.setHeader('X-Correlation-ID', id);
  request.correlationId =
    id === received ? withoutOwnSecrets(id, secretsIn(request.req.rawHeaders, request.req.url)) : id;
  if (tooLong)
    throw invalidRequest([
      { path: 'X-Correlation-ID', message: `must have at most ${MAX_CORRELATION_ID_BYTES} bytes` },
    ]);
}

const UNRESERVED = /[A-Za-z0-9._~-]/;
const ESCAPE = /%([0-9A-Fa-f]{2})/g;
/** Matches a dot segment, even one with a parameter (RFC 3986 section 3.3), which some services remove first. */
const DOT_SEGMENT = /(?:^|\/)\.\.?(?:[;/]|%3B|$)/;
const AMBIGUOUS = /\/\/|\\|\0/;
const BROKEN_ESCAPE = /%(?![0-9A-Fa-f]{2})/;
/** Matches scheme, user and host of the absolute form; a host is never empty (RFC 9110 section 4.2). */
const ORIGIN = /^https?:\/\/(?:[\w.~!$&'()*+,;=:%-]*@)?((?:\[[0-9a-f:.]+\]|[\w.~!$&'()*+,;=-]+)(?::\d*)?)(?=[/?]|$)/i;

/**
 * Normalises the path of a request target (RFC 3986 section 6.2.2): decodes escaped unreserved characters, and accepts
 * the absolute form. Returns undefined for anything that a service could read as a path other than the authorised one:
 * an encoded slash, backslash or null byte, a dot segment, a double slash, a broken or overlong escape.
 */
export function normalTarget(target: string): NormalTarget | undefined {
  if (target.startsWith('/')) return normalRelative(target);
  const [origin, host] = ORIGIN.exec(target) ?? [];
  if (origin === undefined || host === undefined || !isHost(host)) return undefined;
  const relativeTarget = target.slice(origin.length);
  const normal = normalRelative(relativeTarget.startsWith('/') ? relativeTarget : `/${relativeTarget}`);
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
  const isUtf8 = parsedOrNone(() => decodeURIComponent(decoded)) !== undefined;
  return isUtf8 && !/%(2F|5C|00)/.test(decoded) ? decoded : undefined;
}

type Head = Pick<IncomingMessage, 'httpVersion' | 'headers' | 'rawHeaders'>;

const NO_BODY = 'must be absent: an upgrade request has no body';

/** Matches the value of a Host field: `uri-host [":" port]` (RFC 9110 section 7.2). */
const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/;

/** Checks that a host is none, or one that a URL may have: its port is at most 65535, for instance. */
function isHost(text: string): boolean {
  return HOST.test(text) && (text === '' || URL.canParse(`http://${text}`));
}

/**
 * Returns the issue of a head that Node's parser accepts but RFC 9112 does not: another version, or a field or framing
 * that two recipients could read differently, such as two values of Authorization, or a body after the head of an
 * upgrade, where the frames of the new protocol begin. Returns undefined for a valid head.
 */
export function headFault({ httpVersion, headers, rawHeaders }: Head, isUpgrade = false): Issue | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return { path: '', message: 'must be HTTP/1.1' };
  const { host, 'transfer-encoding': coding } = headers;
  if (host === undefined && httpVersion === '1.1') return { path: 'Host', message: 'is required' };
  const path = ambiguousField(rawHeaders, headers);
  if (path !== undefined && path !== 'Host') return { path, message: 'must be given once' };
  if (path !== undefined || (host !== undefined && !isHost(host))) return { path: 'Host', message: 'must be one host' };
  if (coding !== undefined && (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked')) {
    return { path: 'Transfer-Encoding', message: 'must be chunked, and only in an HTTP/1.1 request' };
  }
  if (!isUpgrade) return undefined;
  if (coding !== undefined) return { path: 'Transfer-Encoding', message: NO_BODY };
  return Number(headers['content-length'] ?? 0) > 0 ? { path: 'Content-Length', message: NO_BODY } : undefined;
}

/** The fields that have one value, by the length of their names: most others are passed over without a comparison. */
const SINGLE = new Map(['Host', 'Content-Type', 'Authorization', 'X-Target-Server'].map((name) => [name.length, name]));

/**
 * Returns the name of a field that has several values, of which Node's parser would take the first or join them all; a
 * second Host is one too (RFC 9112 section 3.2). A value that is repeated counts as one.
 */
function ambiguousField(rawHeaders: readonly string[], headers: Head['headers']): string | undefined {
  const values: Record<string, string | undefined> = {};
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = SINGLE.get(rawHeaders[at]?.length ?? 0);
    if (name === undefined || rawHeaders[at]?.toLowerCase() !== name.toLowerCase()) continue;
    const { [at + 1]: value } = rawHeaders;
    if (values[name] !== undefined && (name === 'Host' || value !== values[name])) return name;
    if (values[name] !== undefined) headers[name.toLowerCase()] = value;
    values[name] = value;
  }
  return undefined;
}

import type { IncomingHttpHeaders } from 'node:http';
import { validTraceparent } from '../../lib/tracing.ts';
import { Refusal, serviceUnavailable } from '../../platform/errors.ts';
import type { Upstream } from '../endpoints/upstream.ts';
import type { Exchange } from '../exchange/exchange.ts';

/** Returns a 502: the upstream could not be reached, or sent an invalid response. */
export function badGateway(cause: unknown): Refusal {
  return new Refusal('bad_gateway', { cause });
}

/** Returns a 503 with `Retry-After`: the upstream is failing or overloaded. */
export function unavailable(retryAfterMs: number): Refusal {
  return serviceUnavailable(undefined, Math.max(1, Math.ceil(retryAfterMs / 1000)));
}

/** Thrown when the response of an upstream cannot be passed on. */
export class BadResponseError extends Error {
  override name = 'BadResponseError';
}

/** Header fields of a single connection (RFC 9110 section 7.6.1), and those for proxies, which a gateway is not. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Header fields of a request that the gateway replaces or removes, because it sets the caller's address and host
 * itself.
 */
const REWRITTEN: ReadonlySet<string> = new Set([
  'expect',
  'forwarded',
  'host',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
]);

/** Header fields that are meant for every recipient; `Connection` cannot remove them (RFC 9110 section 7.6.1). */
const END_TO_END: ReadonlySet<string> = new Set([
  'authorization',
  'cache-control',
  'content-encoding',
  'content-length',
  'content-type',
  'cookie',
  'ssl-client-fingerprint',
  'x-correlation-id',
]);

/**
 * Returns the header fields of a request to an upstream, names and values alternating: the received fields except those
 * of the connection, and the client's address, protocol and host as the gateway determined them. `traceparent` replaces
 * a received one; if that was missing or invalid, `tracestate` is dropped, because it belongs to another trace (W3C
 * Trace Context).
 */
export function requestFields({ req, realIp, clientAddress, isPeerTrusted }: Exchange, traceparent?: string): string[] {
  const { headers } = req;
  const connectionOptions = namedBy(headers.connection);
  const isNewTrace = traceparent !== undefined && validTraceparent(headers.traceparent) === undefined;
  const fields: string[] = [];
  for (const name in headers) {
    if (HOP_BY_HOP.has(name) || REWRITTEN.has(name) || connectionOptions?.has(name)) continue;
    if (name === 'traceparent' && traceparent !== undefined) continue;
    if (name === 'tracestate' && isNewTrace) continue;
    const value = headers[name];
    if (typeof value === 'string') fields.push(name, value);
    else for (const item of value ?? []) fields.push(name, item);
  }
  const host = (isPeerTrusted && text(headers['x-forwarded-host'])) || headers.host;
  // The first entry is what the client used. Unlike addresses, protocols do not say which proxy wrote them, so the list
  // of a trusted proxy is believed as a whole.
  const proto = isPeerTrusted && /^https\s*(?:,|$)/i.test(text(headers['x-forwarded-proto']) ?? '') ? 'https' : 'http';
  fields.push('x-forwarded-for', clientAddress ?? 'unknown', 'x-real-ip', realIp, 'x-forwarded-proto', proto);
  if (host !== undefined) fields.push('x-forwarded-host', host);
  if (traceparent !== undefined) fields.push('traceparent', traceparent);
  return fields;
}

/**
 * Calls `put` for each header field of an upstream's response that is passed on: all but the fields of the connection
 * and those that the gateway sets itself (correlation id, CORS).
 */
export function eachResponseField(headers: IncomingHttpHeaders, put: (name: string, value: string | string[]) => void) {
  const connectionOptions = namedBy(headers.connection);
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || HOP_BY_HOP.has(name) || name === 'x-correlation-id') continue;
    if (connectionOptions?.has(name) || name.startsWith('access-control-')) continue;
    put(name, value);
  }
}

/** Returns the header fields that a `Connection` field removes; undefined when it lists none. */
function namedBy(connection: string | string[] | undefined): ReadonlySet<string> | undefined {
  const list = text(connection)?.toLowerCase();
  if (list === undefined || list === 'keep-alive' || list === 'close') return undefined;
  const names = list.split(',').map((name) => name.trim());
  return new Set(names.filter((name) => !END_TO_END.has(name)));
}

function text(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value;
}

/**
 * Header fields of a response that contain URLs for its client, each with a pattern that matches what is before a URL,
 * and the URL. The patterns take linear time: services may send 64 KiB of anything.
 */
const FIELDS: readonly (readonly [name: string, urls: RegExp])[] = [
  ['location', /^()(.+)$/],
  ['content-location', /^()(.+)$/],
  ['link', /(<)([^<>]+)(?=>)/g],
  // `url=` may be absent, as in HTML's `http-equiv="refresh"`.
  ['refresh', /^([\d.]*[;,\s]*(?:url\s*=\s*["']?)?)([^"'\s]+)/i],
];

/** Splits an absolute or scheme-relative URL, in any spelling that browsers accept, before its path. */
const ADDRESSED = /^\s*(?:https?:)?[\\/]{2}[^\\/?#]*(.*)$/is;

/**
 * Replaces the address of a service by the public URL of the gateway in the URLs of its response. The path of the
 * service's URL is not part of public paths. URLs of other hosts and relative ones stay as they are; the scheme is not
 * compared, because services take it from `X-Forwarded-Proto`.
 */
export function replaceOwnAddresses(
  headers: IncomingHttpHeaders,
  { at, prefix }: Pick<Upstream, 'at' | 'prefix'>,
  publicUrl: string,
): void {
  const publicOf = (url: string): string => {
    const [, suffix] = ADDRESSED.exec(url) ?? [];
    if (suffix === undefined || URL.parse(url, at.href)?.host !== at.host) return url;
    const isInside = suffix.startsWith(prefix) && /^(?:[/?#]|$)/.test(suffix.slice(prefix.length));
    return publicUrl + (isInside ? suffix.slice(prefix.length) : suffix);
  };
  const replaced = (_match: string, before: string, url: string) => before + publicOf(url);
  for (const [name, urls] of FIELDS) {
    const { [name]: value } = headers;
    if (Array.isArray(value)) headers[name] = value.map((item) => item.replace(urls, replaced));
    else if (value !== undefined) headers[name] = value.replace(urls, replaced);
  }
}

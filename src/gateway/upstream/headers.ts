import type { IncomingHttpHeaders } from 'node:http';
import { validTraceparent } from '../../lib/tracing.ts';
import { AppError } from '../../platform/errors.ts';
import type { Exchange } from '../exchange/exchange.ts';

/** 502: the upstream could not be reached, or what it sent is no answer. */
export function badGateway(cause: unknown): AppError {
  return new AppError(502, 'bad_gateway', { cause });
}

/** 503: nothing is sent for a while, since the upstream is failing or has too much to do. */
export function unavailable(retryAfterMs: number): AppError {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000));
  return new AppError(503, 'service_unavailable', { headers: { 'Retry-After': `${seconds}` } });
}

/** The response of an upstream cannot be passed on. */
export class BadResponseError extends Error {
  override name = 'BadResponseError';
}

/** Fields that concern one connection (RFC 9110 section 7.6.1), and those between proxies, which a gateway is not. */
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

/** Fields that the gateway sets itself, whatever was received; a received `Forwarded` would contradict them. */
const REWRITTEN: ReadonlySet<string> = new Set([
  'expect',
  'forwarded',
  'host',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
]);

/**
 * Fields that are meant for every recipient: a `Connection` field that names them has no effect (RFC 9110 section
 * 7.6.1).
 */
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
 * Returns the fields of a request to an upstream, alternating names and values: the received ones without those of the
 * connection, and the caller as the gateway has determined it. The host is that of the upstream. `traceparent` replaces
 * a received one; a `tracestate` is dropped then, since it belongs to its own trace (W3C Trace Context).
 */
export function requestFields({ req, realIp, clientAddress, isPeerTrusted }: Exchange, traceparent?: string): string[] {
  const { headers } = req;
  const named = namedBy(headers.connection);
  const isNewTrace = traceparent !== undefined && validTraceparent(headers.traceparent) === undefined;
  const fields: string[] = [];
  for (const name in headers) {
    if (HOP_BY_HOP.has(name) || REWRITTEN.has(name) || named?.has(name)) continue;
    if (name === 'traceparent' && traceparent !== undefined) continue;
    if (name === 'tracestate' && isNewTrace) continue;
    const value = headers[name];
    if (typeof value === 'string') fields.push(name, value);
    else for (const one of value ?? []) fields.push(name, one);
  }
  const host = (isPeerTrusted && text(headers['x-forwarded-host'])) || headers.host;
  // The first entry is what the client used. Of a list of addresses each proxy's own entry can be checked; a protocol
  // does not say who wrote it, so that a trusted proxy is believed as a whole.
  const proto = isPeerTrusted && /^https\s*(?:,|$)/i.test(text(headers['x-forwarded-proto']) ?? '') ? 'https' : 'http';
  fields.push('x-forwarded-for', clientAddress ?? 'unknown', 'x-real-ip', realIp, 'x-forwarded-proto', proto);
  if (host !== undefined) fields.push('x-forwarded-host', host);
  if (traceparent !== undefined) fields.push('traceparent', traceparent);
  return fields;
}

/**
 * Calls `pass` for each field of an upstream's response that is passed on: not those of the connection, nor those that
 * the gateway sets itself (correlation id, CORS).
 */
export function eachResponseField(headers: IncomingHttpHeaders, put: (name: string, value: string | string[]) => void) {
  const named = namedBy(headers.connection);
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || HOP_BY_HOP.has(name) || name === 'x-correlation-id') continue;
    if (named?.has(name) || name.startsWith('access-control-')) continue;
    put(name, value);
  }
}

/** Returns the field names in a `Connection` field that it may remove. */
function namedBy(connection: string | string[] | undefined): ReadonlySet<string> | undefined {
  const list = text(connection)?.toLowerCase();
  if (list === undefined || list === 'keep-alive' || list === 'close') return undefined;
  const names = list.split(',').map((name) => name.trim());
  return new Set(names.filter((name) => !END_TO_END.has(name)));
}

function text(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value;
}

import type { IncomingHttpHeaders } from 'node:http';
import { validTraceparent } from '../../lib/tracing.ts';
import type { Exchange } from '../exchange.ts';

/** Fields of one connection (RFC 9110 section 7.6.1), and those of proxies, of which the gateway is none. */
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

/** What the gateway says itself, whatever was received; `Forwarded` would contradict it. */
const REWRITTEN: ReadonlySet<string> = new Set([
  'expect',
  'forwarded',
  'host',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
]);

/** Fields that reach every recipient: a `Connection` field that names them removes nothing (RFC 9110 section 7.6.1). */
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
 * The fields of a request to an upstream, name after value: the received ones without those of the connection, and who
 * asks, as the gateway has judged it. The host is the upstream's own. `traceparent` stands in the place of a received one;
 * a `tracestate` belongs to the trace that it came with, and to no other (W3C Trace Context).
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
  // Of a list the first is what the client used. Beside addresses one could tell who has said which; a protocol tells
  // nothing of who wrote it, so that a trusted peer is believed as a whole.
  const proto = isPeerTrusted && /^https\s*(?:,|$)/i.test(text(headers['x-forwarded-proto']) ?? '') ? 'https' : 'http';
  fields.push('x-forwarded-for', clientAddress ?? 'unknown', 'x-real-ip', realIp, 'x-forwarded-proto', proto);
  if (host !== undefined) fields.push('x-forwarded-host', host);
  if (traceparent !== undefined) fields.push('traceparent', traceparent);
  return fields;
}

/**
 * Gives the fields of an upstream's answer that pass: neither those of the connection, nor what the gateway says itself
 * (the correlation id, CORS).
 */
export function eachAnswerField(headers: IncomingHttpHeaders, put: (name: string, value: string | string[]) => void) {
  const named = namedBy(headers.connection);
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || HOP_BY_HOP.has(name) || name === 'x-correlation-id') continue;
    if (named?.has(name) || name.startsWith('access-control-')) continue;
    put(name, value);
  }
}

/** The names in a `Connection` field that it may remove. */
function namedBy(connection: string | string[] | undefined): ReadonlySet<string> | undefined {
  const list = text(connection)?.toLowerCase();
  if (list === undefined || list === 'keep-alive' || list === 'close') return undefined;
  const names = list.split(',').map((name) => name.trim());
  return new Set(names.filter((name) => !END_TO_END.has(name)));
}

function text(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value;
}

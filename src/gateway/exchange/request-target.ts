import type { IncomingMessage } from 'node:http';
import type { Issue } from '../../platform/errors.ts';

const UNRESERVED = /[A-Za-z0-9._~-]/;
const ESCAPE = /%([0-9A-Fa-f]{2})/g;
/** Also with a parameter (RFC 3986 section 3.3): some services cut that off first. */
const DOT_SEGMENT = /(?:^|\/)\.\.?(?:[;/]|%3B|$)/;
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
  if (path === undefined || !isPlain(path)) return undefined;
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

function isPlain(path: string): boolean {
  if (path.includes('//') || path.includes('\\') || path.includes('\0')) return false;
  return !DOT_SEGMENT.test(path);
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

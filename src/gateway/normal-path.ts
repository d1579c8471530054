const UNRESERVED = /[A-Za-z0-9._~-]/;
const ESCAPE = /%([0-9A-Fa-f]{2})/g;
/** With a parameter too (RFC 3986 section 3.3): some services cut it off before they look. */
const DOT_SEGMENT = /(?:^|\/)\.\.?(?:[;/]|%3B|$)/;
const BROKEN_ESCAPE = /%(?![0-9A-Fa-f]{2})/;
/** Scheme, user and host of the absolute form (RFC 9110 section 4.2: a host is never empty). */
const ORIGIN = /^https?:\/\/(?:[\w.~!$&'()*+,;=:%-]*@)?((?:\[[0-9a-f:.]+\]|[\w.~!$&'()*+,;=-]+)(?::\d*)?)(?=[/?]|$)/i;

/** A request target, split and normalised once: what is authorised is what is served. */
export interface NormalTarget {
  path: string;
  /** Without the question mark; empty where there is none. */
  query: string;
  /** Host and port of the absolute form. */
  host?: string;
}

/**
 * Normalises the path of a request target (RFC 3986 section 6.2.2): escaped unreserved characters are decoded, the
 * absolute form is accepted. Undefined for what could reach a service under another spelling than the authorised one:
 * an encoded slash, backslash or null byte, a dot segment, a double slash, a broken or overlong escape.
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

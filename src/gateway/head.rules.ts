import type { IncomingMessage } from 'node:http';
import type { Issue } from '../errors/app-error.ts';

type Head = Pick<IncomingMessage, 'httpVersion' | 'headers' | 'rawHeaders'>;

const NO_BODY = 'an upgrade has no body';

/** `uri-host [":" port]` (RFC 9110 section 7.2). */
const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/;

/**
 * What the parser lets pass in the head of a request and RFC 9112 does not: another version, a Host or a framing that two
 * readers can take in two ways, such as a body behind the head of an upgrade, where the frames of the new protocol begin.
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

/** Whether a request announces a body (RFC 9112 section 6.3). */
export function announcesBody({ headers }: Pick<Head, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** How many there are: of two, the parser keeps the first (RFC 9112 section 3.2). */
function hosts(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}

import type { IncomingHttpHeaders } from 'node:http';
import type { Upstream } from '../endpoints/upstream.ts';

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

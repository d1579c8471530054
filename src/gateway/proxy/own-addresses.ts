import type { IncomingHttpHeaders } from 'node:http';
import type { Upstream } from '../endpoints/upstream.ts';

/** Header fields of a response that contain URLs for its client, each with a pattern that matches the URLs in it. */
const FIELDS: readonly (readonly [name: string, urls: RegExp])[] = [
  ['location', /^.+$/],
  ['content-location', /^.+$/],
  ['link', /(?<=<)[^>]+(?=>)/g],
  ['refresh', /(?<=url\s*=\s*["']?)[^"'\s]+/i],
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
  for (const [name, urls] of FIELDS) {
    const { [name]: value } = headers;
    if (Array.isArray(value)) headers[name] = value.map((item) => item.replace(urls, publicOf));
    else if (value !== undefined) headers[name] = value.replace(urls, publicOf);
  }
}

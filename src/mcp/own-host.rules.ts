/** A host and perhaps a port, and nothing that a URL would read as something else. */
const AUTHORITY = /^(?:\[[0-9a-f:.]+\]|[\w.-]+)(?::\d+)?$/i;
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/**
 * Whether a `Host` is that of the public URL, or of the machine itself on any port: a page that has brought its own name
 * to our address (DNS rebinding) sends another one.
 */
export function isOwnHost(host: string | undefined, publicUrl: string): boolean {
  if (host === undefined || !AUTHORITY.test(host)) return false;
  const own = URL.parse(publicUrl);
  const given = URL.parse(`${own?.protocol ?? 'http:'}//${host}`);
  if (!given) return false;
  return given.host === own?.host || LOOPBACK.test(given.hostname);
}

/** Tells whether requests of an origin are taken: none is named by programs, `*` stands for all. */
export function originCheck(allowed: readonly string[]): (origin: string | undefined) => boolean {
  const any = allowed.includes('*');
  const known = new Set(allowed);
  return (origin) => any || origin === undefined || known.has(origin);
}

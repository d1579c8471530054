import { noToken, unauthorized } from '../errors/app-error.ts';

/**
 * What an Authorization header shows as a bearer token (RFC 6750 section 2.1).
 * @throws AppError 401 where it shows none, or more than one word.
 */
export function bearerOf(authorization: string | undefined): string {
  const shown = /^Bearer +(\S.*)$/i.exec(authorization ?? '')?.[1];
  if (shown === undefined) throw noToken();
  if (/\s/.test(shown)) throw unauthorized();
  return shown;
}

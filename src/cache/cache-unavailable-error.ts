/** The cache cannot answer now. Nothing is known of whether what was asked for has been done. */
export class CacheUnavailableError extends Error {
  override name = 'CacheUnavailableError';

  constructor(cause?: unknown) {
    super('the cache is unavailable', cause === undefined ? undefined : { cause });
  }
}

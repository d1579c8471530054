/** Returns an access token. `rejected` is one that the gateway has answered with 401: return another. */
export type TokenSource = (rejected?: string) => Promise<string>;

/**
 * Keeps one token for all callers. Renews it before it expires (by a tenth of its lifetime, at most 30 s), once for
 * all concurrent callers.
 * @param issue requests a token with its lifetime in seconds
 */
export function keptToken(issue: () => Promise<{ access_token: string; expires_in: number }>): TokenSource {
  let current = { token: '', renewAt: 0 };
  let renewing: Promise<string> | undefined;
  const renew = async () => {
    const { access_token: token, expires_in: seconds } = await issue();
    current = { token, renewAt: Date.now() + seconds * 1000 - Math.min(30_000, seconds * 100) };
    return token;
  };
  return async (rejected) => {
    if (current.token !== rejected && Date.now() < current.renewAt) return current.token;
    renewing ??= renew().finally(() => {
      renewing = undefined;
    });
    return renewing;
  };
}

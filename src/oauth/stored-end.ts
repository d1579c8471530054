const YEAR_10000_MS = Date.UTC(10_000, 0, 1);

/** When a row about a token may go, as it is stored: null for never, and for an end that has five digits in its year. */
export function storedEnd(expiresAtMs: number | undefined): string | null {
  return expiresAtMs === undefined || expiresAtMs >= YEAR_10000_MS ? null : new Date(expiresAtMs).toISOString();
}

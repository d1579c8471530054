const FIRST_MS = 1_000;
const LAST_MS = 3_600_000;

/** How long an id rests after so many attempts without a registration: 1 s, doubling up to 1 h. */
export function lookupRestMs(attempts: number): number {
  return Math.min(FIRST_MS * 2 ** Math.max(0, attempts - 1), LAST_MS);
}

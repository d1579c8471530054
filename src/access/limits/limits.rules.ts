import {
  type CountedRequest,
  type CountWindow,
  QUOTA_WINDOW,
  RATE_WINDOWS,
  type RequestLimits,
} from '../../platform/cache/counts.rules.ts';
import { Refusal } from '../../platform/errors.ts';

/** The verdict on a request of a client. */
export interface LimitVerdict {
  /** The refusal of a request that exceeds a limit; undefined for one that was counted. */
  readonly refusal?: Refusal;
  /** The response headers that state the client's limits and what remains of them: names and values alternating. */
  readonly headers: readonly string[];
}

/** The names of the headers of a limit: its value, what remains, and the seconds until its window ends. */
export type HeaderNames = readonly [limit: string, remaining: string, reset: string];

const TIGHTEST = rateHeaders('');
const RATES = RATE_WINDOWS.map((window) => ({
  ...window,
  names: rateHeaders(`-${window.name}`),
  reason: `requests_per_${window.name.toLowerCase()}`,
}));
/** The names of the headers of a quota. */
export const QUOTA_HEADERS: HeaderNames = ['X-MonthlyLimit-Limit', 'X-MonthlyLimit-Remaining', 'X-MonthlyLimit-Reset'];
const QUOTA = { ...QUOTA_WINDOW, names: QUOTA_HEADERS, reason: 'monthly_limit' };
/** The names of the headers of rates: of the one with the fewest remaining requests, then of each window. */
export const RATE_HEADERS = [TIGHTEST, ...RATES.map(({ names }) => names)];

function rateHeaders(suffix: string): HeaderNames {
  return [`X-Ratelimit-Limit${suffix}`, `X-Ratelimit-Remaining${suffix}`, `X-Ratelimit-Reset${suffix}`];
}

/** A limit with how many requests remain in its present window, and the seconds until that ends. */
interface LimitUse {
  readonly names: HeaderNames;
  /** The limit as the settings of a client name it. */
  readonly reason: string;
  readonly limit: number;
  readonly left: number;
  readonly reset: number;
}

/**
 * Returns the verdict on a request. Of exceeded limits a rate takes precedence over the quota; the time to wait is the
 * longest of all. The headers state the limit, what remains, and the seconds until the window ends. Those without the
 * name of a window describe the rate with the fewest remaining requests; among equals the longest window.
 */
export function verdictOf(limits: RequestLimits, counted: CountedRequest, nowMs: number): LimitVerdict {
  const usesOf = (windows: readonly (CountWindow & Pick<LimitUse, 'names' | 'reason'>)[]): LimitUse[] =>
    windows
      .filter(({ limit }) => limits[limit] > 0)
      .map(({ names, reason, limit, count, at, startsAtMs }) => ({
        names,
        reason,
        limit: limits[limit],
        left: Math.max(0, limits[limit] - counted[count]),
        reset: Math.max(1, Math.ceil((startsAtMs(counted[at] + 1) - nowMs) / 1_000)),
      }));
  const rates = usesOf(RATES);
  const quota = usesOf([QUOTA]);
  const stricter = (a: LimitUse, b: LimitUse) => (b.left < a.left || (b.left === a.left && b.reset >= a.reset) ? b : a);
  const tightest = rates.length > 0 ? [{ ...rates.reduce(stricter), names: TIGHTEST }] : [];
  const headers = [...rates, ...tightest, ...quota].flatMap(
    ({ names: [nameOfLimit, nameOfLeft, nameOfReset], limit, left, reset }) => [
      nameOfLimit,
      String(limit),
      nameOfLeft,
      String(left),
      nameOfReset,
      String(reset),
    ],
  );
  if (counted.outcome === 'counted') return { headers };
  const usedUp = [...rates, ...quota].filter(isUsedUp);
  const retryAfterSeconds = Math.max(1, ...usedUp.map(({ reset }) => reset));
  const code = rates.some(isUsedUp) ? 'rate_limit_exceeded' : 'monthly_limit_exceeded';
  const details = { retryAfterSeconds, reason: usedUp.map(({ reason }) => reason).join(', ') };
  return { refusal: new Refusal(code, details), headers };
}

function isUsedUp({ left }: LimitUse): boolean {
  return left === 0;
}

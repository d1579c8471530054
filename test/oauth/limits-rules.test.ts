import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { verdictOf } from '../../src/access/limits/limits.rules.ts';
import { monthAtOf, type RequestCounts, type RequestLimits } from '../../src/platform/cache/counts.rules.ts';
import type { Refusal } from '../../src/platform/errors.ts';

/** 500 ms before a second ends, 30.5 s before a minute, 29 min 30.5 s before an hour, a day and more before a month. */
const NOW = Date.UTC(2026, 10, 29, 12, 30, 29, 500);
const TO_MONTHS_END = Math.ceil((Date.UTC(2026, 11, 1) - NOW) / 1_000);

function limitsOf(perSecond: number, perMinute: number, perHour: number, perMonth: number): RequestLimits {
  return { perSecond, perMinute, perHour, perMonth };
}

/** Counts in the windows of the clock. */
function used(second: number, minute: number, hour: number, month: number, nowMs = NOW): RequestCounts {
  return {
    secondAt: Math.floor(nowMs / 1_000),
    second,
    minuteAt: Math.floor(nowMs / 60_000),
    minute,
    hourAt: Math.floor(nowMs / 3_600_000),
    hour,
    monthAt: monthAtOf(nowMs),
    month,
  };
}

function headersOf(limits: RequestLimits, counts: RequestCounts, nowMs = NOW): Record<string, string> {
  const { headers } = verdictOf(limits, { outcome: 'counted', ...counts }, nowMs);
  return Object.fromEntries(headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1] ?? '']] : [])));
}

describe('the headers of the limits', () => {
  it('D3-16 8-05 8-06: report every limit, and the tightest rate also without a suffix', () => {
    expect(headersOf(limitsOf(10, 100, 1_000, 5_000), used(2, 98, 900, 4_999))).toEqual({
      'X-Ratelimit-Limit': '100',
      'X-Ratelimit-Remaining': '2',
      'X-Ratelimit-Reset': '31',
      'X-Ratelimit-Limit-Second': '10',
      'X-Ratelimit-Remaining-Second': '8',
      'X-Ratelimit-Reset-Second': '1',
      'X-Ratelimit-Limit-Minute': '100',
      'X-Ratelimit-Remaining-Minute': '2',
      'X-Ratelimit-Reset-Minute': '31',
      'X-Ratelimit-Limit-Hour': '1000',
      'X-Ratelimit-Remaining-Hour': '100',
      'X-Ratelimit-Reset-Hour': '1771',
      'X-MonthlyLimit-Limit': '5000',
      'X-MonthlyLimit-Remaining': '1',
      'X-MonthlyLimit-Reset': String(TO_MONTHS_END),
    });
  });

  it('D3-16 D3-08: omit limits that the client does not have', () => {
    expect(headersOf(limitsOf(0, 0, 0, 0), used(1, 1, 1, 1))).toEqual({});
    const names = (limits: RequestLimits) => Object.keys(headersOf(limits, used(1, 1, 1, 1)));
    const three = (name: string, of = '') => ['Limit', 'Remaining', 'Reset'].map((one) => `X-${name}-${one}${of}`);
    expect(names(limitsOf(0, 0, 0, 9))).toEqual(three('MonthlyLimit'));
    expect(names(limitsOf(0, 9, 0, 0))).toEqual([...three('Ratelimit', '-Minute'), ...three('Ratelimit')]);
  });

  const tightest: [limits: RequestLimits, counts: RequestCounts, limit: string][] = [
    [limitsOf(5, 50, 500, 0), used(1, 1, 1, 0), '5'],
    [limitsOf(5, 50, 500, 0), used(1, 49, 49, 0), '50'],
    [limitsOf(5, 50, 500, 0), used(0, 40, 499, 0), '500'],
    [limitsOf(5, 50, 500, 0), used(5, 50, 499, 0), '50'],
    [limitsOf(5, 50, 500, 0), used(5, 50, 500, 0), '500'],
    [limitsOf(5, 0, 500, 0), used(4, 0, 499, 0), '500'],
    [limitsOf(5, 50, 0, 1), used(1, 2, 0, 1), '5'],
  ];
  it.each(tightest)(
    'D3-16: with limits %j and counts %j the tightest is %s; in a tie, the longest window',
    (limits, counts, limit) => {
      expect(headersOf(limits, counts)['X-Ratelimit-Limit']).toBe(limit);
    },
  );

  it('D3-16: a limit lowered below the used count has 0 remaining', () => {
    expect(headersOf(limitsOf(1, 0, 0, 2), used(9, 9, 9, 9))).toMatchObject({
      'X-Ratelimit-Remaining': '0',
      'X-MonthlyLimit-Remaining': '0',
    });
  });

  it('D3-16: resets are whole seconds from now, at least 1, at any time', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4_000_000_000_000 }), (nowMs) => {
        const headers = headersOf(limitsOf(1, 1, 1, 1), used(1, 1, 1, 1, nowMs), nowMs);
        const most = { Second: 1, Minute: 60, Hour: 3_600 };
        for (const [window, seconds] of Object.entries(most)) {
          const reset = Number(headers[`X-Ratelimit-Reset-${window}`]);
          expect(Number.isInteger(reset) && reset >= 1 && reset <= seconds).toBe(true);
        }
        const reset = Number(headers['X-MonthlyLimit-Reset']);
        const at = new Date(nowMs + reset * 1_000);
        expect(Number.isInteger(reset) && reset >= 1).toBe(true);
        expect(at.getUTCMonth()).not.toBe(new Date(nowMs).getUTCMonth());
        expect(new Date(at.getTime() - 1_001).getUTCMonth()).toBe(new Date(nowMs).getUTCMonth());
      }),
    );
  });
});

function refusalOf(limits: RequestLimits, counts: RequestCounts): Refusal {
  const { refusal } = verdictOf(limits, { outcome: 'refused', ...counts }, NOW);
  if (!refusal) throw new Error('the request was not refused');
  return refusal;
}

describe('a rejected request', () => {
  const R = 'rate_limit_exceeded';
  const Q = 'monthly_limit_exceeded';
  const cases: [limits: RequestLimits, counts: RequestCounts, refusal: string, seconds: number, reason: string][] = [
    [limitsOf(1, 9, 9, 9), used(1, 1, 1, 1), R, 1, 'requests_per_second'],
    [limitsOf(9, 1, 9, 9), used(1, 1, 1, 1), R, 31, 'requests_per_minute'],
    [limitsOf(9, 9, 1, 9), used(1, 1, 1, 1), R, 1_771, 'requests_per_hour'],
    [limitsOf(9, 9, 9, 1), used(1, 1, 1, 1), Q, TO_MONTHS_END, 'monthly_limit'],
    [limitsOf(1, 1, 9, 9), used(1, 1, 1, 1), R, 31, 'requests_per_second, requests_per_minute'],
    [limitsOf(1, 1, 1, 9), used(1, 1, 1, 1), R, 1_771, 'requests_per_second, requests_per_minute, requests_per_hour'],
    [limitsOf(1, 9, 9, 1), used(1, 1, 1, 1), R, TO_MONTHS_END, 'requests_per_second, monthly_limit'],
    [limitsOf(0, 0, 0, 1), used(5, 5, 5, 1), Q, TO_MONTHS_END, 'monthly_limit'],
  ];
  it.each(cases)(
    '7.2-06 7.6-04 D3-16: limits %j, counts %j: %s, retry after %d s, by %s',
    (limits, counts, refusal, seconds, reason) => {
      const { code, details } = refusalOf(limits, counts);
      expect({ code, details }).toEqual({ code: refusal, details: { retryAfterSeconds: seconds, reason } });
    },
  );

  it('D3-15: with a window that starts later by this clock, retry-after lasts until that window ends', () => {
    const ahead = used(1, 0, 0, 0, NOW + 5_000);
    expect(refusalOf(limitsOf(1, 0, 0, 0), ahead).details.retryAfterSeconds).toBe(6);
  });
});

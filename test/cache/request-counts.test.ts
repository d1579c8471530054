import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  countRequest,
  monthAtOf,
  monthStartsAtMs,
  monthText,
  NOTHING_COUNTED,
  type RequestCounts,
  type RequestLimits,
} from '../../src/platform/cache/counts.rules.ts';
import { calls } from '../support/cache/limit-calls.ts';

const WINDOWS = [
  ['perSecond', 'second', 1_000],
  ['perMinute', 'minute', 60_000],
  ['perHour', 'hour', 3_600_000],
] as const;

describe('the rules of counting', () => {
  it('D3-15: with a clock that moves forward no window counts more than its limit, and no other request is rejected', () => {
    fc.assert(
      fc.property(calls, (run) => {
        let stored: RequestCounts = NOTHING_COUNTED;
        const counted: number[] = [];
        let latest = 0;
        for (const { limits, nowMs: given } of run) {
          latest = Math.max(latest, given);
          const answer = countRequest(stored, limits, latest, 0);
          const isFull = isFullBy(counted, limits, latest);
          expect(answer.outcome).toBe(isFull ? 'refused' : 'counted');
          if (!isFull) counted.push(latest);
          stored = answer;
        }
      }),
    );
  });

  it('D3-15: a request that is not counted changes no count', () => {
    fc.assert(
      fc.property(calls, (run) => {
        let stored: RequestCounts = NOTHING_COUNTED;
        for (const { limits, nowMs, seed } of run) {
          const answer = countRequest(stored, limits, nowMs, seed);
          if (answer.outcome === 'refused') {
            for (const [, name] of WINDOWS) expect([0, stored[name]]).toContain(answer[name]);
            expect([0, seed, stored.month]).toContain(answer.month);
          }
          stored = answer;
        }
      }),
    );
  });

  it('D3-28: the quota used is at least every seed and count of its month', () => {
    fc.assert(
      fc.property(calls, (run) => {
        let stored: RequestCounts = NOTHING_COUNTED;
        for (const { limits, nowMs, seed } of run) {
          const answer = countRequest(stored, limits, nowMs, seed);
          if (answer.outcome === 'unknown') continue;
          if (answer.monthAt === stored.monthAt) expect(answer.month).toBeGreaterThanOrEqual(stored.month);
          if (limits.perMonth > 0 && answer.monthAt === monthAtOf(nowMs)) {
            expect(answer.month).toBeGreaterThanOrEqual(seed ?? 0);
          }
          stored = answer;
        }
      }),
    );
  });

  it.each([
    ['2026-11-01T00:00:00.000Z', '2026-11'],
    ['2026-11-30T23:59:59.999Z', '2026-11'],
    ['2026-12-31T23:59:59.999Z', '2026-12'],
    ['2027-01-01T00:00:00.000Z', '2027-01'],
    ['2028-02-29T12:00:00.000Z', '2028-02'],
  ])('8-06: %s is in the month %s', (at, month) => {
    const monthAt = monthAtOf(Date.parse(at));
    expect(monthText(monthAt)).toBe(month);
    expect(new Date(monthStartsAtMs(monthAt)).toISOString()).toBe(`${month}-01T00:00:00.000Z`);
  });
});

function isFullBy(counted: readonly number[], limits: RequestLimits, nowMs: number): boolean {
  const isFull = (limit: number, isSame: (at: number) => boolean) =>
    limit > 0 && counted.filter(isSame).length >= limit;
  return (
    WINDOWS.some(([limit, , ms]) => isFull(limits[limit], (at) => Math.floor(at / ms) === Math.floor(nowMs / ms))) ||
    isFull(
      limits.perMonth,
      (at) => new Date(at).toISOString().slice(0, 7) === new Date(nowMs).toISOString().slice(0, 7),
    )
  );
}

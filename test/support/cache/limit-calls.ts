import fc from 'fast-check';
import type { RequestLimits } from '../../../src/platform/cache/counts.rules.ts';

/** A request as the rules of counting see it. */
export interface LimitCall {
  limits: RequestLimits;
  nowMs: number;
  seed: number | undefined;
}

const START = Date.UTC(2026, 10, 30, 23, 59, 50);
const limit = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 6 }));
const limits = fc.record({ perSecond: limit, perMinute: limit, perHour: limit, perMonth: limit });
/** Mostly forward by little, sometimes back, sometimes far. */
const step = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 400 }) },
  { weight: 2, arbitrary: fc.integer({ min: -3_000, max: 3_000 }) },
  { weight: 1, arbitrary: fc.constantFrom(60_000, 3_600_000, 31 * 86_400_000) },
);

/** Runs of requests of one client around the end of a month, by clocks that do not quite agree. */
export const calls: fc.Arbitrary<LimitCall[]> = fc
  .tuple(
    limits,
    fc.array(fc.record({ step, seed: fc.option(fc.integer({ min: 0, max: 4 }), { nil: undefined }) }), {
      minLength: 1,
      maxLength: 25,
    }),
  )
  .map(([given, steps]) => {
    let nowMs = START;
    return steps.map(({ step: ms, seed }) => {
      nowMs += ms;
      return { limits: given, nowMs, seed };
    });
  });

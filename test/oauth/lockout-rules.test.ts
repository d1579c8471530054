import fc from 'fast-check';
import { expect, it } from 'vitest';
import { lockedUntilMs } from '../../src/access/credentials/login-locks.ts';

const MINUTE = 60_000;
const NOW = Date.UTC(2026, 10, 21, 12);

/** Minutes ago of each failure, and in how many minutes the lock ends. */
const cases: [string, number[], number | undefined][] = [
  ['no failure', [], undefined],
  ['four at once', [0, 0, 0, 0], undefined],
  ['five at once', [0, 0, 0, 0, 0], 15],
  ['five over a little less than fifteen minutes', [0, 1, 2, 3, 14.999], 15],
  ['five over fifteen minutes', [0, 1, 2, 3, 15], undefined],
  ['five, the last a little less than fifteen minutes ago', [14.999, 15, 15, 15, 15], 0.001],
  ['five, the last fifteen minutes ago', [15, 15, 15, 15, 15], undefined],
  ['one more after a lock has ended', [0, 15, 15, 15, 15, 15], undefined],
  ['four more after a lock has ended', [0, 0, 0, 0, 15.1, 15.1, 15.1, 15.1, 15.1], undefined],
  ['five more after a lock has ended', [0, 0, 0, 0, 0, 15.1, 15.1, 15.1, 15.1, 15.1], 15],
  ['many within a minute', [0, 0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1], 15],
  ['a burst before four of now', [0, 5, 10, 14, 16, 16, 16, 16, 16], undefined],
];

it.each(cases)('D3-17: %s', (_what, minutesAgo, endsInMinutes) => {
  const failedAtMs = minutesAgo.map((minutes) => NOW - minutes * MINUTE);
  const expected = endsInMinutes === undefined ? undefined : NOW + endsInMinutes * MINUTE;
  expect(lockedUntilMs(failedAtMs, NOW)).toBe(expected);
});

it('D3-17: only the newest five failures count, in whatever order they come', () => {
  const ago = fc.integer({ min: 0, max: 40 * MINUTE });
  fc.assert(
    fc.property(fc.array(ago, { maxLength: 12 }), (agoMs) => {
      const failures = agoMs.map((ms) => NOW - ms);
      const newest = failures.toSorted((a, b) => b - a).slice(0, 5);
      const until = lockedUntilMs(failures, NOW);
      expect(lockedUntilMs(newest, NOW)).toBe(until);
      if (until !== undefined) expect(until).toBe((newest[0] ?? 0) + 15 * MINUTE);
    }),
  );
});

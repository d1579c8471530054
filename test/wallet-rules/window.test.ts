import { describe, expect, it } from 'vitest';
import { windowStart } from '../../src/features/wallet-rules/evaluate.rules.ts';
import { instantToIsoMillis, parseInstant } from '../../src/lib/instants.ts';
import type { TimePeriod } from '../../src/tables/wallet-rule-content.ts';

function startOf(end: string, count: number, period: TimePeriod): string | undefined {
  const instant = parseInstant(end);
  if (!instant) throw new Error(`no time: ${end}`);
  const start = windowStart(instant, count, period);
  return start && instantToIsoMillis(start);
}

describe('the start of a time window', () => {
  it.each<[string, number, TimePeriod, string]>([
    ['2026-11-21T10:30:00.123Z', 1, 'hour', '2026-11-21T09:30:00.123Z'],
    ['2026-11-21T10:30:00Z', 36, 'hour', '2026-11-19T22:30:00.000Z'],
    ['2026-03-01T00:00:00Z', 1, 'day', '2026-02-28T00:00:00.000Z'],
    ['2026-01-03T12:00:00Z', 1, 'week', '2025-12-27T12:00:00.000Z'],
    ['2026-11-21T10:30:00.5Z', 1, 'month', '2026-10-21T10:30:00.500Z'],
    ['2026-03-31T10:00:00Z', 1, 'month', '2026-02-28T10:00:00.000Z'],
    ['2024-03-31T10:00:00Z', 1, 'month', '2024-02-29T10:00:00.000Z'],
    ['2026-01-31T23:59:59Z', 1, 'month', '2025-12-31T23:59:59.000Z'],
    ['2026-01-15T00:00:00Z', 13, 'month', '2024-12-15T00:00:00.000Z'],
    ['2026-05-31T00:00:00Z', 3, 'month', '2026-02-28T00:00:00.000Z'],
    ['2024-02-29T08:00:00Z', 1, 'year', '2023-02-28T08:00:00.000Z'],
    ['2024-02-29T08:00:00Z', 4, 'year', '2020-02-29T08:00:00.000Z'],
    ['0050-06-15T00:00:00Z', 1, 'year', '0049-06-15T00:00:00.000Z'],
  ])('DG-10: %s less %i %s is %s', (end, count, period, start) => {
    expect(startOf(end, count, period)).toBe(start);
  });

  it('DG-10: the start of a window longer than all representable time is undefined', () => {
    expect(startOf('2026-11-21T10:30:00Z', 2_147_483_647, 'year')).toBeUndefined();
    expect(startOf('2026-11-21T10:30:00Z', 2_147_483_647, 'month')).toBeUndefined();
    const end = parseInstant('2026-11-21T10:30:00Z') ?? { seconds: 0n, nanos: 0 };
    expect(windowStart(end, 2_147_483_647, 'week')?.seconds).toBe(end.seconds - 2_147_483_647n * 604_800n);
  });
});

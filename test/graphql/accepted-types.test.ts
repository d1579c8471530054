import { describe, expect, it } from 'vitest';
import { acceptedRange, acceptedTypes, rangesOf } from '../../src/api/graphql/execution/accepted-types.ts';

describe('an Accept header', () => {
  it('D2-32 D6-24: is read up to 64 ranges, and each of these up to 64 parts', () => {
    const takesStream = (ranges: number) => acceptedTypes(`${'a/b, '.repeat(ranges)}text/event-stream`).takesStream;
    expect([takesStream(63), takesStream(64), takesStream(30_000)]).toEqual([true, false, false]);
    const weight = (parts: number) =>
      acceptedRange(rangesOf(`text/html${';a=b'.repeat(parts)};q=0`), 'text/html')?.weight;
    expect([weight(62), weight(63)]).toEqual([0, 1]);
    expect(rangesOf(','.repeat(150_000))).toHaveLength(64);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  compareInstants,
  type Instant,
  instantToIsoMillis,
  parseInstant,
  pgFromInstant,
} from '../../src/lib/instants.ts';

const HALF_PAST_TEN = BigInt(Date.UTC(2026, 10, 21, 10, 30) / 1_000);

describe('times that are accepted', () => {
  it.each(
    [
      '2026-11-21T10:30:00Z | 2026-11-21t10:30:00z | 2026-11-21 10:30:00 | 2026-11-21T10:30Z | 2026-11-21T10:30',
      '20261121T103000Z | 20261121 1030 | 2026-11-21T12:30:00+02 | 2026-11-21T12:30:00+0200',
      '2026-11-21T12:30:00+02:00 | 20261121T050000-05:30 | 2026-11-21T05:00:00-0530 | 2026-11-22T00:30:00+14:00',
      '2026-11-20T10:31:00-23:59 | 2026-11-21T10:30:00-00:00 | 2026-11-21T10:30:00.000000000000Z',
    ].flatMap((line) => line.split(' | ')),
  )('2.7-07: %s is parsed as 10:30 UTC', (text) => {
    expect(parseInstant(text)).toEqual({ seconds: HALF_PAST_TEN, nanos: 0 });
  });

  it.each<[string, number]>([
    ['.5', 500_000_000],
    [',5', 500_000_000],
    ['.123', 123_000_000],
    ['.123456', 123_456_000],
    ['.000000001', 1],
    ['.123456789999', 123_456_789],
    ['.0000000009', 0],
  ])('2.7-07: the fraction %s is truncated to nine digits', (fraction, nanos) => {
    expect(parseInstant(`2026-11-21T10:30:00${fraction}Z`)).toEqual({ seconds: HALF_PAST_TEN, nanos });
    expect(parseInstant(`20261121T103000${fraction}+0000`)).toEqual({ seconds: HALF_PAST_TEN, nanos });
  });

  it.each<[string, bigint]>([
    ['0001-01-01T00:00:00Z', -62135596800n],
    ['0000-02-29T00:00:00Z', -62162121600n],
    ['1969-12-31T23:59:59.5Z', -1n],
    ['2024-02-29T00:00:00Z', 1709164800n],
    ['2026-11-20T24:00:00Z', 1795219200n],
    ['2016-12-31T23:59:60Z', 1483228800n],
    ['2017-01-01T05:29:60+05:30', 1483228800n],
    ['9999-12-31T23:59:59Z', 253402300799n],
  ])('2.7-07: %s is %s seconds after 1970', (text, seconds) => {
    expect(parseInstant(text)?.seconds).toBe(seconds);
  });
});

describe('texts that are not times', () => {
  it.each([
    '',
    '2026-11-21  10:30:00Z',
    ' 2026-11-21T10:30:00Z',
    '2026-11-21T10:30:00Z\n',
    ...[
      'now | 1795257000 | 2026-11-21 | 20261121 | 2026-11-21T | 2026-11-21T10:3 | 2026-11-21T10:30:00 Z',
      '2026-11-21T103000Z | 20261121T10:30:00Z | 2026-1-21T10:30:00Z | 26-11-21T10:30:00Z',
      '+002026-11-21T10:30:00Z | 2026-00-21T10:30:00Z | 2026-13-21T10:30:00Z | 2026-11-00T10:30:00Z',
      '2026-11-31T10:30:00Z | 2026-02-29T10:30:00Z | 1900-02-29T10:30:00Z | 2026-11-21T25:00:00Z',
      '2026-11-21T24:00:01Z | 2026-11-21T24:00:00.1Z | 2026-11-21T10:60:00Z | 2026-11-21T10:30:60Z',
      '2026-11-21T10:30:61Z | 2026-11-21T10:30:00.Z | 2026-11-21T10:30.5Z | 2026-11-21T10:30:00+2',
      '2026-11-21T10:30:00+24:00 | 2026-11-21T10:30:00+02:60 | 2026-11-21T10:30:00+02:',
      '2026-11-21T10:30:00Z+02:00 | 2026-11-21T10:30:00 +0000 UTC | ２026-11-21T10:30:00Z',
    ].flatMap((line) => line.split(' | ')),
  ])('2.7-07: %j is rejected', (text) => expect(parseInstant(text)).toBeUndefined());
});

describe('instants', () => {
  const instant: fc.Arbitrary<Instant> = fc
    .record({
      seconds: fc.integer({ min: -62135596800, max: 253402300799 }),
      nanos: fc.integer({ min: 0, max: 999_999_999 }),
    })
    .map(({ seconds, nanos }) => ({ seconds: BigInt(seconds), nanos }));
  const total = ({ seconds, nanos }: Instant) => seconds * 1_000_000_000n + BigInt(nanos);

  it('compare as nanoseconds since 1970', () => {
    fc.assert(
      fc.property(instant, instant, (a, b) => {
        expect(Math.sign(compareInstants(a, b))).toBe(total(a) < total(b) ? -1 : Number(total(a) > total(b)));
        expect(compareInstants(a, a)).toBe(0);
      }),
    );
  });

  it('2.7-07: a time written with different offsets is the same instant', () => {
    fc.assert(
      fc.property(instant, fc.integer({ min: -1439, max: 1439 }), (at, minutes) => {
        const local = instantToIsoMillis({ seconds: at.seconds + BigInt(minutes * 60), nanos: at.nanos });
        fc.pre(/^\d{4}-/.test(local));
        const offset = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60].map((part) =>
          String(part).padStart(2, '0'),
        );
        const read = parseInstant(local.replace('Z', `${minutes < 0 ? '-' : '+'}${offset.join(':')}`));
        expect(read).toEqual({ seconds: at.seconds, nanos: Math.floor(at.nanos / 1e6) * 1e6 });
      }),
    );
  });

  it.each<[string, string]>([
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
    ['2026-11-21T12:30:00.1239999+02:00', '2026-11-21T10:30:00.123Z'],
    ['1969-12-31T23:59:59.9999Z', '1969-12-31T23:59:59.999Z'],
    ['0000-01-01T00:00:00Z', '0000-01-01T00:00:00.000Z'],
    ['0000-01-01T01:00:00+01:00', '0000-01-01T00:00:00.000Z'],
    ['0000-01-01T00:59:59.9+01:00', '0000-01-01T00:00:00.000Z'],
    ['00000101T000000+2359', '0000-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.9999999Z', '9999-12-31T23:59:59.999Z'],
    ['9999-12-31T22:59:59-01:00', '9999-12-31T23:59:59.000Z'],
    ['9999-12-31T23:00:00-01:00', '9999-12-31T23:59:59.999Z'],
    ['9999-12-31T23:59:59-23:59', '9999-12-31T23:59:59.999Z'],
    ['9999-12-31T24:00:00Z', '9999-12-31T23:59:59.999Z'],
    ['9999-12-31T23:59:60Z', '9999-12-31T23:59:59.999Z'],
  ])('DG-07: %s is formatted in UTC with milliseconds', (text, shown) => {
    const read = parseInstant(text);
    expect(read && instantToIsoMillis(read)).toBe(shown);
    // What is shown can be read again, and be stored.
    expect(parseInstant(shown)).toBeDefined();
    expect(read && pgFromInstant(read)).toMatch(/^(?!0000)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  });
});

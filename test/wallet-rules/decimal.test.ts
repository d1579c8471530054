import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareDecimals, hasDecimalForm, readDecimal, sumOfDecimals } from '../../src/lib/decimal.ts';

const NINES = '9'.repeat(78);

/** A decimal as an integer over a power of ten. */
const decimals = fc
  .tuple(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), fc.nat({ max: 40 }))
  .map(([units, scale]) => ({ units, scale, text: textOf(units, scale) }));

function textOf(units: bigint, scale: number): string {
  const digits = String(units < 0n ? -units : units).padStart(scale + 1, '0');
  const point = digits.length - scale;
  return `${units < 0n ? '-' : ''}${digits.slice(0, point)}${scale > 0 ? `.${digits.slice(point)}` : ''}`;
}

describe('reading a decimal', () => {
  it.each([
    ['0', '0'],
    ['-0', '0'],
    ['0.000', '0'],
    ['0e78', '0'],
    ['-0.00e-78', '0'],
    ['5', '5'],
    ['-5', '-5'],
    ['1.50', '1.50'],
    ['100', '100'],
    ['1e3', '1000'],
    ['1.25E+1', '12.5'],
    ['1e-3', '0.001'],
    ['120e-2', '1.20'],
    ['0.001e3', '1'],
    ['1e+21', '1000000000000000000000'],
    [NINES, NINES],
    [`0.${NINES}`, `0.${NINES}`],
    [`-${NINES}e-77`, `-9.${'9'.repeat(77)}`],
    ['1e78', `1${'0'.repeat(78)}`],
    [`1${'0'.repeat(78)}`, `1${'0'.repeat(78)}`],
    ['1e-78', `0.${'0'.repeat(77)}1`],
    [`1.${'0'.repeat(10_000)}`, `1.${'0'.repeat(77)}`],
  ])('D5-03: %s is read as %s', (literal, text) => {
    expect(readDecimal(literal)).toEqual({ text });
  });

  it.each([
    `${NINES}9`,
    `${NINES}.9`,
    `1${'0'.repeat(77)}1`,
    '1e79',
    '0e79',
    '-0e-79',
    '0e999999999999999999999',
    '1e-79',
    '1e999',
    '-1e999',
    '1e-999',
    `1e${'9'.repeat(400)}`,
    `1${'0'.repeat(79)}`,
  ])('D5-03: %s exceeds the limits', (literal) => {
    expect(readDecimal(literal)).toEqual({ fault: expect.stringMatching(/78 significant digits/) });
    expect(hasDecimalForm(literal)).toBe(true);
  });

  it.each([
    '',
    ' 1',
    '1 ',
    '+1',
    '.5',
    '1.',
    '01',
    '1e',
    '1e1.5',
    '0x1',
    '1_000',
    '1,5',
    'NaN',
    'Infinity',
    '١',
    '1\n',
  ])('D5-03: "%s" is not a number', (literal) => {
    expect(readDecimal(literal)).toEqual({ fault: 'must be a number' });
    expect(hasDecimalForm(literal)).toBe(false);
  });

  it('D5-03: the text of a decimal is read as the same decimal', () => {
    fc.assert(
      fc.property(decimals, ({ text }) => {
        const read = readDecimal(text);
        expect('text' in read && readDecimal(read.text)).toEqual(read);
      }),
    );
  });
});

describe('comparing and adding decimals', () => {
  it('D5-03: the order is that of the values, to the last digit', () => {
    fc.assert(
      fc.property(decimals, decimals, (a, b) => {
        const order = a.units * 10n ** BigInt(b.scale) - b.units * 10n ** BigInt(a.scale);
        expect(Math.sign(compareDecimals(a.text, b.text))).toBe(order === 0n ? 0 : order < 0n ? -1 : 1);
      }),
    );
  });

  it('D5-03: a sum is exact', () => {
    fc.assert(
      fc.property(fc.array(decimals, { maxLength: 8 }), (terms) => {
        const scale = 40;
        const expected = terms.reduce((sum, { units, scale: own }) => sum + units * 10n ** BigInt(scale - own), 0n);
        expect(compareDecimals(sumOfDecimals(terms.map(({ text }) => text)), textOf(expected, scale))).toBe(0);
      }),
    );
    expect(sumOfDecimals([])).toBe('0');
    expect(sumOfDecimals(['0.1', '0.2'])).toBe('0.3');
    expect(sumOfDecimals(['1', '-1.50'])).toBe('-0.50');
    expect(sumOfDecimals([`1${'0'.repeat(78)}`, `0.${'0'.repeat(77)}1`])).toBe(`1${'0'.repeat(78)}.${'0'.repeat(77)}1`);
  });
});

import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { isShort, jsonSlices, limitedJson, SLICE_LENGTH } from '../../src/lib/yielding.ts';
import { anyCharacter } from '../support/harness/any-character.ts';
import { literal } from '../support/wallet-rules/rules.ts';

const LONG = 'é'.repeat(1_000);
/** Rows of a page that no slice holds. */
const page = (rows: number) => ({
  data: Array.from({ length: rows }, (_, id) => ({
    id,
    name: LONG,
    amount: literal('1.10'),
    gone: undefined,
    at: new Date(0),
  })),
});

afterEach(() => vi.restoreAllMocks());

describe('the JSON of a value in slices', () => {
  it('equals JSON.stringify for any value', () => {
    const text = fc.oneof(fc.string({ unit: anyCharacter }), fc.constant(LONG.repeat(40)));
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        ...[text, fc.double(), fc.boolean(), fc.constant(null), fc.constant(undefined), fc.constant(literal('1e400'))],
        fc.array(tie('value')),
        fc.dictionary(fc.string(), tie('value')),
      ),
    }));
    fc.assert(
      fc.property(value, (given) => {
        expect([...jsonSlices([given])].join('')).toBe(JSON.stringify([given]));
      }),
      { numRuns: 30 },
    );
  });

  it('is produced in slices of bounded length; no call encodes more at once', () => {
    const stringify = vi.spyOn(JSON, 'stringify');
    const slices = [...jsonSlices(page(2_000))];
    const encoded = stringify.mock.results.map(({ value }) => String(value).length);
    stringify.mockRestore();
    expect(slices.join('')).toBe(JSON.stringify(page(2_000)));
    expect(Math.max(...encoded, ...slices.map(({ length }) => length))).toBeLessThan(2 * SLICE_LENGTH);
  });

  it.each([
    [10, true],
    [2_000, false],
  ])('whether the JSON of %i rows is short is decided without encoding it', (rows, short) => {
    const stringify = vi.spyOn(JSON, 'stringify');
    expect(isShort(page(rows))).toBe(short);
    expect(stringify).not.toHaveBeenCalled();
  });
});

describe('JSON limited to a number of bytes', () => {
  it('is complete when the limit equals its length, and undefined when the limit is one byte lower', async () => {
    const text = JSON.stringify(page(200));
    const bytes = Buffer.byteLength(text);
    expect(bytes).toBeGreaterThan(1.5 * text.length);
    expect(await limitedJson(page(200), bytes, undefined)).toBe(text);
    expect(await limitedJson(page(200), bytes - 1, undefined)).toBeUndefined();
  });

  it('yields to other work after each slice, and encodes no more than the limit', async () => {
    let ticks = 0;
    const ticking = setInterval(() => undefined, 0);
    const count = () => {
      ticks += 1;
      pending = setImmediate(count);
    };
    let pending = setImmediate(count);
    const stringify = vi.spyOn(JSON, 'stringify');
    const maxBytes = 20 * SLICE_LENGTH;
    expect(await limitedJson(page(20_000), maxBytes, undefined)).toBeUndefined();
    const encoded = stringify.mock.results.reduce((sum, { value }) => sum + Buffer.byteLength(String(value)), 0);
    clearImmediate(pending);
    clearInterval(ticking);
    expect(encoded).toBeLessThan(2 * maxBytes);
    expect(ticks).toBeGreaterThanOrEqual(9);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isNestedBeyond } from '../../src/lib/json.ts';

function levelsOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(levelsOf));
}

describe('the nesting of a JSON text', () => {
  it('DG-06: is that of its values, whatever its strings hold', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.nat(8), (value, levels) => {
        expect(isNestedBeyond(JSON.stringify(value), levels)).toBe(levelsOf(value) > levels);
      }),
    );
  });

  it.each(['"[[[["', '"\\"[[[["', '"\\\\"', '{"[[[":"{{{"}', '"[[[', '"\\'])('DG-06: of %s is at most 1', (text) => {
    expect(isNestedBeyond(text, 1)).toBe(false);
  });

  it('DG-06: is told of half a text, too', () => {
    expect(isNestedBeyond('['.repeat(500_000), 100)).toBe(true);
  });
});

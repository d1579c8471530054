import { describe, expect, it } from 'vitest';
import { splitByShape } from '../../src/lib/fast/prepared-query.ts';

describe('query input, split into its shape and its values', () => {
  it.each([
    ['other values', { limit: 21, after: { at: '2020', id: 'a' } }, { limit: 5, after: { at: '2021', id: 'b' } }],
    ['lists of any length', { ids: ['a'] }, { ids: ['b', 'c'] }],
    ['an undefined member and a missing one', { limit: 1, after: undefined }, { limit: 1 }],
    ['an empty text and a non-empty one', { search: '' }, { search: 'x' }],
  ])('has the same shape for %s', (_name, one, other) => {
    expect(splitByShape<object>(one).form).toBe(splitByShape<object>(other).form);
  });

  it.each([
    ['true and false', { backward: true }, { backward: false }],
    ['null and a value', { status: null }, { status: 1 }],
    ['null and a missing member', { status: null }, {}],
    ['members of different names', { after: { at: '1' } }, { before: { at: '1' } }],
    ['the same name nested and at the top', { after: { id: '1' } }, { after: 'x', id: '1' }],
  ])('has different shapes for %s', (_name, one, other) => {
    expect(splitByShape<object>(one).form).not.toBe(splitByShape<object>(other).form);
  });

  it('returns each value by its path, and a template that throws when a value is used', () => {
    const { values, template } = splitByShape({
      limit: 21,
      backward: true,
      none: null,
      after: { at: '2020', id: 'a' },
    });
    expect(values).toEqual({ limit: 21, 'after.at': '2020', 'after.id': 'a' });
    const { limit, backward, none, after } = template();
    expect([backward, none]).toEqual([true, null]);
    expect(() => limit + 1).toThrow('the value of limit is not known');
    expect(() => `${after.id}`).toThrow('the value of after.id is not known');
  });
});

import { describe, expect, it } from 'vitest';
import { splitByShape } from '../../src/lib/fast/prepared-query.ts';

describe('what a read is given, taken apart', () => {
  it.each([
    ['other values', { limit: 21, after: { at: '2020', id: 'a' } }, { limit: 5, after: { at: '2021', id: 'b' } }],
    ['lists of any length', { ids: ['a'] }, { ids: ['b', 'c'] }],
    ['what is undefined and what is not there', { limit: 1, after: undefined }, { limit: 1 }],
    ['an empty text and one that is not', { search: '' }, { search: 'x' }],
  ])('has one form for %s', (_name, one, other) => {
    expect(splitByShape<object>(one).form).toBe(splitByShape<object>(other).form);
  });

  it.each([
    ['a boolean and its contrary', { backward: true }, { backward: false }],
    ['null and a value', { status: null }, { status: 1 }],
    ['null and nothing', { status: null }, {}],
    ['a member and another', { after: { at: '1' } }, { before: { at: '1' } }],
    ['members within and without', { after: { id: '1' } }, { after: 'x', id: '1' }],
  ])('has two forms for %s', (_name, one, other) => {
    expect(splitByShape<object>(one).form).not.toBe(splitByShape<object>(other).form);
  });

  it('gives each value by the name of its place, and a template that has none of them', () => {
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

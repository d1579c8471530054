import { expect, it } from 'vitest';
import { BoundedMap } from '../../src/lib/bounded-map.ts';

it('drops the least recently used entries beyond its maximum', () => {
  const map = new BoundedMap<string, number>(2);
  map.set('a', 1);
  map.set('b', 2);
  map.get('a');
  map.set('c', 3);
  expect([map.get('a'), map.get('b'), map.get('c'), map.size]).toEqual([1, undefined, 3, 2]);
  expect([map.delete('a'), map.delete('a'), map.size]).toEqual([true, false, 1]);
});

it('counts the weight of its entries, and reports the entries it drops', () => {
  const dropped: string[] = [];
  const map = new BoundedMap<string, string>(5, {
    weightOf: (text) => text.length,
    onDropped: (key) => dropped.push(key),
  });
  map.set('a', 'xxx');
  map.set('a', 'xx');
  map.set('b', 'xxx');
  expect(dropped).toEqual([]);
  map.set('c', 'x');
  expect(dropped).toEqual(['a']);
  map.set('d', 'xxxxxx');
  expect([dropped, map.size]).toEqual([['a', 'b', 'c', 'd'], 0]);
});

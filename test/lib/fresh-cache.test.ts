import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { FreshCache } from '../../src/access/revocation/access-cache.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function counting(maxEntries?: number) {
  const loads: string[] = [];
  const cache = new FreshCache(async (key) => {
    loads.push(key);
    return `${key}${loads.length}`;
  }, maxEntries);
  return { cache, loads };
}

it('a fresh value is returned from the cache, and an expired one is loaded again', async () => {
  const { cache, loads } = counting();
  expect(await cache.get('a')).toBe('a1');
  vi.advanceTimersByTime(499);
  expect(await cache.get('a')).toBe('a1');
  vi.advanceTimersByTime(501);
  expect(await cache.get('a')).toBe('a2');
  expect(loads).toEqual(['a', 'a']);
});

it('a value in use is reloaded before it expires, without a delay for callers', async () => {
  const { cache, loads } = counting();
  await cache.get('a');
  vi.advanceTimersByTime(600);
  expect(await cache.get('a')).toBe('a1');
  await Promise.resolve();
  vi.advanceTimersByTime(500);
  expect(await cache.get('a')).toBe('a2');
  expect(loads).toHaveLength(3);
});

it('concurrent reads of a value share one load', async () => {
  const { cache, loads } = counting();
  expect(await Promise.all(['a', 'a', 'a'].map((key) => cache.get(key)))).toEqual(['a1', 'a1', 'a1']);
  expect(loads).toEqual(['a']);
});

it('a load that was running when its value was forgotten does not enter the cache', async () => {
  const { cache } = counting();
  const before = cache.get('a');
  cache.forget('a');
  expect(await cache.get('a')).toBe('a2');
  expect(await before).toBe('a1');
  expect(await cache.get('a')).toBe('a2');
});

it('a failed load rejects its callers, and the next call loads again', async () => {
  let isDown = true;
  const cache = new FreshCache(async () => {
    if (isDown) throw new Error('down');
    return 'up';
  });
  await expect(cache.get('a')).rejects.toThrow('down');
  isDown = false;
  expect(await cache.get('a')).toBe('up');
});

it('the oldest entry is dropped when there are too many', async () => {
  const { cache, loads } = counting(2);
  for (const key of ['a', 'b', 'c']) await cache.get(key);
  cache.get('b');
  cache.get('c');
  expect(loads).toEqual(['a', 'b', 'c']);
  await cache.get('a');
  expect(loads).toEqual(['a', 'b', 'c', 'a']);
});

import { describe, expect, it } from 'vitest';
import { MemoryCache } from '../../src/cache/memory-cache.ts';
import { cacheContract } from './cache.contract.ts';

describe('the cache of one process', () => {
  cacheContract(async () => new MemoryCache());

  it('answers at once', async () => {
    const cache = new MemoryCache();
    expect(cache.sessionState('node', 'subject', 'session', 0)).toBe('unready');
    await cache.rebuildSessions('node', []);
    expect(cache.sessionState('node', 'subject', 'session', 0)).toBe('absent');
  });
});

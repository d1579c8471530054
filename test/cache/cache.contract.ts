import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Cache } from '../../src/platform/cache/cache.ts';

const NOW = 1_000_000;
const LATER = NOW + 60_000;
const MANY = 1_000;

/** What every cache promises, whether one process has it or all replicas share it. */
export function cacheContract(open: () => Promise<Cache>): void {
  let cache: Cache;
  let node: string;
  const subject = randomUUID();

  beforeAll(async () => {
    cache = await open();
  });
  afterAll(() => cache.stop());
  beforeEach(async () => {
    node = randomUUID();
    await cache.rebuildSessions(node, async () => ({ live: [] }));
  });

  const add = (sessionId: string, expiresAtMs = LATER, maxSessions = MANY) =>
    cache.addSession(node, subject, sessionId, expiresAtMs, NOW, maxSessions);
  const stateOf = async (sessionId: string, nowMs = NOW) => cache.sessionState(node, subject, sessionId, nowMs);

  it('a session lives from its login until the millisecond in which it expires', async () => {
    expect(await add('a')).toEqual([]);
    expect(await stateOf('a', LATER - 1)).toBe('live');
    expect(await stateOf('a', LATER)).toBe('absent');
    expect(await stateOf('b')).toBe('absent');
  });

  it('a session belongs to one node and one subject', async () => {
    const other = randomUUID();
    await cache.rebuildSessions(other, async () => ({ live: [] }));
    await add('a');
    expect(await cache.sessionState(other, subject, 'a', NOW)).toBe('absent');
    expect(await cache.sessionState(node, randomUUID(), 'a', NOW)).toBe('absent');
  });

  it('the sessions that end first go when a subject has too many, never the new one', async () => {
    await add('b', LATER + 2, 2);
    await add('a', LATER + 1, 2);
    expect(await add('c', LATER, 2)).toEqual(['a']);
    expect(await Promise.all(['a', 'b', 'c'].map((id) => stateOf(id)))).toEqual(['absent', 'live', 'live']);
  });

  it('expired sessions make room before live ones have to go', async () => {
    await add('expired', NOW, 2);
    await add('b', LATER, 2);
    expect(await add('c', LATER, 2)).toEqual([]);
    expect(await stateOf('b')).toBe('live');
  });

  it('adding a session that is present does not count it twice', async () => {
    await add('a', LATER, 2);
    await add('b', LATER, 2);
    expect(await add('a', LATER + 1, 2)).toEqual([]);
    expect(await stateOf('b')).toBe('live');
  });

  it('prolonging makes a present session live longer, never shorter, and makes no session', async () => {
    await add('a');
    await cache.prolongSession(node, subject, 'a', LATER + 10);
    await cache.prolongSession(node, subject, 'a', LATER + 5);
    await cache.prolongSession(node, subject, 'b', LATER);
    expect(await stateOf('a', LATER + 9)).toBe('live');
    expect(await stateOf('a', LATER + 10)).toBe('absent');
    expect(await stateOf('b')).toBe('absent');
  });

  it('a removed session is absent and stays so, whatever adds it late', async () => {
    await add('a');
    await add('b');
    await cache.removeSessions(node, subject, ['a', 'unknown']);
    await add('a');
    await cache.prolongSession(node, subject, 'a', LATER);
    await cache.rebuildSessions(node, async () => ({ live: [{ subject, sessionId: 'a', expiresAtMs: LATER }] }));
    expect(await stateOf('a')).toBe('absent');
    expect(await stateOf('b')).toBe('live');
    await cache.removeSessions(node, subject, []);
  });

  it('D3-28: a node that was never rebuilt is unready, even for a session that is present', async () => {
    const fresh = randomUUID();
    await cache.addSession(fresh, subject, 'a', LATER, NOW, MANY);
    expect(await cache.sessionState(fresh, subject, 'a', NOW)).toBe('unready');
    expect(await cache.sessionState(fresh, subject, 'b', NOW)).toBe('unready');
  });

  it('D3-28: a rebuild makes the sessions of the database live, besides those added while it read', async () => {
    const fresh = randomUUID();
    await cache.addSession(fresh, subject, 'login', LATER, NOW, MANY);
    await cache.prolongSession(fresh, subject, 'refreshed', LATER + 10);
    const second = randomUUID();
    await cache.rebuildSessions(fresh, async () => ({
      live: [
        { subject, sessionId: 'refreshed', expiresAtMs: LATER },
        { subject: second, sessionId: 'kept', expiresAtMs: LATER },
      ],
    }));
    expect(await cache.sessionState(fresh, subject, 'login', NOW)).toBe('live');
    expect(await cache.sessionState(fresh, subject, 'refreshed', LATER + 9)).toBe('live');
    expect(await cache.sessionState(fresh, second, 'kept', NOW)).toBe('live');
    expect(await cache.sessionState(fresh, second, 'refreshed', NOW)).toBe('absent');
  });

  it('one of many concurrent takers gets a lock; released, the next one gets it', async () => {
    const name = `rebuild:{${node}}`;
    const takers = await Promise.all(Array.from({ length: 8 }, () => cache.lock(name, 60_000)));
    const releases = takers.filter((release) => release !== undefined);
    expect(releases).toHaveLength(1);
    await releases[0]?.();
    expect(await cache.lock(name, 60_000)).toBeTypeOf('function');
  });

  it('a lock ends by itself, and its late release leaves the next holder alone', async () => {
    const name = `rebuild:{${node}}`;
    const late = await cache.lock(name, 1);
    await expect.poll(() => cache.lock(name, 60_000)).toBeTypeOf('function');
    await late?.();
    expect(await cache.lock(name, 60_000)).toBeUndefined();
  });

  it('it is healthy', async () => {
    await expect(cache.checkHealth()).resolves.toBeUndefined();
  });
}

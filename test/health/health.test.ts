import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { CacheUnavailableError } from '../../src/platform/cache/cache.ts';
import { type Answer, type Portcullis, startPortcullis } from '../support/harness.ts';

const PATHS = ['/health', '/v1/health', '/v2/health'];

let p: Portcullis;
beforeAll(async () => {
  p = await startPortcullis();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await until('ok', 200);
});
afterAll(() => p[Symbol.asyncDispose]());

/** Waits for the background probe, which nothing else can hurry. */
async function until(status: string, code: number): Promise<Answer> {
  return vi.waitFor(
    async () => {
      const answer = await p.call('GET', '/health');
      expect([answer.json.status, answer.status]).toEqual([status, code]);
      return answer;
    },
    { interval: 50 },
  );
}

describe('health', () => {
  it.each(PATHS)('D8-01 4.9-03: %s is public, and exactly status, version, uptime and checks', async (path) => {
    const { status, json } = await p.call('GET', path);
    expect(status).toBe(200);
    expect(Object.keys(json)).toEqual(['status', 'version', 'uptime', 'checks']);
    expect(json).toMatchObject({ status: 'ok', checks: { database: 'ok', cache: 'ok', bus: 'ok' } });
    expect(Object.keys(json.checks)).toEqual(['database', 'cache', 'bus']);
    expect(json.version).toMatch(/^\d+\.\d+\.\d+/);
    expect(Number.isInteger(json.uptime)).toBe(true);
  });

  it('D8-01: is degraded, and a 200, without the cache', async () => {
    vi.spyOn(p.service.context.cache, 'checkHealth').mockRejectedValue(new CacheUnavailableError());
    const { json } = await until('degraded', 200);
    expect(json.checks).toEqual({ database: 'ok', cache: 'down', bus: 'ok' });
  });

  it('D8-01: is degraded, and a 200, without the bus', async () => {
    vi.spyOn(p.service.context.bus, 'checkHealth').mockRejectedValue(new Error('away'));
    const { json } = await until('degraded', 200);
    expect(json.checks).toEqual({ database: 'ok', cache: 'ok', bus: 'down' });
  });

  it('D8-01: is a 503 without the database', async () => {
    const { db } = p.service.context.database;
    const { unscoped } = db;
    vi.spyOn(db, 'unscoped').mockImplementation((reason) => {
      if (reason === 'health') throw new Error('away');
      return unscoped.call(db, reason);
    });
    const { json } = await until('down', 503);
    expect(json.checks).toEqual({ database: 'down', cache: 'ok', bus: 'ok' });
  });

  it('D8-01: is probed in the background, never by a call', async () => {
    const probe = vi.spyOn(p.service.context.cache, 'checkHealth');
    await vi.waitFor(() => expect(probe).toHaveBeenCalled());
    const { length } = probe.mock.calls;
    const answers = await Promise.all(Array.from({ length: 30 }, (_, index) => p.call('GET', PATHS[index % 3] ?? '')));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(probe.mock.calls.length - length).toBeLessThan(30);
  });
});

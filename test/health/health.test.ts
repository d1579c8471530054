import { afterEach, describe, expect, it, vi } from 'vitest';
import { CacheUnavailableError } from '../../src/platform/cache/cache.ts';
import { type Answer, usePortcullis } from '../support/harness.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { serviceAddress } from '../support/services/real.ts';

const PATHS = ['/health', '/v1/health', '/v2/health'];
/** By which a process notices that the database is away: the health check, and the poll that replaces it. */
const DATABASE_READS = ['the time, no table', 'revocations of all nodes'];

const p = usePortcullis();
afterEach(async () => {
  vi.restoreAllMocks();
  await until('ok', 200);
});

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
  it.each(PATHS)(
    'D8-01 4.9-03: %s needs no token and returns exactly status, version, uptime and checks',
    async (path) => {
      const { status, json } = await p.call('GET', path);
      expect(status).toBe(200);
      expect(Object.keys(json)).toEqual(['status', 'version', 'uptime', 'checks']);
      expect(json).toMatchObject({ status: 'ok', checks: { database: 'ok', cache: 'ok', bus: 'ok', audit: 'ok' } });
      expect(Object.keys(json.checks)).toEqual(['database', 'cache', 'bus', 'audit']);
      expect(json.version).toMatch(/^\d+\.\d+\.\d+/);
      expect(Number.isInteger(json.uptime)).toBe(true);
    },
  );

  it.each<[part: 'database' | 'cache' | 'bus', status: string, code: number]>([
    ['cache', 'degraded', 200],
    ['bus', 'degraded', 200],
    ['database', 'down', 503],
  ])('D8-01: when the %s is unavailable, the status is %s with HTTP %i', async (part, status, code) => {
    const { cache, bus, database } = p.service.context;
    if (part === 'cache') vi.spyOn(cache, 'checkHealth').mockRejectedValue(new CacheUnavailableError());
    if (part === 'bus') vi.spyOn(bus, 'checkHealth').mockRejectedValue(new Error('away'));
    const { unscoped } = database.db;
    vi.spyOn(database.db, 'unscoped').mockImplementation((reason) => {
      if (part === 'database' && DATABASE_READS.includes(reason)) throw new Error('away');
      return unscoped.call(database.db, reason);
    });
    const { json } = await until(status, code);
    expect(json.checks).toEqual({ database: 'ok', cache: 'ok', bus: 'ok', audit: 'ok', [part]: 'down' });
  });

  it('D8-01: a database that takes no writes is down, until it takes them again', async () => {
    const name = new URL(p.env.DATABASE_URL ?? '').pathname.slice(1);
    const change = (setting: string) =>
      withPostgres(serviceAddress('postgres'), async (server) => {
        await server.query(`alter database "${name}" ${setting}`);
        await server.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name]);
      });
    await change('set default_transaction_read_only = on');
    const { json } = await until('down', 503);
    expect(json.checks.database).toBe('down');
    await vi.waitFor(() => expect(p.service.context.health.parts.database?.code).toBe('25006'));
    await change('reset default_transaction_read_only');
    await until('ok', 200);
  });

  it('D8-01: a database that answers the poll of revocations is asked nothing by the health check', async () => {
    const { cache, database } = p.service.context;
    expect(database.isEmbedded).toBe(false);
    const [statements, probes] = [vi.spyOn(database.db, 'unscoped'), vi.spyOn(cache, 'checkHealth')];
    // A busy machine may delay a poll for so long that the health check asks itself.
    await vi.waitFor(
      async () => {
        statements.mockClear();
        probes.mockClear();
        await vi.waitFor(() => expect(probes.mock.calls.length).toBeGreaterThan(1));
        const reasons = statements.mock.calls.map(([reason]) => reason);
        expect(DATABASE_READS.map((read) => reasons.includes(read))).toEqual([false, true]);
      },
      { timeout: 30_000 },
    );
  });

  it('D8-01: dependencies are probed in the background, not once per health request', async () => {
    const probe = vi.spyOn(p.service.context.cache, 'checkHealth');
    await vi.waitFor(() => expect(probe).toHaveBeenCalled());
    const { length } = probe.mock.calls;
    const answers = await Promise.all(Array.from({ length: 30 }, (_, index) => p.call('GET', PATHS[index % 3] ?? '')));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(probe.mock.calls.length - length).toBeLessThan(30);
  });
});

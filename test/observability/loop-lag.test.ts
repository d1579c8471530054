import { once } from 'node:events';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { adminServer } from '../../src/app/admin-server.ts';
import { scrape } from '../support/observability/scrape.ts';

// In a process of its own: the timers of other files would count.

const STALL_MS = 300;
/** In which a timer of 100 ms turns the loop five times. */
const REST_MS = 500;

/** How often the event loop has turned so far. */
const turns = () => performance.nodeTiming.uvMetricsInfo.loopCount;

it('D1-03: the metrics tell a stall of the event loop once, and measuring it wakes a process at rest ten times a second', async () => {
  const server = adminServer(() => ({ status: 'ok', checks: { database: 'ok', cache: 'ok', bus: 'ok', audit: 'ok' } }));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const lag = async () => {
    const { value } = await scrape({ adminUrl: `http://127.0.0.1:${port}` });
    return (part: string) => (value(`nodejs_eventloop_lag_${part}_seconds`) ?? Number.NaN) * 1_000;
  };
  try {
    await lag();
    // What the start of this process has left may still end.
    const turnsAtRest = async () => {
      const before = turns();
      await delay(REST_MS);
      return turns() - before;
    };
    await expect.poll(turnsAtRest).toBeLessThan(20);
    await lag();
    await delay(200);
    const untilTick = performance.now() + STALL_MS;
    while (performance.now() < untilTick);
    await delay(200);
    const stalled = await lag();
    expect(stalled('max')).toBeGreaterThan(0.9 * STALL_MS);
    expect(stalled('p99')).toBeGreaterThan(0.9 * STALL_MS);
    expect(stalled('min')).toBeLessThan(stalled('max'));
    for (const part of ['mean', 'p50', 'p90']) expect(stalled(part)).toBeGreaterThan(0);
    expect((await lag())('max')).toBeLessThan(0.9 * STALL_MS);
  } finally {
    server.close();
  }
});

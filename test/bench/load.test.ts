import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { Load } from '../../bench/lib/load.ts';
import { runLoad, runScript } from '../../bench/lib/run-script.ts';
import type { Loaded, WebhookLoad } from '../../bench/webhook/load.ts';

const STALL = { fromMs: 200, untilMs: 600 };
const LOAD = { requests: 200, perSecond: 200 };
const WEBHOOK_LOAD = join(import.meta.dirname, '../../bench/webhook/load.ts');

let server: Awaited<ReturnType<typeof startServer>>;
afterEach(() => server.stop());

/** Answers at once, but during the stall only at its end; both count from the first request after those that warm up. */
async function startServer({ status = 200, warmUp = 0 } = {}) {
  const arrivals: number[] = [];
  let left = warmUp;
  const http = createServer(async (_, res) => {
    const now = performance.now();
    if (left-- > 0) return void res.end();
    const begun = arrivals[0] ?? now;
    arrivals.push(now);
    const sinceMs = now - begun;
    if (sinceMs >= STALL.fromMs && sinceMs < STALL.untilMs) await delay(STALL.untilMs - sinceMs);
    res.writeHead(status, { 'content-length': 0 }).end();
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  const stop = async () => {
    http.closeAllConnections();
    await new Promise((resolve) => http.close(resolve));
  };
  return { port, arrivals, stop };
}

type Pace = Pick<Load, 'connections' | 'requests' | 'perSecond'>;

const GENERATORS = {
  requests: (port: number, pace: Pace) =>
    runLoad({ url: `http://127.0.0.1:${port}/`, method: 'GET', headers: {}, ...pace }),
  notifications: async (port: number, pace: Pace) => {
    const load: WebhookLoad = { port, path: '/', headers: {}, ...pace, transactions: 10, first: 0 };
    return ((await runScript(WEBHOOK_LOAD, load)) as Loaded).latencies;
  },
};

describe.each(Object.entries(GENERATORS))('the load generator of %s', (name, send) => {
  /** Of requests at a rate, each connection has had one before. */
  const warmUpOf = (connections: number) => (name === 'requests' ? connections : 0);

  it('counts the latency of every request that was due during a stall, although its connections were taken', async () => {
    server = await startServer({ warmUp: warmUpOf(4) });
    const latencies = await send(server.port, { ...LOAD, connections: 4 });
    expect(latencies).toHaveLength(LOAD.requests);
    // 400 ms at 200 a second are 80 requests, of which the first 60 wait for at least 100 ms.
    expect(latencies.filter((ms) => ms >= 100).length).toBeGreaterThanOrEqual(50);
  });

  it('sends on time during a stall while it has connections', async () => {
    server = await startServer({ warmUp: warmUpOf(256) });
    await send(server.port, { ...LOAD, connections: 256 });
    const { arrivals } = server;
    const [first = 0] = arrivals;
    const stalled = arrivals.filter((at) => at - first >= STALL.fromMs && at - first < STALL.untilMs);
    expect(stalled.length).toBeGreaterThan(40);
  });

  it('sends one request after another on each connection without a rate', async () => {
    server = await startServer();
    const latencies = await send(server.port, { requests: LOAD.requests, connections: 2 });
    expect(latencies).toHaveLength(LOAD.requests);
    expect(server.arrivals).toHaveLength(LOAD.requests);
  });

  it.each([undefined, 200])('fails at an answer that is not a 200, at the rate %s', async (perSecond) => {
    server = await startServer({ status: 503 });
    const pace = perSecond === undefined ? {} : { perSecond };
    await expect(send(server.port, { requests: 20, connections: 2, ...pace })).rejects.toThrow('ended with 1');
  });
});

import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { isReady, type ReadinessFacts, readinessOf } from '../../src/platform/health.ts';
import { startUpstream } from '../support/gateway/forwarder.ts';
import { gatewayFile } from '../support/gateway/gateway-file.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { type Portcullis, startOnRealServers, startReplica } from '../support/harness.ts';
import { type FaultMode, type FaultProxy, faultProxy } from '../support/services/fault-proxy.ts';
import { temporaryFolder } from '../support/services/folders.ts';
import { startKafkaBehindProxy } from '../support/services/kafka-behind.ts';
import { describeReal } from '../support/services/real.ts';

/** What is asked of the operator's listener, by whoever starts processes and by whoever sends to them. */
const PROBES = ['/readyz', '/readyz?exclude=stores'];
const well = { database: 'ok', cache: 'ok', bus: 'ok', audit: 'ok' } as const;
const full = { checks: { ...well, audit: 'full' } } as const;

describe('readiness', () => {
  const fact = (role: ReadinessFacts['role'], more: Partial<ReadinessFacts> = {}): ReadinessFacts => ({
    ...{ role, checks: well, hasSeenStores: true, isDraining: false, excludesStores: false },
    ...more,
  });
  const without = (part: 'database' | 'cache' | 'bus'): Partial<ReadinessFacts> => ({
    checks: { ...well, [part]: 'down' },
  });

  const of = (status: string): [string, string, string] => [status, status, status];

  it.each<[string, Partial<ReadinessFacts>, string, string, string]>([
    ['every dependency is available', {}, 'ok', 'ok', 'ok'],
    ['the database is unavailable', without('database'), 'down', 'down', 'down'],
    ['the cache is unavailable', without('cache'), 'degraded', 'degraded', 'degraded'],
    ['the bus is unavailable', without('bus'), 'degraded', 'degraded', 'down'],
    ['the audit spool is full', full, 'down', 'down', 'degraded'],
    [
      'a store is unavailable and stores are excluded',
      { ...without('database'), excludesStores: true },
      ...of('degraded'),
    ],
    ['the spool is full and stores are excluded', { ...full, excludesStores: true }, 'down', 'down', 'degraded'],
    ['the process is stopping and stores are excluded', { isDraining: true, excludesStores: true }, ...of('draining')],
    ['a store has never been reached', { ...without('cache'), hasSeenStores: false }, ...of('starting')],
    [
      'a store has never been reached and stores are excluded',
      { ...without('database'), hasSeenStores: false, excludesStores: true },
      ...of('degraded'),
    ],
    ['the process is stopping', { isDraining: true }, 'draining', 'draining', 'draining'],
  ])('when %s, the readiness of each role is reported', (_what, more, all, gateway, worker) => {
    const statuses = (['all', 'gateway', 'worker'] as const).map((role) => readinessOf(fact(role, more)).status);
    expect(statuses).toEqual([all, gateway, worker]);
  });

  it('a process is ready only while its status is ok or degraded', () => {
    const statuses = ['ok', 'degraded', 'starting', 'down', 'draining'] as const;
    const checks = well;
    expect(statuses.map((status) => isReady({ status, checks }))).toEqual([true, true, false, false, false]);
  });
});

describeReal(['postgres', 'redis', 'kafka'], '/readyz', () => {
  const stack = new AsyncDisposableStack();
  const ways = new Map<string, FaultProxy>();
  let gateway: Portcullis;
  let worker: Portcullis;

  beforeAll(async () => {
    const folder = await temporaryFolder();
    stack.defer(() => rm(folder, { recursive: true, force: true }));
    const kafka = await startKafkaBehindProxy(folder);
    stack.defer(() => kafka.stop());
    const p = stack.use(await startOnRealServers({ env: { KAFKA_BROKERS: `127.0.0.1:${kafka.proxy.port}` } }));
    const { DATABASE_URL = '', REDIS_URL = '' } = p.env;
    const database = stack.use(await faultProxy(Number(new URL(DATABASE_URL).port)));
    const redis = stack.use(await faultProxy(Number(new URL(REDIS_URL).port)));
    ways.set('database', database).set('cache', redis).set('bus', kafka.proxy);
    const env = { DATABASE_URL: database.urlOf(DATABASE_URL), REDIS_URL: redis.urlOf(REDIS_URL) };
    const replica = (role: string) => startReplica(p, { env: { ...env, PORTCULLIS_ROLE: role } });
    gateway = stack.use(await replica('gateway'));
    worker = stack.use(await replica('worker'));
  });
  afterAll(() => stack.disposeAsync());

  const WELL = { database: 'ok', cache: 'ok', bus: 'ok', audit: 'ok' };

  async function told({ service }: Portcullis, target = '/readyz'): Promise<object> {
    const response = await fetch(`${service.adminUrl}${target}`);
    const { status, checks } = (await response.json()) as { status: string; checks: object };
    return { told: `${response.status} ${status}`, checks };
  }

  const until = (checks: object, ofGateway: string, ofWorker: string) =>
    vi.waitFor(
      async () =>
        expect([await told(gateway), await told(worker)]).toEqual([
          { told: ofGateway, checks },
          { told: ofWorker, checks },
        ]),
      { interval: 200 },
    );

  const FAULTS: [string, keyof typeof well, FaultMode, string, string][] = [
    ['PostgreSQL disconnected', 'database', 'cut', '503 down', '503 down'],
    ['PostgreSQL not responding', 'database', 'frozen', '503 down', '503 down'],
    ['Redis disconnected', 'cache', 'cut', '200 degraded', '200 degraded'],
    ['Redis not responding', 'cache', 'frozen', '200 degraded', '200 degraded'],
    ['Kafka disconnected', 'bus', 'cut', '200 degraded', '503 down'],
    ['Kafka not responding', 'bus', 'frozen', '200 degraded', '503 down'],
  ];

  // In a quick run one fault of each server, and both kinds.
  it.each(FAULTS.filter((_, at) => inject('isThorough') || (at + (at >> 1)) % 2 === 0))(
    'D8-01: reports the readiness of gateway and worker with %s, and ok again after it recovers',
    async (_what, part, mode, ofGateway, ofWorker) => {
      await until(WELL, '200 ok', '200 ok');
      const checks = { ...WELL, [part]: 'down' };
      ways.get(part)?.set(mode);
      try {
        await until(checks, ofGateway, ofWorker);
        for (const one of [gateway, worker]) {
          expect(await told(one, '/readyz?exclude=stores')).toEqual({ told: '200 degraded', checks });
          expect(await (await fetch(`${one.service.adminUrl}/livez`)).text()).toBe('ok\n');
        }
      } finally {
        ways.get(part)?.set('passing');
      }
      await until(WELL, '200 ok', '200 ok');
    },
  );

  it.each(inTurn(['gateway', 'worker'], 2, 0))(
    'a %s that has never reached Redis is starting, or degraded without stores; later it is degraded while Redis is down',
    async (role) => {
      const { REDIS_URL = '' } = gateway.env;
      await using redis = await faultProxy(Number(new URL(REDIS_URL).port));
      redis.set('cut');
      const env = { REDIS_URL: redis.urlOf(REDIS_URL), PORTCULLIS_ROLE: role };
      await using one = await startReplica(gateway, { env });
      const bothAre = (statuses: [string, string], checks: object) =>
        vi.waitFor(
          async () => {
            const answers = await Promise.all(PROBES.map((target) => told(one, target)));
            expect(answers).toEqual(statuses.map((status) => ({ told: status, checks })));
          },
          { interval: 200 },
        );
      const without = { ...WELL, cache: 'down' };
      await bothAre(['503 starting', '200 degraded'], without);
      expect((await fetch(`${one.service.adminUrl}/livez`)).status).toBe(200);
      redis.set('passing');
      await bothAre(['200 ok', '200 ok'], WELL);
      redis.set('cut');
      await bothAre(['200 degraded', '200 degraded'], without);
    },
  );

  it('reports draining from the start of a shutdown, while requests in flight are still answered', async () => {
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    await using upstream = await startUpstream(async (_req, res) => {
      asked.resolve();
      await answer.promise;
      res.end('done');
    });
    await using file = await gatewayFile({ accounts: { at: upstream.url, guards: 'upstream' } });
    const env = { PORTCULLIS_ROLE: 'gateway', GATEWAY_CONFIG: file.path };
    const stopping = await startReplica(gateway, { env });
    const token = await gateway.clientToken();
    const headers = { 'x-target-server': 'accounts' };
    const answered = stopping.call('GET', '/v1/accounts', { token, headers });
    await asked.promise;
    const stopped = stopping[Symbol.asyncDispose]();
    await expect.poll(() => told(stopping)).toMatchObject({ told: '503 draining' });
    answer.resolve();
    expect((await answered).text).toBe('done');
    await stopped;
  });
});

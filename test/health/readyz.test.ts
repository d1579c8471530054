import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { EventBus } from '../../src/events/event-bus.ts';
import { isReady, type ReadinessFacts, readinessOf } from '../../src/health/readiness.rules.ts';
import { startUpstream } from '../gateway/forwarder.ts';
import { gatewayFile } from '../gateway/gateway-file.ts';
import { type Portcullis, startOnRealServers, startReplica } from '../harness.ts';
import { type FaultProxy, faultProxy } from '../services/fault-proxy.ts';
import { describeReal } from '../services/real.ts';

const well = { database: 'ok', cache: 'ok', bus: 'ok' } as const;

describe('readiness', () => {
  const fact = (role: ReadinessFacts['role'], more: Partial<ReadinessFacts> = {}): ReadinessFacts => ({
    ...{ role, checks: well, isDraining: false, isAuditFull: false, excludesStores: false },
    ...more,
  });
  const without = (part: keyof typeof well): Partial<ReadinessFacts> => ({ checks: { ...well, [part]: 'down' } });

  const of = (status: string): [string, string, string] => [status, status, status];

  it.each<[string, Partial<ReadinessFacts>, string, string, string]>([
    ['nothing is away', {}, 'ok', 'ok', 'ok'],
    ['the database is away', without('database'), 'down', 'down', 'down'],
    ['the cache is away', without('cache'), 'degraded', 'degraded', 'degraded'],
    ['the bus is away', without('bus'), 'degraded', 'degraded', 'down'],
    ['the audit spool is full', { isAuditFull: true }, 'down', 'down', 'ok'],
    ['a store is away and stores are excluded', { ...without('database'), excludesStores: true }, ...of('degraded')],
    ['the spool is full and stores are excluded', { isAuditFull: true, excludesStores: true }, 'down', 'down', 'ok'],
    ['the process stops and stores are excluded', { isDraining: true, excludesStores: true }, ...of('draining')],
    ['the process stops', { isDraining: true }, 'draining', 'draining', 'draining'],
  ])('when %s it is told by role', (_what, more, all, gateway, worker) => {
    const statuses = (['all', 'gateway', 'worker'] as const).map((role) => readinessOf(fact(role, more)).status);
    expect(statuses).toEqual([all, gateway, worker]);
  });

  it('only a process that can do its work, or a part of it, is to get some', () => {
    const statuses = ['ok', 'degraded', 'down', 'draining'] as const;
    const checks = { ...well, audit: 'ok' } as const;
    expect(statuses.map((status) => isReady({ status, checks }))).toEqual([true, true, false, false]);
  });
});

describeReal(['postgres', 'redis', 'kafka'], '/readyz', () => {
  const stack = new AsyncDisposableStack();
  let database: FaultProxy;
  let redis: FaultProxy;
  let gateway: Portcullis;
  let worker: Portcullis;
  let isBusAway = false;
  const busIs = (where: 'away' | 'back') => {
    isBusAway = where === 'away';
  };

  /** The real bus, whose probe fails on demand: what it carries goes on. */
  const moody = (bus: EventBus): EventBus =>
    new Proxy(bus, {
      get(target, name) {
        if (name === 'checkHealth' && isBusAway) return () => Promise.reject(new Error('away'));
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });

  beforeAll(async () => {
    const p = stack.use(await startOnRealServers());
    const { DATABASE_URL = '', REDIS_URL = '' } = p.env;
    database = stack.use(await faultProxy(Number(new URL(DATABASE_URL).port)));
    redis = stack.use(await faultProxy(Number(new URL(REDIS_URL).port)));
    const env = { DATABASE_URL: database.urlOf(DATABASE_URL), REDIS_URL: redis.urlOf(REDIS_URL) };
    const replica = (role: string) =>
      startReplica(p, { env: { ...env, PORTCULLIS_ROLE: role }, overrides: { bus: moody } });
    gateway = stack.use(await replica('gateway'));
    worker = stack.use(await replica('worker'));
  });
  afterAll(() => stack.disposeAsync());

  async function told({ service }: Portcullis): Promise<string> {
    const response = await fetch(`${service.adminUrl}/readyz`);
    const { status } = (await response.json()) as { status: string };
    return `${response.status} ${status}`;
  }

  const until = (ofGateway: string, ofWorker: string) =>
    vi.waitFor(async () => expect([await told(gateway), await told(worker)]).toEqual([ofGateway, ofWorker]), {
      timeout: 10_000,
      interval: 50,
    });

  it.each<[string, () => void, () => void, string, string]>([
    ['PostgreSQL cut off', () => database.set('cut'), () => database.set('passing'), '503 down', '503 down'],
    ['Redis cut off', () => redis.set('cut'), () => redis.set('passing'), '200 degraded', '200 degraded'],
    ['Kafka away', () => busIs('away'), () => busIs('back'), '200 degraded', '503 down'],
  ])('D8-01: tells the truth with %s, and when it is back', async (_what, harm, mend, ofGateway, ofWorker) => {
    await until('200 ok', '200 ok');
    harm();
    await until(ofGateway, ofWorker);
    mend();
    await until('200 ok', '200 ok');
  });

  it('is draining from the beginning of a stop, while requests in flight are answered', async () => {
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
    expect(await told(stopping)).toBe('503 draining');
    answer.resolve();
    expect((await answered).text).toBe('done');
    await stopped;
  });
});

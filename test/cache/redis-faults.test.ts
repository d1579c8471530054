import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createClient } from 'redis';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CacheUnavailableError } from '../../src/platform/cache/cache.ts';
import { RedisCache } from '../../src/platform/cache/redis-cache.ts';
import { redisCommand } from '../support/faults/redis-replica.ts';
import { REDIS_STATES, type TroubledRedis } from '../support/faults/redis-states.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { blockEventLoop } from '../support/lib/block-event-loop.ts';
import { temporaryFolder } from '../support/services/folders.ts';
import { freeze } from '../support/services/freeze.ts';
import { describeReal } from '../support/services/real.ts';
import { type RedisServer, startRedis } from '../support/services/redis.ts';

describeReal('redis', 'faults of the shared cache', () => {
  let dataDir: string;
  let server: RedisServer;
  let cache: RedisCache;
  const onOutage = vi.fn<(error: unknown) => void>();

  beforeEach(async () => {
    dataDir = await temporaryFolder();
    server = await startRedis({ dataDir });
    onOutage.mockClear();
  });
  afterEach(async () => {
    await cache.stop();
    await server.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  const count = () => cache.countFailure('guesser', 0);
  const serves = () =>
    expect
      .poll(() =>
        count().then(
          () => 'counted',
          () => 'away',
        ),
      )
      .toBe('counted');

  it('D3-28: a cache that starts while Redis is down rejects at once, and works once Redis is up', async () => {
    await server.stop();
    cache = await RedisCache.open({ url: server.url, onOutage });
    await expect(count()).rejects.toThrow(CacheUnavailableError);
    await expect(cache.checkHealth()).rejects.toThrow(CacheUnavailableError);
    server = await startRedis({ dataDir, port: server.port });
    await serves();
    expect(onOutage).toHaveBeenCalledTimes(1);
  });

  it('D3-28: after Redis dies the cache rejects, and counts on the restarted, empty one', async () => {
    cache = await RedisCache.open({ url: server.url, onOutage });
    await server.stop();
    await expect.poll(() => count().catch((error) => error)).toBeInstanceOf(CacheUnavailableError);
    server = await startRedis({ dataDir, port: server.port });
    await serves();
    expect(onOutage).toHaveBeenCalledTimes(1);
  });

  it.each([
    ['idle', 0],
    ['under load', 20],
  ])(
    'D3-28: if Redis freezes while %s, the cache soon rejects, and works again when Redis responds',
    async (_, everyMs) => {
      cache = await RedisCache.open({ url: server.url, onOutage });
      const load = everyMs > 0 ? setInterval(() => count().catch(() => undefined), everyMs) : undefined;
      await freeze(server.pid);
      await expect(count()).rejects.toThrow(CacheUnavailableError);
      await expect(count()).rejects.toThrow(CacheUnavailableError);
      clearInterval(load);
      process.kill(server.pid, 'SIGCONT');
      await serves();
      expect(onOutage).toHaveBeenCalledTimes(1);
    },
  );

  it('D3-28: if Redis is frozen at the start, the cache waits briefly, rejects, and works when Redis responds', async () => {
    await freeze(server.pid);
    cache = await RedisCache.open({ url: server.url, onOutage });
    await expect(count()).rejects.toThrow(CacheUnavailableError);
    process.kill(server.pid, 'SIGCONT');
    await serves();
    expect(onOutage).toHaveBeenCalledTimes(1);
  });

  it('D3-28: a process that was itself suspended longer than the timeout keeps its connection', async () => {
    cache = await RedisCache.open({ url: server.url, onOutage });
    const client = await createClient({ url: server.url }).connect();
    const connections = async () => /total_connections_received:(\d+)/.exec(await client.info('stats'))?.[1];
    const before = await connections();
    const pings = async () => Number(/cmdstat_ping:calls=(\d+)/.exec(await client.info('commandstats'))?.[1] ?? 0);
    blockEventLoop(2_500);
    const answered = await pings();
    await expect.poll(pings).toBeGreaterThan(answered + 1);
    await count();
    expect(await connections()).toBe(before);
    await client.close();
    expect(onOutage).not.toHaveBeenCalled();
  });

  describe('with a Redis that rejects commands', () => {
    const at: TroubledRedis = {
      redis: { address: () => server.url, become: () => undefined, proxy: undefined as never },
      folder: (name) => join(dataDir, name),
      defer: () => undefined,
    };
    const refusing = REDIS_STATES.filter(({ isRefused }) => isRefused);
    const health = () => cache.checkHealth().then(() => 'ok', String);

    it.each(inTurn(refusing, 3, 1).map((state) => [state.name, state] as const))(
      'D8-01 D3-36: the cache is unhealthy while Redis %s, and healthy afterwards',
      async (_name, state) => {
        cache = await RedisCache.open({ url: server.url, onOutage });
        await cache.checkHealth();
        await state.begin(at);
        await expect(cache.checkHealth()).rejects.toThrow(CacheUnavailableError);
        expect(onOutage).toHaveBeenCalledTimes(1);
        await expect(count()).rejects.toThrow(CacheUnavailableError);
        await state.end(at);
        await expect.poll(health).toBe('ok');
        expect(await count()).toMatchObject({ count: 1 });
      },
    );

    it('D8-01: the error of a rejected command has the reply, by which a person acts', async () => {
      cache = await RedisCache.open({ url: server.url, onOutage });
      await cache.checkHealth();
      await redisCommand(server.url, 'CONFIG', 'SET', 'maxmemory', '1');
      await expect(count()).rejects.toThrow(/^the cache is unavailable: OOM /);
      await redisCommand(server.url, 'CONFIG', 'SET', 'maxmemory', '0');
    });

    it('D3-28: a Redis that rejects PING and writes (MISCONF) keeps its connection and serves reads', async () => {
      cache = await RedisCache.open({ url: server.url, onOutage });
      const [state] = REDIS_STATES;
      await state?.begin(at);
      const client = await createClient({ url: server.url }).connect();
      const refusedPings = async () =>
        Number(/cmdstat_ping:\S*rejected_calls=(\d+)/.exec(await client.info('commandstats'))?.[1] ?? 0);
      await expect.poll(refusedPings).toBeGreaterThan(6);
      await client.close();
      expect(onOutage).not.toHaveBeenCalled();
      // With it, the server could not end either.
      await state?.end(at);
    });

    it('D3-28: the connection to a Redis that became a replica is replaced at most twice a second', async () => {
      cache = await RedisCache.open({ url: server.url, onOutage });
      await redisCommand(server.url, 'REPLICAOF', '127.0.0.1', '1');
      const client = await createClient({ url: server.url }).connect();
      const connections = async () =>
        Number(/total_connections_received:(\d+)/.exec(await client.info('stats'))?.[1] ?? 0);
      const before = await connections();
      const until = performance.now() + 700;
      while (performance.now() < until) {
        await expect(count()).rejects.toThrow(CacheUnavailableError);
        await delay(10);
      }
      const made = (await connections()) - before;
      expect(made).toBeGreaterThan(0);
      expect(made).toBeLessThan(4);
      await client.close();
    });
  });

  it('D3-15: sends three windows and the quota in one command, for all concurrent requests', async () => {
    cache = await RedisCache.open({ url: server.url, onOutage });
    const limits = { perSecond: 9, perMinute: 9, perHour: 9, perMonth: 9 };
    await cache.countRequest('c', limits, 0, 0);
    const client = await createClient({ url: server.url }).connect();
    await client.configResetStat();
    const answers = await Promise.all(Array.from({ length: 10 }, () => cache.countRequest('c', limits, 0, undefined)));
    expect(answers.map(({ second }) => second)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 9, 9]);
    const statistics = await client.info('commandstats');
    expect(statistics).toMatch(/cmdstat_evalsha:calls=1,/);
    expect(statistics).not.toMatch(/cmdstat_eval:/);
    await client.close();
  });

  it.each([
    ['answers', 'SIGCONT'],
    ['is silent', 'SIGSTOP'],
  ] as const)(
    'a cache stopped while it reconnects to a server that %s leaves no connection open',
    async (_name, signal) => {
      cache = await RedisCache.open({ url: server.url, onOutage });
      const client = await createClient({ url: server.url }).connect();
      const begun = Promise.withResolvers<{ socket: Socket; goOn: () => void }>();
      const { connect } = Socket.prototype;
      const held = vi.spyOn(Socket.prototype, 'connect').mockImplementation(function (
        this: Socket,
        ...args: unknown[]
      ) {
        begun.resolve({ socket: this, goOn: () => Reflect.apply(connect, this, args) });
        return this;
      });
      await client.sendCommand(['CLIENT', 'KILL', 'TYPE', 'normal']);
      const { socket, goOn } = await begun.promise;
      held.mockRestore();
      await cache.stop();
      const closed = once(socket, 'close');
      process.kill(server.pid, signal);
      goOn();
      await closed;
      process.kill(server.pid, 'SIGCONT');
      await client.close();
    },
  );
});

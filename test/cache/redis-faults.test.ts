import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { Socket } from 'node:net';
import { createClient } from 'redis';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { CacheUnavailableError } from '../../src/platform/cache/cache.ts';
import { RedisCache } from '../../src/platform/cache/redis-cache.ts';
import { standStill } from '../lib/stand-still.ts';
import { temporaryFolder } from '../services/folders.ts';
import { freeze } from '../services/freeze.ts';
import { describeReal } from '../services/real.ts';
import { type RedisServer, startRedis } from '../services/redis.ts';

describeReal('redis', 'faults of the cache that replicas share', () => {
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

  const node = randomUUID();
  const state = () => cache.sessionState(node, 'sub', 'a', 0);
  const serves = () => expect.poll(() => state().catch(() => 'away'));

  it('D3-28: it starts while Redis is down, refuses at once and serves once Redis is there', async () => {
    await server.stop();
    cache = await RedisCache.open({ url: server.url, onOutage });
    await expect(state()).rejects.toThrow(CacheUnavailableError);
    await expect(cache.checkHealth()).rejects.toThrow(CacheUnavailableError);
    server = await startRedis({ dataDir, port: server.port });
    await serves().toBe('unready');
    expect(onOutage).toHaveBeenCalledTimes(1);
  });

  it('D3-28: when Redis dies it refuses, and comes back unready to an emptied one', async () => {
    cache = await RedisCache.open({ url: server.url, onOutage });
    await cache.rebuildSessions(node, async () => ({ live: [] }));
    await server.stop();
    await expect.poll(() => state().catch((error) => error)).toBeInstanceOf(CacheUnavailableError);
    server = await startRedis({ dataDir, port: server.port });
    await serves().toBe('unready');
    expect(onOutage).toHaveBeenCalledTimes(1);
  });

  it.each([
    ['idle', 0],
    ['under load', 20],
  ])('D3-28: frozen while %s, Redis is given up soon and taken back when it goes on', async (_, everyMs) => {
    cache = await RedisCache.open({ url: server.url, onOutage });
    await cache.rebuildSessions(node, async () => ({ live: [] }));
    const load = everyMs > 0 ? setInterval(() => state().catch(() => undefined), everyMs) : undefined;
    await freeze(server.pid);
    await expect(state()).rejects.toThrow(CacheUnavailableError);
    await expect(state()).rejects.toThrow(CacheUnavailableError);
    clearInterval(load);
    process.kill(server.pid, 'SIGCONT');
    await serves().toBe('absent');
    expect(onOutage).toHaveBeenCalledTimes(1);
  });

  it('D3-28: frozen at the start, it is waited for a little, refused, and served when it goes on', async () => {
    await freeze(server.pid);
    cache = await RedisCache.open({ url: server.url, onOutage });
    await expect(state()).rejects.toThrow(CacheUnavailableError);
    process.kill(server.pid, 'SIGCONT');
    await serves().toBe('unready');
    expect(onOutage).toHaveBeenCalledTimes(1);
  });

  it('D3-28: a process that stood still for longer than that itself keeps its connection', async () => {
    cache = await RedisCache.open({ url: server.url, onOutage });
    const before = cache.generation;
    const client = await createClient({ url: server.url }).connect();
    const pings = async () => Number(/cmdstat_ping:calls=(\d+)/.exec(await client.info('commandstats'))?.[1] ?? 0);
    standStill(2_500);
    const answered = await pings();
    await expect.poll(pings).toBeGreaterThan(answered + 1);
    await client.close();
    expect(await state()).toBe('unready');
    expect(cache.generation).toBe(before);
    expect(onOutage).not.toHaveBeenCalled();
  });

  it('asks for the state of a session in one command', async () => {
    cache = await RedisCache.open({ url: server.url, onOutage });
    await state();
    const client = await createClient({ url: server.url }).connect();
    await client.configResetStat();
    await Promise.all(Array.from({ length: 10 }, state));
    const statistics = await client.info('commandstats');
    expect(statistics).toMatch(/cmdstat_evalsha:calls=10,/);
    expect(statistics).not.toMatch(/cmdstat_eval:/);
    await client.close();
  });

  it('D3-15: asks for three windows and the quota in one command, for all requests that come at once', async () => {
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
  ] as const)('stopped while it connects anew to one that %s, it leaves no connection', async (_name, signal) => {
    cache = await RedisCache.open({ url: server.url, onOutage });
    const client = await createClient({ url: server.url }).connect();
    const begun = Promise.withResolvers<{ socket: Socket; goOn: () => void }>();
    const { connect } = Socket.prototype;
    const held = vi.spyOn(Socket.prototype, 'connect').mockImplementation(function (this: Socket, ...args: unknown[]) {
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
  });

  it('D3-28: it counts the connections that it has had', async () => {
    cache = await RedisCache.open({ url: server.url, onOutage });
    const before = cache.generation;
    await server.stop();
    server = await startRedis({ dataDir, port: server.port });
    await serves().toBe('unready');
    expect(cache.generation).not.toBe(before);
  });
});

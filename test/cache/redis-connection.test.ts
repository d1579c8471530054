import { connect, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { RedisConnection } from '../../src/platform/cache/redis-connection.ts';
import { luaScript } from '../../src/platform/cache/redis-scripts.ts';
import { listening } from '../support/gateway/forwarder.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';

const LOADING = '-LOADING Redis is loading the dataset in memory\r\n';
const ECHO = luaScript('return ARGV[1]');

describeReal('redis', 'a connection to a server that is not Redis, or not ready', () => {
  const sockets: Socket[] = [];
  let serve: (socket: Socket) => void;
  let pings: number;
  const listener = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => socket.destroy());
    socket.resume();
    serve(socket);
  });
  const onOutage = vi.fn<(error: unknown) => void>();
  let url: string;
  let redis: RedisConnection | undefined;

  beforeEach(async () => {
    onOutage.mockClear();
    sockets.length = 0;
    pings = 0;
    url = (await listening(listener)).replace('http:', 'redis:');
  });
  afterEach(async () => {
    await redis?.stop();
    cut();
    await new Promise((resolve) => listener.close(resolve));
  });

  function cut(): void {
    for (const socket of sockets) socket.destroy();
  }

  /** Hands on to Redis; what it says to a PING is replaced. */
  function passes(pong?: string): (socket: Socket) => void {
    return (socket) => {
      const { hostname, port } = new URL(serviceAddress('redis'));
      const real = connect(Number(port), hostname);
      real.on('error', () => socket.destroy());
      socket.on('close', () => real.destroy());
      real.pipe(socket);
      socket.on('data', (bytes) => {
        const isPing = bytes.includes('PING');
        if (isPing) pings += 1;
        if (isPing && pong !== undefined) socket.write(pong);
        else real.write(bytes);
      });
    };
  }

  const echoed = (text: string) => redis?.run(ECHO, ['key'], [text]).catch(() => 'away');

  it.each([
    ['sends nothing', ''],
    ['speaks SSH', 'SSH-2.0-OpenSSH_10.0\r\n'],
    ['speaks HTTP', 'HTTP/1.1 400 Bad Request\r\n\r\n'],
  ])(
    'D3-28: a server that %s and keeps the connection open is abandoned, and Redis is found once it listens there',
    async (_name, banner) => {
      serve = (socket) => void socket.write(banner);
      redis = await RedisConnection.open({ url, onOutage });
      await expect(redis.run(ECHO, ['key'], [])).rejects.toThrow('unavailable');
      serve = passes();
      await expect.poll(() => echoed('found')).toBe('found');
      expect(onOutage).toHaveBeenCalledTimes(1);
    },
  );

  it.each([
    ['freezes after each handshake', ''],
    ['loads its data', LOADING],
  ])(
    'D3-28: while the server %s, one outage is reported despite reconnects; a later outage is reported again',
    async (...row) => {
      const [, pong] = row;
      serve = passes(pong);
      redis = await RedisConnection.open({ url, onOutage });
      await expect.poll(() => sockets.length).toBe(3);
      expect(onOutage).toHaveBeenCalledTimes(1);
      serve = passes();
      pings = 0;
      cut();
      // The second is sent when the first one is answered.
      await expect.poll(() => pings).toBeGreaterThan(1);
      expect(onOutage).toHaveBeenCalledTimes(1);
      cut();
      await expect.poll(() => onOutage.mock.calls.length).toBe(2);
    },
  );

  it('D3-28: an unexpected reply closes the connection, since later replies would be matched to wrong commands', async () => {
    serve = passes();
    redis = await RedisConnection.open({ url, onOutage });
    sockets[0]?.write('+nobody has asked\r\n');
    await expect.poll(() => sockets.length).toBe(2);
    await expect.poll(() => echoed('own')).toBe('own');
    expect(onOutage).toHaveBeenCalledTimes(1);
  });
});

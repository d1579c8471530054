import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { createClient } from 'redis';
import { describe, expect, it } from 'vitest';
import { RedisWakeUps } from '../../src/events/streams/redis-wake-ups.ts';
import { temporaryFolder } from '../support/services/folders.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';
import { startRedis } from '../support/services/redis.ts';
import { wakeUpsContract } from './wake-ups.contract.ts';

describeReal('redis', 'the wake-ups between processes', () => {
  describe('by the common contract', () => {
    wakeUpsContract(() => {
      const options = { url: serviceAddress('redis'), channelPrefix: `${randomUUID()}:` };
      return Promise.all([RedisWakeUps.open(options), RedisWakeUps.open(options)]);
    });
  });

  it('D6-10: wake-ups work again once Redis is available, whether or not it was at the start', async () => {
    const dataDir = await temporaryFolder();
    let server = await startRedis({ dataDir });
    const early = await RedisWakeUps.open({ url: server.url });
    await server.stop();
    const late = await RedisWakeUps.open({ url: server.url });
    const heard = new Set<string>();
    early.listen((nodeId) => heard.add(`early ${nodeId}`));
    late.listen((nodeId) => heard.add(`late ${nodeId}`));
    early.notify('lost', 1n);
    server = await startRedis({ dataDir, port: server.port });
    await expect
      .poll(() => {
        early.notify('a', 2n);
        late.notify('b', 3n);
        return [...heard].toSorted();
      })
      .toEqual(['early a', 'early b', 'early lost', 'late a', 'late b']);
    await Promise.all([early.stop(), late.stop()]);
    await server.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  it('D6-10: a process receives its own wake-ups while Redis is unavailable', async () => {
    const dataDir = await temporaryFolder();
    const server = await startRedis({ dataDir });
    const wakeUps = await RedisWakeUps.open({ url: server.url });
    await server.stop();
    const heard: string[] = [];
    wakeUps.listen((nodeId, seq) => heard.push(`${nodeId} ${seq}`));
    wakeUps.notify('a', 1n);
    await expect.poll(() => heard).toEqual(['a 1']);
    await wakeUps.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  it('malformed messages on the channel are ignored', async () => {
    const url = serviceAddress('redis');
    const channelPrefix = `${randomUUID()}:`;
    const wakeUps = await RedisWakeUps.open({ url, channelPrefix });
    const heard: string[] = [];
    wakeUps.listen((nodeId, seq) => heard.push(`${nodeId} ${seq}`));
    const client = await createClient({ url }).connect();
    for (const message of ['', 'a', 'a -1', 'a 1 2', 'a x', 'a 7'])
      await client.publish(`${channelPrefix}wake-ups`, message);
    await expect.poll(() => heard).toEqual(['a 7']);
    await client.close();
    await wakeUps.stop();
  });
});

import { rm } from 'node:fs/promises';
import { decodeJwt } from 'jose';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Portcullis, startOnSharedStores, startPortcullis, startReplica } from '../support/harness.ts';
import { makeLoginsCheap } from '../support/oauth/cheap-hash.ts';
import { temporaryFolder } from '../support/services/folders.ts';
import { freeze } from '../support/services/freeze.ts';
import { describeReal } from '../support/services/real.ts';
import { startRedis } from '../support/services/redis.ts';

interface Pair {
  access_token: string;
  refresh_token: string;
}

async function login(p: Portcullis): Promise<Pair> {
  return (
    await p.call('POST', '/v2/oauth/token', {
      json: { grant_type: 'password', ...p.demo.client, ...p.demo.supervisor },
    })
  ).json;
}

async function statusOf(p: Portcullis, { access_token }: Pair): Promise<number> {
  return (await p.call('GET', '/v1/accounts', { token: access_token })).status;
}

async function refreshStatus(p: Portcullis, { refresh_token }: Pair): Promise<number> {
  const json = { grant_type: 'refresh_token', ...p.demo.client, refresh_token };
  return (await p.call('POST', '/v2/oauth/token', { json })).status;
}

/** Ends one login. */
function endLogin({ service, demo }: Portcullis, { access_token }: Pair): Promise<void> {
  const { changes, sessions } = service.context;
  const sessionId = String(decodeJwt(access_token).sid);
  return changes.commit((ended) => sessions.end(demo.node_id, { sessionId }, ended));
}

/** Ends the logins that were made through the demo client. */
function endLogins({ service, demo }: Portcullis): Promise<void> {
  const { changes, sessions } = service.context;
  return changes.commit((ended) => sessions.end(demo.node_id, { clientId: demo.client.client_id }, ended));
}

describe('logins that are ended', () => {
  let p: Portcullis;
  beforeAll(async () => {
    p = await startPortcullis();
    await makeLoginsCheap(p);
  });
  afterAll(() => p[Symbol.asyncDispose]());

  it('D3-19 D3-23 7.6-03: are refused from then on, refresh included, and later ones are not', async () => {
    const pair = await login(p);
    expect(await statusOf(p, pair)).toBe(200);
    await endLogins(p);
    expect([await statusOf(p, pair), await refreshStatus(p, pair)]).toEqual([401, 401]);
    expect(await statusOf(p, await login(p))).toBe(200);
  });
});

describeReal(['postgres', 'redis'], 'logins that are ended, on every replica', () => {
  it('D3-19 D3-28: one that ended since Redis last wrote to its disk does not live again when it is back from there', async () => {
    const dataDir = await temporaryFolder();
    let redis = await startRedis({ dataDir });
    try {
      await using p = await startPortcullis({ env: { REDIS_URL: redis.url } });
      await makeLoginsCheap(p);
      await using replica = await startReplica(p);
      const [ended, kept] = [await login(p), await login(p)];
      expect(await statusOf(p, ended)).toBe(200);
      const client = await createClient({ url: redis.url }).connect();
      await client.sendCommand(['SAVE']);
      await client.close();
      await endLogin(p, ended);
      // Each has read of it, and will not again.
      for (const { service } of [p, replica]) await service.context.changes.poll();
      expect(await statusOf(replica, ended)).toBe(401);
      process.kill(redis.pid, 'SIGKILL');
      await redis.stop();
      redis = await startRedis({ dataDir, port: redis.port });
      for (const one of [p, replica]) {
        await expect.poll(() => statusOf(one, kept)).toBe(200);
        await expect.poll(() => statusOf(one, ended)).toBe(401);
      }
    } finally {
      await redis.stop();
      await rm(dataDir, { recursive: true, force: true });
    }
  });

  it.each([
    ['over one Redis', startOnSharedStores],
    ['each with a cache of its own', startPortcullis],
  ])('D3-19: a login through one replica holds at the other, and so does its end: %s', async (_, start) => {
    await using p = await start();
    await makeLoginsCheap(p);
    await using replica = await startReplica(p);
    const pair = await login(p);
    expect(await statusOf(replica, pair)).toBe(200);
    await endLogins(p);
    expect(await statusOf(p, pair)).toBe(401);
    await expect.poll(() => statusOf(replica, pair), { interval: 50 }).toBe(401);
    expect(await refreshStatus(replica, pair)).toBe(401);
  });

  it('D3-19 D3-28: one that ended while Redis was away does not live on when it is back with its data', async () => {
    const dataDir = await temporaryFolder();
    const redis = await startRedis({ dataDir });
    try {
      await using p = await startPortcullis({ env: { REDIS_URL: redis.url } });
      await makeLoginsCheap(p);
      const [ended, kept] = [await login(p), await login(p)];
      expect(await statusOf(p, ended)).toBe(200);
      await freeze(redis.pid);
      await expect.poll(() => statusOf(p, kept)).toBe(503);
      await endLogins(p);
      process.kill(redis.pid, 'SIGCONT');
      await expect.poll(() => statusOf(p, ended)).toBe(401);
    } finally {
      await redis.stop();
      await rm(dataDir, { recursive: true, force: true });
    }
  });
});

import { randomUUID } from 'node:crypto';
import { decodeJwt } from 'jose';
import { expect, it } from 'vitest';
import { sessionMirror } from '../../src/access/revocation/session-mirror.ts';
import { RedisCache } from '../../src/platform/cache/redis-cache.ts';
import { redisCommand } from '../support/faults/redis-replica.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startOnSharedStores } from '../support/harness.ts';
import { describeReal } from '../support/services/real.ts';

/** The script by which a process of 0.1.0 looks a session up. */
const STATE_IN_0_1 = `
if redis.call('EXISTS', KEYS[3]) == 0 then return -1 end
local expiry = redis.call('ZSCORE', KEYS[1], ARGV[1])
if expiry and tonumber(expiry) > tonumber(ARGV[2]) then return 1 end
return 0`;
const LIVE = 1;
const MONTH_MS = 30 * 24 * 3_600_000;

describeReal(['postgres', 'redis'], 'the copy of sessions for processes of 0.1.0', () => {
  const p = beforeTests(startOnSharedStores);
  const redis = (...command: string[]) => redisCommand(p.env.REDIS_URL ?? '', ...command);

  const keysOf = (nodeId: string, subject: string) => [
    `s:{${nodeId}}:${subject}`,
    `removed:{${nodeId}}:${subject}`,
    `ready:{${nodeId}}`,
  ];

  async function stateOf(token: string): Promise<unknown> {
    const { sub = '', sid } = decodeJwt<{ sid: string }>(token);
    const keys = keysOf(p.demo.node_id, sub);
    await redis('SET', keys[2] ?? '', '1');
    return redis('EVAL', STATE_IN_0_1, '3', ...keys, sid, `${Date.now()}`);
  }

  it('D1-13: a session is live for those processes once its tokens are issued, and after a refresh', async () => {
    const grant = { grant_type: 'password', ...p.demo.client, ...p.demo.supervisor };
    const { access_token, refresh_token } = (await p.call('POST', '/v2/oauth/token', { json: grant })).json;
    expect(await stateOf(access_token)).toBe(LIVE);
    const { sub = '', sid } = decodeJwt<{ sid: string }>(access_token);
    const [key = ''] = keysOf(p.demo.node_id, sub);
    await redis('ZADD', key, '1', sid);
    const json = { grant_type: 'refresh_token', ...p.demo.client, refresh_token };
    const refreshed = (await p.call('POST', '/v2/oauth/token', { json })).json;
    expect(await stateOf(refreshed.access_token)).toBe(LIVE);
    expect(Number(await redis('PTTL', key))).toBeGreaterThan(MONTH_MS);
  });

  it('D1-13: a session they have removed stays removed; expired ones and those over the maximum are deleted', async () => {
    const cache = await RedisCache.open({ url: p.env.REDIS_URL ?? '' });
    const mirror = sessionMirror({ run: (...given) => cache.run(...given), maxSessions: 1, nowMs: () => 1_000 });
    const [nodeId, supervisorId] = [randomUUID(), randomUUID()];
    const [key = '', removed = ''] = keysOf(nodeId, supervisorId);
    await redis('SADD', removed, 'ended');
    await redis('ZADD', key, '999', 'expired');
    const add = (sessionId: string, expiresAtMs: number) =>
      mirror({ nodeId, supervisorId, sessionId, clientId: '', expiresAtMs });
    await add('ended', 2_000);
    for (let at = 0; at < 102; at += 1) await add(`s${at}`, 2_000 + at);
    const members = await redis('ZRANGE', key, '0', '-1');
    expect(members).toEqual(Array.from({ length: 101 }, (_, at) => `s${at + 1}`));
    await cache.stop();
  });

  it('D3-28: a copy that cannot be written neither rejects nor delays a login', async () => {
    const mirror = (run: () => Promise<unknown>) => sessionMirror({ run, maxSessions: 1, nowMs: Date.now });
    const session = { nodeId: '', supervisorId: '', sessionId: '', clientId: '', expiresAtMs: 0 };
    expect(await mirror(() => Promise.reject(new Error('refused')))(session)).toBeUndefined();
    expect(await mirror(() => new Promise(() => undefined))(session)).toBeUndefined();
  });
});

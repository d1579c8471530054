import { decodeJwt } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { CacheUnavailableError } from '../../src/platform/cache/cache.ts';
import {
  type Answer,
  type Portcullis,
  startEmbedded,
  startOnSharedStores,
  startPortcullis,
} from '../support/harness.ts';
import { addClient, rows } from '../support/oauth/clients.ts';
import { describeReal } from '../support/services/real.ts';
import { migratedFolder } from '../support/start/folders.ts';

const clock = { skewMs: 0 };
let p: Portcullis;
beforeAll(async () => {
  const nowMs = () => Date.now() + clock.skewMs;
  p = await startPortcullis({ env: { MAX_SESSIONS: '2' }, overrides: { nowMs } });
});
afterEach(() => vi.restoreAllMocks());
afterAll(() => p[Symbol.asyncDispose]());

interface Pair {
  access_token: string;
  refresh_token: string;
}

async function login(): Promise<Pair> {
  clock.skewMs += 1_000;
  const json = { grant_type: 'password', ...p.demo.client, ...p.demo.supervisor };
  return (await p.call('POST', '/v2/oauth/token', { json })).json;
}

async function refresh({ refresh_token }: Pair): Promise<Answer> {
  clock.skewMs += 1_000;
  return p.call('POST', '/v2/oauth/token', { json: { grant_type: 'refresh_token', ...p.demo.client, refresh_token } });
}

async function statusOf({ access_token }: Pair): Promise<number> {
  return (await p.call('GET', '/v1/accounts', { token: access_token })).status;
}

describe('the sessions of a supervisor', () => {
  it('D3-19: beyond MAX_SESSIONS only the session that expires first ends', async () => {
    const [first, second] = [await login(), await login()];
    const prolonged = (await refresh(first)).json;
    const third = await login();
    const statuses = [first, prolonged, second, third].map(statusOf);
    expect(await Promise.all(statuses)).toEqual([200, 200, 401, 200]);
    const refreshed = [await refresh(prolonged), await refresh(second), await refresh(third)];
    expect(refreshed.map(({ status }) => status)).toEqual([200, 401, 200]);
    expect(await Promise.all([prolonged, third].map(statusOf))).toEqual([200, 200]);
  });
});

describe('while the cache is unavailable', () => {
  it('D3-28: sign-in, refresh, login tokens and API tokens still work', async () => {
    const { cache } = p.service.context;
    const away = () => Promise.reject(new CacheUnavailableError());
    vi.spyOn(cache, 'countRequest').mockImplementation(away);
    vi.spyOn(cache, 'countFailure').mockImplementation(away);
    const pair = await login();
    const { status, json } = await refresh(pair);
    expect([status, await statusOf(pair), await statusOf(json)]).toEqual([200, 200, 200]);
    const client = await addClient(p, { monthly_limit: 9, requests_per_minute: 9 });
    const token = await p.clientToken(client);
    expect((await p.call('GET', '/v1/accounts', { token })).status).toBe(200);
  });
});

describe('after a restart of the embedded instance', () => {
  it('D1-08: active sessions are still valid and revoked ones are still rejected', async () => {
    await using folder = await migratedFolder();
    const status = async (at: Portcullis, token: string) => (await at.call('GET', '/v1/accounts', { token })).status;
    const tokens: string[] = [];
    {
      await using first = await startEmbedded({ dataDir: folder.path });
      const json = { grant_type: 'password', ...first.demo.client, ...first.demo.supervisor };
      const pairs = await Promise.all(
        [1, 2].map(async () => (await first.call('POST', '/v2/oauth/token', { json })).json),
      );
      tokens.push(...pairs.map(({ access_token }) => access_token));
      const ended = { ...first.demo.client, token: pairs[1].refresh_token };
      await first.call('POST', '/v2/oauth/revoke', { json: ended });
    }
    await using second = await startEmbedded({ dataDir: folder.path });
    expect(await Promise.all(tokens.map((token) => status(second, token)))).toEqual([200, 401]);
  });
});

describeReal(['postgres', 'redis'], 'the sessions of a supervisor on PostgreSQL and Redis', () => {
  it('D3-19: a concurrent burst of logins leaves no more than MAX_SESSIONS', async () => {
    await using real = await startOnSharedStores({ env: { MAX_SESSIONS: '2' } });
    await real.call('GET', '/v1/accounts', { token: await real.loginToken() });
    const tokens = await Promise.all(Array.from({ length: 8 }, () => real.loginToken()));
    const answers = await Promise.all(tokens.map((token) => real.call('GET', '/v1/accounts', { token })));
    const live = answers.flatMap(({ status }, index) => (status === 200 ? [decodeJwt(tokens[index] ?? '').sid] : []));
    const stored = await rows(real).run((k) => k.selectFrom('sessions').select('id').where('revoked_at', 'is', null));
    expect(live).toHaveLength(2);
    expect(stored.map(({ id }) => id).sort()).toEqual(live.sort());
  });
});

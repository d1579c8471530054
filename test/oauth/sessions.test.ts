import { decodeJwt } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { CacheUnavailableError } from '../../src/platform/cache/cache.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { type Answer, type Portcullis, startOnSharedStores, startPortcullis } from '../support/harness.ts';
import { addClient, rows, supervisorId } from '../support/oauth/clients.ts';
import { signed } from '../support/oauth/jwt.ts';
import { describeReal } from '../support/services/real.ts';

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
  it('D3-19: past MAX_SESSIONS the one that would end first ends, in the cache and in the database, and no other', async () => {
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

describe('while the cache refuses writes', () => {
  const refused = () => Promise.reject(new CacheUnavailableError());

  const liveSessions = async () =>
    (await rows(p).run((k) => k.selectFrom('sessions').select('id').where('revoked_at', 'is', null))).length;

  it('D3-36: a login gets 503 and leaves no session; later ones succeed', async () => {
    await login();
    await login();
    vi.spyOn(p.service.context.cache, 'addSession').mockImplementation(refused);
    const json = { grant_type: 'password', ...p.demo.client, ...p.demo.supervisor };
    const answer = await p.call('POST', '/v2/oauth/token', { json });
    expect([answer.status, answer.text]).toEqual([503, envelope('service_unavailable')]);
    // The older of the two has made room for it.
    expect(await liveSessions()).toBe(1);
    vi.restoreAllMocks();
    expect(await statusOf(await login())).toBe(200);
  });

  it('D3-36: once that is known, logins and refreshes get 503 and change nothing in the database', async () => {
    const pairs = [await login(), await login()];
    const before = await rows(p).run((k) => k.selectFrom('sessions').selectAll().orderBy('id'));
    vi.spyOn(p.service.context.cache, 'refusesSessions').mockReturnValue(true);
    const json = { grant_type: 'password', ...p.demo.client, ...p.demo.supervisor };
    expect((await p.call('POST', '/v2/oauth/token', { json })).status).toBe(503);
    for (const pair of pairs) expect([(await refresh(pair)).status, await statusOf(pair)]).toEqual([503, 200]);
    expect(await rows(p).run((k) => k.selectFrom('sessions').selectAll().orderBy('id'))).toEqual(before);
  });

  it.each(['with reuse detection', 'without iat'])(
    'D3-36: a refresh token %s that got 503 can still be redeemed later than a retry could',
    async (kind) => {
      const client = await addClient(p, { refresh_reuse_detection: kind === 'with reuse detection' });
      const grant = { grant_type: 'password', ...client, ...p.demo.supervisor };
      const refresh_token =
        kind === 'without iat'
          ? signed(p, { sub: await supervisorId(p), client_id: client.client_id })
          : (await p.call('POST', '/v2/oauth/token', { json: grant })).json.refresh_token;
      const json = { grant_type: 'refresh_token', ...client, refresh_token };
      vi.spyOn(p.service.context.cache, 'prolongSession').mockImplementation(refused);
      vi.spyOn(p.service.context.cache, 'addSession').mockImplementation(refused);
      expect((await p.call('POST', '/v2/oauth/token', { json })).status).toBe(503);
      vi.restoreAllMocks();
      clock.skewMs += 60_000;
      const answer = await p.call('POST', '/v2/oauth/token', { json });
      expect([answer.status, await statusOf(answer.json)]).toEqual([200, 200]);
    },
  );
});

describe('an emptied cache', () => {
  it('D3-28: answers 503 while another rebuilds it', async () => {
    const pair = await login();
    const { cache } = p.service.context;
    const release = await cache.lock(`rebuild:{${p.demo.node_id}}`, 60_000);
    vi.spyOn(cache, 'sessionState').mockReturnValueOnce('unready');
    const answer = await p.call('GET', '/v1/accounts', { token: pair.access_token });
    expect([answer.status, answer.text]).toEqual([503, envelope('service_unavailable')]);
    await release?.();
    expect(await statusOf(pair)).toBe(200);
  });
});

describeReal(['postgres', 'redis'], 'the sessions of a supervisor on PostgreSQL and Redis', () => {
  it('D3-19: a concurrent burst of logins leaves no more than allowed, in the cache and in the database', async () => {
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

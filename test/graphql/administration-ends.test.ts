import { randomUUID } from 'node:crypto';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Portcullis, startOnRealServers, startPortcullis, startReplica } from '../harness.ts';
import { signed } from '../oauth/jwt.ts';
import { describeReal } from '../services/real.ts';
import { createdClient, createdSupervisor, grantStatus, login, operate, tokenStatus } from './administration.ts';
import { SetClientStatusDocument, SetSupervisorStatusDocument } from './generated/graphql.ts';

const clock = { skewMs: 0 };
const overrides = { nowMs: () => Date.now() + clock.skewMs };

/** A client, and one of everything that lives through it. */
async function everythingOf(p: Portcullis, token: string) {
  const { client, credentials } = await createdClient(p, token, {
    grantTypes: ['PASSWORD', 'CLIENT_CREDENTIALS', 'REFRESH_TOKEN'],
    // Its access tokens have no end of their own.
    tokenExpiry: { enabled: false, duration: 60 },
  });
  const { username } = await createdSupervisor(p, token, { username: `user-${randomUUID()}` });
  const json = { grant_type: 'client_credentials', ...credentials };
  const api = (await p.call('POST', '/v2/oauth/token', { json })).json;
  return { id: client.id, credentials, api, person: await login(p, username, { client: credentials }), username };
}

type Everything = Awaited<ReturnType<typeof everythingOf>>;

/** What an instance says to the credentials, the access tokens and the refresh tokens. */
async function statuses(p: Portcullis, { credentials, api, person }: Everything): Promise<number[]> {
  const refresh = (refresh_token: string) =>
    grantStatus(p, { grant_type: 'refresh_token', ...credentials, refresh_token });
  return Promise.all([
    grantStatus(p, { grant_type: 'client_credentials', ...credentials }),
    tokenStatus(p, api.access_token),
    tokenStatus(p, person.access_token),
    refresh(api.refresh_token),
    refresh(person.refresh_token),
  ]);
}

const LIVE = [200, 200, 200, 200, 200];
const ENDED = [401, 401, 401, 401, 401];
/** The credentials are good again, and nothing else is. */
const ENABLED = [200, 401, 401, 401, 401];

function setStatus(p: Portcullis, token: string, id: string, status: 'ACTIVE' | 'DISABLED') {
  return operate(p, token, SetClientStatusDocument, { id, status });
}

/** What each replica does twice a second by itself. */
function readOn({ service }: Portcullis): Promise<void> {
  return service.context.changes.poll();
}

describe('a client that is disabled', () => {
  let p: Portcullis;
  let token: string;
  beforeAll(async () => {
    p = await startPortcullis({ overrides });
    token = await p.clientToken();
  });
  afterAll(() => p[Symbol.asyncDispose]());

  it('D3-07: however often in one second, brings back nothing that was issued in between', async () => {
    const all = await everythingOf(p, token);
    const json = { grant_type: 'client_credentials', ...all.credentials };
    const between: string[] = [];
    for (const status of ['DISABLED', 'ACTIVE', 'DISABLED', 'ACTIVE', 'DISABLED', 'ACTIVE'] as const) {
      await setStatus(p, token, all.id, status);
      if (status === 'ACTIVE') between.push((await p.call('POST', '/v2/oauth/token', { json })).json.access_token);
    }
    clock.skewMs += 10_000;
    expect(await Promise.all([all.api.access_token, ...between].map((one) => tokenStatus(p, one)))).toEqual([
      ...[401, 401, 401],
      200,
    ]);
  });

  it('D3-07: also ends what a replica issued that had not heard of it yet', async () => {
    const all = await everythingOf(p, token);
    const claims = decodeJwt(all.api.access_token);
    const iat = Math.floor(overrides.nowMs() / 1000) + 1;
    const late = signed(p, { ...claims, jti: randomUUID(), iat });
    await setStatus(p, token, all.id, 'DISABLED');
    await setStatus(p, token, all.id, 'ACTIVE');
    expect(await tokenStatus(p, late)).toBe(401);
  });

  it('D3-07, D3-23: ends its credentials, its tokens and its logins at once, and enabling brings back the first alone', async () => {
    const all = await everythingOf(p, token);
    expect(await statuses(p, all)).toEqual(LIVE);
    await setStatus(p, token, all.id, 'DISABLED');
    expect(await statuses(p, all)).toEqual(ENDED);
    await setStatus(p, token, all.id, 'ACTIVE');
    expect(await statuses(p, all)).toEqual(ENABLED);
    clock.skewMs += 2_000;
    expect(await statuses(p, all)).toEqual(ENABLED);
    const anew = await p.clientToken(all.credentials);
    const person = await login(p, all.username, { client: all.credentials });
    expect([await tokenStatus(p, anew), await tokenStatus(p, person.access_token)]).toEqual([200, 200]);
  });

  it('D3-07: ends what was issued within the same second', async () => {
    const all = await everythingOf(p, token);
    clock.skewMs += 1_000 - ((Date.now() + clock.skewMs) % 1_000);
    const anew = await p.clientToken(all.credentials);
    await setStatus(p, token, all.id, 'DISABLED');
    await setStatus(p, token, all.id, 'ACTIVE');
    clock.skewMs += 2_000;
    expect(await tokenStatus(p, anew)).toBe(401);
  });
});

describeReal(['postgres', 'redis', 'kafka'], 'on every replica', () => {
  describe.each([
    ['over one Redis', {}],
    ['each with a cache of its own', { REDIS_URL: '' }],
  ])('%s', (_name, env) => {
    let p: Portcullis;
    let replica: Portcullis;
    let token: string;
    beforeAll(async () => {
      p = await startOnRealServers({ env, overrides });
      replica = await startReplica(p, { overrides });
      token = await p.clientToken();
    });
    afterAll(async () => {
      await replica[Symbol.asyncDispose]();
      await p[Symbol.asyncDispose]();
    });

    it('D3-07, D3-23: what a disabled client had ends here at once and there with its next reading, and stays ended', async () => {
      const all = await everythingOf(p, token);
      expect(await statuses(replica, all)).toEqual(LIVE);
      await setStatus(p, token, all.id, 'DISABLED');
      expect(await statuses(p, all)).toEqual(ENDED);
      await readOn(replica);
      expect(await statuses(replica, all)).toEqual(ENDED);
      await setStatus(replica, token, all.id, 'ACTIVE');
      await readOn(p);
      expect(await statuses(p, all)).toEqual(ENABLED);
      expect(await statuses(replica, all)).toEqual(ENABLED);
    });

    it("D3-26: a leaver's sessions end here at once and there with its next reading", async () => {
      const { id, username } = await createdSupervisor(p, token, { username: `leaver-${randomUUID()}` });
      const { access_token, refresh_token } = await login(replica, username);
      const grant = { grant_type: 'refresh_token', ...p.demo.client, refresh_token };
      expect([await tokenStatus(p, access_token), await tokenStatus(replica, access_token)]).toEqual([200, 200]);
      await operate(p, token, SetSupervisorStatusDocument, { id, status: 'DISABLED' });
      expect([await tokenStatus(p, access_token), await grantStatus(p, grant)]).toEqual([401, 401]);
      await readOn(replica);
      expect(await tokenStatus(replica, access_token)).toBe(401);
      expect(await grantStatus(replica, grant)).toBe(401);
    });
  });
});

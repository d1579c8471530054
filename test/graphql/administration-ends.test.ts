import { randomUUID } from 'node:crypto';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import {
  createdClient,
  grantStatus,
  login,
  loginOfDemo,
  operate,
  PASSWORD,
  tokenStatus,
} from '../support/graphql/administration.ts';
import { openStream } from '../support/graphql/event-reader.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { type Portcullis, startOnSharedStores, startPortcullis, startReplica } from '../support/harness.ts';
import { addSupervisor } from '../support/oauth/cheap-hash.ts';
import { signed } from '../support/oauth/jwt.ts';
import { describeReal } from '../support/services/real.ts';
import {
  type ClientInput,
  SetClientStatusDocument,
  SetSupervisorStatusDocument,
  UpdateClientDocument,
} from './generated/graphql.ts';

const clock = { skewMs: 0 };
const overrides = { nowMs: () => Date.now() + clock.skewMs };

const CLIENT: ClientInput = {
  name: 'Trader',
  grantTypes: ['PASSWORD', 'CLIENT_CREDENTIALS', 'REFRESH_TOKEN'],
  scopes: [],
  // Its access tokens have no end of their own.
  tokenExpiry: { enabled: false, duration: 60 },
};

/** A client, and one of everything that lives through it. */
async function everythingOf(p: Portcullis, token: string, settings: Partial<ClientInput> = {}) {
  const { client, credentials } = await createdClient(p, token, { ...CLIENT, ...settings });
  const json = { grant_type: 'client_credentials', ...credentials };
  const api = (await p.call('POST', '/v2/oauth/token', { json })).json;
  return { id: client.id, credentials, api, person: await loginOfDemo(p, credentials) };
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

/** Replaces the client, which must succeed. */
async function replace(p: Portcullis, token: string, id: string, settings: Partial<ClientInput>): Promise<void> {
  const { result } = await operate(p, token, UpdateClientDocument, { id, input: { ...CLIENT, ...settings } });
  if (result.__typename !== 'Client') throw new Error(JSON.stringify(result));
}

const ENDLESS = { tokenExpiry: { enabled: false, duration: 60 } };
const ENDING = { tokenExpiry: { enabled: true, duration: 600 } };
type Changed = [name: string, from: Partial<ClientInput>, to: Partial<ClientInput>];
const TAKING: Changed[] = [
  ['remove a scope', { scopes: ['accounts:read', 'wallets:read'] }, { scopes: ['wallets:read'] }],
  ['remove all scopes', { scopes: ['accounts:read'] }, { scopes: [] }],
  ['replace one scope by another', { scopes: ['accounts:read'] }, { scopes: ['wallets:read', 'users:read'] }],
  ['switch expiry on', ENDLESS, ENDING],
];
const GIVING: Changed[] = [
  ['add a scope', { scopes: ['accounts:read'] }, { scopes: ['wallets:read', 'accounts:read'] }],
  ['switch expiry off', ENDING, ENDLESS],
  ['change anything else', ENDING, { ...ENDING, name: 'Other', refreshReuseDetection: true, monthlyLimit: 1_000 }],
];

const LIVE = [200, 200, 200, 200, 200];
const ENDED = [401, 401, 401, 401, 401];
/** What the client got for itself has ended. */
const CUT = [200, 401, 200, 401, 200];
/** The credentials are good again, and nothing else is. */
const ENABLED = [200, 401, 401, 401, 401];

function setStatus(p: Portcullis, token: string, id: string, status: 'ACTIVE' | 'DISABLED') {
  return operate(p, token, SetClientStatusDocument, { id, status });
}

/** What each replica does twice a second by itself. */
function readOn({ service }: Portcullis): Promise<void> {
  return service.context.changes.poll();
}

const p = beforeTests(() => startPortcullis({ overrides }));
let token: string;
beforeAll(async () => {
  token = await p.clientToken();
});

describe('a client that is disabled', () => {
  it('D3-07: repeatedly within one second, does not restore tokens issued in between', async () => {
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

  it('D3-07: also revokes tokens issued by a replica that did not know of it yet', async () => {
    const all = await everythingOf(p, token);
    const claims = decodeJwt(all.api.access_token);
    const iat = Math.floor(overrides.nowMs() / 1000) + 1;
    const late = signed(p, { ...claims, jti: randomUUID(), iat });
    await setStatus(p, token, all.id, 'DISABLED');
    await setStatus(p, token, all.id, 'ACTIVE');
    expect(await tokenStatus(p, late)).toBe(401);
  });

  it('D3-07, D3-23: loses its credentials, tokens and logins at once, and enabling restores only the credentials', async () => {
    const all = await everythingOf(p, token);
    expect(await statuses(p, all)).toEqual(LIVE);
    await setStatus(p, token, all.id, 'DISABLED');
    expect(await statuses(p, all)).toEqual(ENDED);
    await setStatus(p, token, all.id, 'ACTIVE');
    expect(await statuses(p, all)).toEqual(ENABLED);
    clock.skewMs += 2_000;
    expect(await statuses(p, all)).toEqual(ENABLED);
    const anew = await p.clientToken(all.credentials);
    const person = await loginOfDemo(p, all.credentials);
    expect([await tokenStatus(p, anew), await tokenStatus(p, person.access_token)]).toEqual([200, 200]);
  });

  it('D3-07: loses tokens issued within the same second', async () => {
    const all = await everythingOf(p, token);
    clock.skewMs += 1_000 - ((Date.now() + clock.skewMs) % 1_000);
    const anew = await p.clientToken(all.credentials);
    await setStatus(p, token, all.id, 'DISABLED');
    await setStatus(p, token, all.id, 'ACTIVE');
    clock.skewMs += 2_000;
    expect(await tokenStatus(p, anew)).toBe(401);
  });
});

describe('a client that is changed', () => {
  it.each(TAKING)('D3-31: to %s loses its own tokens at once, but no login through it', async (_name, from, to) => {
    const all = await everythingOf(p, token, from);
    await replace(p, token, all.id, from);
    expect(await statuses(p, all)).toEqual(LIVE);
    await replace(p, token, all.id, to);
    expect(await statuses(p, all)).toEqual(CUT);
    const anew = await p.clientToken(all.credentials);
    expect(await tokenStatus(p, anew)).toBe(200);
    clock.skewMs += 3_000;
    expect([...(await statuses(p, all)), await tokenStatus(p, anew)]).toEqual([...CUT, 200]);
  });

  it.each(GIVING)('D3-31: to %s loses nothing', async (_name, from, to) => {
    const all = await everythingOf(p, token, from);
    await replace(p, token, all.id, to);
    expect(await statuses(p, all)).toEqual(LIVE);
  });

  it('D3-31: repeatedly within one second, keeps only the token issued last', async () => {
    const all = await everythingOf(p, token, { scopes: ['accounts:read', 'wallets:read'] });
    const issued: string[] = [];
    for (const scopes of [['accounts:read'], [], ['accounts:read'], []]) {
      await replace(p, token, all.id, { scopes });
      issued.push(await p.clientToken(all.credentials));
    }
    clock.skewMs += 10_000;
    expect(await Promise.all(issued.map((one) => tokenStatus(p, one)))).toEqual([401, 401, 401, 200]);
  });

  it('D3-31: also loses tokens issued by a replica that did not know of it yet', async () => {
    const all = await everythingOf(p, token, { scopes: ['accounts:read'] });
    const iat = Math.floor(overrides.nowMs() / 1000) + 1;
    const late = signed(p, { ...decodeJwt(all.api.access_token), jti: randomUUID(), iat });
    await replace(p, token, all.id, { scopes: [] });
    expect(await tokenStatus(p, late)).toBe(401);
  });

  it('D3-31: loses an open subscription of its own token', async () => {
    const all = await everythingOf(p, token, { scopes: ['transactions:read', 'accounts:read'] });
    const stream = await openStream(p, all.api.access_token, 'subscription { transactionUpdates { cursor } }');
    expect(stream.response.status).toBe(200);
    await replace(p, token, all.id, { scopes: ['transactions:read'] });
    expect(await stream.next()).toBeUndefined();
  });
});

const OWN_CACHES: [string, typeof startPortcullis] = ['each with its own cache', startPortcullis];

describeReal(['postgres', 'redis'], 'on every replica', () => {
  describe.each<[string, typeof startPortcullis]>([
    ['over one Redis', startOnSharedStores],
    ...(inject('isThorough') ? [OWN_CACHES] : []),
  ])('%s', (_name, start) => {
    const p = beforeTests(() => start({ overrides }));
    let replica: Portcullis;
    let token: string;
    beforeAll(async () => {
      replica = await startReplica(p, { overrides });
      token = await p.clientToken();
    });
    afterAll(async () => {
      await replica[Symbol.asyncDispose]();
    });

    it('D3-07, D3-23: the access of a disabled client ends here at once and on a replica at its next poll, and stays revoked', async () => {
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

    it('D3-31: tokens of a client that lost a scope end here at once and on a replica at its next poll', async () => {
      const all = await everythingOf(p, token, { scopes: ['accounts:read'] });
      expect(await statuses(replica, all)).toEqual(LIVE);
      await replace(p, token, all.id, { scopes: [] });
      await readOn(replica);
      expect([await statuses(p, all), await statuses(replica, all)]).toEqual([CUT, CUT]);
      const anew = await replica.clientToken(all.credentials);
      expect([await tokenStatus(p, anew), await tokenStatus(replica, anew)]).toEqual([200, 200]);
    });

    it('D3-26: sessions of a disabled supervisor end here at once and on a replica at its next poll', async () => {
      const { id, username } = await addSupervisor(p, PASSWORD);
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

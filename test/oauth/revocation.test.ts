import { decodeJwt } from 'jose';
import { describe, expect, inject, it } from 'vitest';
import { deleteExpiredRows } from '../../src/access/tokens/revocations.ts';
import { type Answer, startOnSharedStores, startPortcullis, startReplica, usePortcullis } from '../support/harness.ts';
import { addClient, type ClientCredentials, rows, supervisorId } from '../support/oauth/clients.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';
import { basicOf, postForm } from '../support/oauth/requests.ts';
import { describeReal } from '../support/services/real.ts';

const REVOKE = '/v2/oauth/revoke';

interface Pair {
  access_token: string;
  refresh_token: string;
}

const p = usePortcullis();

async function api(client: ClientCredentials = p.demo.client, at = p): Promise<Pair> {
  return (await at.call('POST', '/v2/oauth/token', { json: { grant_type: 'client_credentials', ...client } })).json;
}

async function login(client: ClientCredentials = p.demo.client, at = p): Promise<Pair> {
  const json = { grant_type: 'password', ...client, ...at.demo.supervisor };
  return (await at.call('POST', '/v2/oauth/token', { json })).json;
}

function refresh({ refresh_token }: Pair, client: ClientCredentials = p.demo.client, at = p): Promise<Answer> {
  return at.call('POST', '/v2/oauth/token', { json: { grant_type: 'refresh_token', ...client, refresh_token } });
}

function revoke(token: string, client: ClientCredentials = p.demo.client, at = p): Promise<Answer> {
  return postForm(at, REVOKE, { token, token_type_hint: 'whatever' }, basicOf(client));
}

function accepted(answer: Answer): void {
  expect([answer.status, answer.text]).toEqual([200, '{}']);
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect([answer.headers.get('cache-control'), answer.headers.get('pragma')]).toEqual(['no-store', 'no-cache']);
}

async function accessStatus({ access_token }: Pair, at = p): Promise<number> {
  return (await at.call('GET', '/v1/accounts', { token: access_token })).status;
}

async function denied({ client_id }: ClientCredentials) {
  const found = await rows(p).run((k) =>
    k.selectFrom('revoked_tokens').select(['token_id', 'expires_at']).where('client_id', '=', client_id),
  );
  return found.map(({ token_id, expires_at }) => [
    token_id,
    expires_at === null ? null : Date.parse(expires_at) / 1000,
  ]);
}

describe('token revocation', () => {
  it.each([
    ['a form with Basic', (token: string, client: ClientCredentials) => revoke(token, client)],
    ['a form alone', (token: string, client: ClientCredentials) => postForm(p, REVOKE, { token, ...client })],
    ['JSON', (token: string, client: ClientCredentials) => p.call('POST', REVOKE, { json: { token, ...client } })],
  ])('D3-12: accepts %s', async (_name, send) => {
    const client = await addClient(p);
    const pair = await api(client);
    accepted(await send(pair.access_token, client));
    expect(await accessStatus(pair)).toBe(401);
    accepted(await send(pair.access_token, client));
  });

  it("D3-12 D3-22: revoking a client's access token revokes that token until its exp", async () => {
    const client = await addClient(p);
    const [pair, other] = [await api(client), await api(client)];
    accepted(await revoke(pair.access_token, client));
    expect([await accessStatus(pair), await accessStatus(other)]).toEqual([401, 200]);
    expect((await refresh(pair, client)).status).toBe(200);
    const { jti, exp } = decodeJwt(pair.access_token);
    expect(await denied(client)).toEqual([[jti, exp]]);
  });

  it('D3-12 D3-22: the revocation of a token without exp never expires', async () => {
    const client = await addClient(p, { token_expiry_enabled: false });
    const pair = await api(client);
    accepted(await revoke(pair.access_token, client));
    expect(await accessStatus(pair)).toBe(401);
    expect(await denied(client)).toEqual([[decodeJwt(pair.access_token).jti, null]]);
  });

  it('D3-12: revoking the access token of a login revokes that token, not the session', async () => {
    const pair = await login();
    accepted(await revoke(pair.access_token));
    expect(await accessStatus(pair)).toBe(401);
    const refreshed = await refresh(pair);
    expect([refreshed.status, await accessStatus(refreshed.json)]).toEqual([200, 200]);
  });

  it.each([
    ['the first', (pairs: Pair[]) => pairs.at(0)],
    ['the last', (pairs: Pair[]) => pairs.at(-1)],
  ])('D3-12: revoking %s refresh token of a client revokes the family and its access tokens', async (_name, pick) => {
    const client = await addClient(p);
    const bystander = await api(client);
    const first = await api(client);
    const pairs = [first, (await refresh(first, client)).json as Pair];
    accepted(await revoke(pick(pairs)?.refresh_token ?? '', client));
    for (const pair of pairs) {
      expect([await accessStatus(pair), (await refresh(pair, client)).status]).toEqual([401, 401]);
    }
    expect([await accessStatus(bystander), (await refresh(bystander, client)).status]).toEqual([200, 200]);
  });

  it('D3-12 D3-22: the revocation of a family lasts until its last token expires, and permanently without expiry', async () => {
    const endless = await addClient(p, { token_expiry_enabled: false });
    const first = await api(endless);
    accepted(await revoke(first.refresh_token, endless));
    expect(await denied(endless)).toEqual([[decodeJwt(first.refresh_token).jti, null]]);
    const short = await addClient(p, { token_expiry_duration: 60 });
    accepted(await revoke((await api(short)).refresh_token, short));
    const [[, ends] = []] = await denied(short);
    expect(Number(ends) - Date.now() / 1000).toBeGreaterThan(365 * 24 * 3600 - 60);
  });

  it('D3-12 D3-23: revoking the refresh token of a login ends its session', async () => {
    const [pair, other] = [await login(), await login()];
    accepted(await revoke(pair.refresh_token));
    expect([await accessStatus(pair), (await refresh(pair)).status]).toEqual([401, 401]);
    expect([await accessStatus(other), (await refresh(other)).status]).toEqual([200, 200]);
  });

  it('D3-12 D3-21: revoking a refresh token without iat prevents its use', async () => {
    const client = await addClient(p);
    const refresh_token = signed(p, { sub: client.client_id, client_id: client.client_id });
    accepted(await revoke(refresh_token, client));
    expect((await refresh({ access_token: '', refresh_token }, client)).status).toBe(401);
  });

  it("D3-12 D3-21: revoking a supervisor's refresh token without iat also ends the session it started", async () => {
    const [fresh, used] = await Promise.all(
      [1, 2].map(async (n) => signed(p, { sub: await supervisorId(p), client_id: p.demo.client.client_id, n })),
    );
    const pair = (await refresh({ access_token: '', refresh_token: used ?? '' })).json as Pair;
    expect(await accessStatus(pair)).toBe(200);
    for (const token of [fresh, used]) {
      accepted(await revoke(token ?? ''));
      expect((await refresh({ access_token: '', refresh_token: token ?? '' })).status).toBe(401);
    }
    expect([await accessStatus(pair), (await refresh(pair)).status]).toEqual([401, 401]);
  });

  it.each([
    ...[{ jti: '\0' }, { jti: '\ud800' }, { jti: 'j'.repeat(9_000) }, { exp: 1e308 }],
    ...[
      { family: '\0', token_use: 'refresh' },
      { family: 'f'.repeat(9_000), token_use: 'refresh' },
    ],
    { jti: '\0', iat: undefined, token_use: undefined },
    ...['zzz', '', '\0'].map((sid) => ({ sid, token_use: 'refresh' })),
  ])('D3-12: accepts a signed token with %.60j', async (changes) => {
    const client = await addClient(p);
    const sub = 'sid' in changes ? await supervisorId(p) : client.client_id;
    const token = signed(p, { ...apiClaims(p), sub, client_id: client.client_id, ...changes });
    accepted(await revoke(token, client));
    expect(await accessStatus({ access_token: token, refresh_token: '' })).toBe(401);
    expect((await refresh({ access_token: '', refresh_token: token }, client)).status).toBe(401);
  });

  it('D3-12: revoking a legacy token of the client rejects it afterwards', async () => {
    const client = await addClient(p);
    const claims = apiClaims(p, { token_use: undefined, client_id: client.client_id });
    const access_token = signed(p, claims, { secret: p.service.context.secrets.jwt.legacy.current });
    expect(await accessStatus({ access_token, refresh_token: '' })).toBe(200);
    accepted(await revoke(access_token, client));
    expect(await accessStatus({ access_token, refresh_token: '' })).toBe(401);
  });

  it("D3-12: revoking another client's token or an unknown token returns 200 and changes nothing", async () => {
    const client = await addClient(p);
    const [mine, through] = [await api(), await login()];
    const foreign = [mine.access_token, mine.refresh_token, through.access_token, through.refresh_token];
    const none = ['x', 'a.b.c', `${mine.access_token}=`, mine.access_token.slice(0, -1), 'x'.repeat(50_000)];
    const expired = signed(p, apiClaims(p, { client_id: client.client_id, exp: 1 }));
    for (const token of [...foreign, ...none, expired]) accepted(await revoke(token, client));
    for (const token of foreign) accepted(await revoke(token, p.demo.other_node.client));
    for (const pair of [mine, through]) {
      expect([await accessStatus(pair), (await refresh(pair)).status]).toEqual([200, 200]);
    }
    expect(await denied(client)).toEqual([]);
  });
});

describeReal(['postgres', 'redis'], 'what was revoked', () => {
  it('D3-22: a revoked token stays rejected after a restart, and its row is deleted once it has expired', async () => {
    await using real = await startPortcullis();
    const clock = { skewMs: 0 };
    const start = () => startReplica(real, { overrides: { nowMs: () => Date.now() + clock.skewMs } });
    const pairs: Pair[] = [];
    {
      await using first = await start();
      const { client } = first.demo;
      for (const at of [0, 1]) {
        const pair = await api(client, first);
        accepted(await revoke(at === 0 ? pair.access_token : pair.refresh_token, client, first));
        pairs.push(pair);
      }
    }
    {
      await using second = await start();
      for (const pair of pairs) expect(await accessStatus(pair, second)).toBe(401);
      const [alone, family] = pairs as [Pair, Pair];
      expect((await refresh(alone, second.demo.client, second)).status).toBe(200);
      expect((await refresh(family, second.demo.client, second)).status).toBe(401);
      clock.skewMs = 2 * 3_600_000;
      const { database, nowMs } = second.service.context;
      await deleteExpiredRows({ db: database.db, nowMs });
      const left = await rows(second).run((k) => k.selectFrom('revoked_tokens').select('token_id'));
      expect(left.map(({ token_id }) => token_id)).toEqual([decodeJwt(family.refresh_token).family]);
    }
  });

  const ownCaches: [string, typeof startPortcullis] = ['each with its own cache', startPortcullis];
  it.each<[string, typeof startPortcullis]>([
    ['over one Redis', startOnSharedStores],
    ...(inject('isThorough') ? [ownCaches] : []),
  ])(
    'D3-22 D3-12 D3-19 D3-23: a revocation at one replica is applied by the other when it next polls: %s',
    async (_name, start) => {
      await using real = await start();
      await using replica = await startReplica(real);
      const { client } = real.demo;
      const pairs = [await api(client, real), await api(client, real), await login(client, real)];
      for (const pair of pairs) expect(await accessStatus(pair, replica)).toBe(200);
      const [alone, family, session] = pairs as [Pair, Pair, Pair];
      for (const token of [alone.access_token, family.refresh_token, session.refresh_token]) {
        accepted(await revoke(token, client, real));
      }
      await replica.service.context.changes.poll();
      for (const pair of pairs) expect(await accessStatus(pair, replica)).toBe(401);
      const refreshes = await Promise.all(pairs.map((pair) => refresh(pair, client, replica)));
      expect(refreshes.map(({ status }) => status)).toEqual([200, 401, 401]);
    },
  );
});

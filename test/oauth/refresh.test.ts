import { decodeJwt } from 'jose';
import { afterEach, describe, expect, it } from 'vitest';
import { envelope } from '../support/gateway/envelopes.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { type Answer, startPortcullis } from '../support/harness.ts';
import { addSupervisor } from '../support/oauth/cheap-hash.ts';
import { addClient, type ClientCredentials, rows, updateClient } from '../support/oauth/clients.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';

const DAY_MS = 24 * 3600 * 1000;
const clock = { skewMs: 0 };
const p = beforeTests(() => startPortcullis({ overrides: { nowMs: () => 1_800_000_000_000 + clock.skewMs } }));
afterEach(() => {
  clock.skewMs = 0;
});

const ask = (json: object) => p.call('POST', '/v2/oauth/token', { json });
const refresh = (refresh_token: string, client: ClientCredentials = p.demo.client) =>
  ask({ grant_type: 'refresh_token', ...client, refresh_token });
const apiPair = async (client: ClientCredentials) => (await ask({ grant_type: 'client_credentials', ...client })).json;
const loginPair = async (supervisor: object = p.demo.supervisor) =>
  (await ask({ grant_type: 'password', ...p.demo.client, ...supervisor })).json;

function refused(answer: Answer): void {
  expect([answer.status, answer.text]).toEqual([401, envelope('invalid_request')]);
}

describe('a refreshed pair', () => {
  it('5.2-04 3-05: a refreshed pair is new, of the same kind, and both of its tokens are valid', async () => {
    for (const [first, use] of [
      [await apiPair(p.demo.client), 'api'],
      [await loginPair(), 'login'],
    ] as const) {
      const { status, json } = await refresh(first.refresh_token);
      expect(status).toBe(200);
      expect(json.access_token).not.toBe(first.access_token);
      expect(json.refresh_token).not.toBe(first.refresh_token);
      const [before, after] = [decodeJwt(first.access_token), decodeJwt(json.access_token)];
      expect(after).toMatchObject({ sub: before.sub, aud: before.aud, client_id: before.client_id, token_use: use });
      expect(after.sid).toBe(before.sid);
      expect(json.expires_in).toBe(first.expires_in);
      expect((await p.call('GET', '/v1/accounts', { token: json.access_token })).status).toBe(200);
      expect((await refresh(json.refresh_token)).status).toBe(200);
    }
  });

  it('5.2-04 2.1-04: a refreshed pair has the current permissions of the client or supervisor', async () => {
    const client = await addClient(p);
    const supervisor = { ...(await addSupervisor(p, 'secret')), password: 'secret' };
    const [api, login] = [await apiPair(client), await loginPair(supervisor)];
    await updateClient(p, client.client_id, { scopes: ['tokens:read'] });
    await rows(p).run((k) => k.updateTable('supervisors').set({ role: 'operator' }).where('id', '=', supervisor.id));
    expect((await refresh(api.refresh_token, client)).json.scope).toBe('tokens:read');
    expect(login.scope).not.toContain('wallets:write');
    expect((await refresh(login.refresh_token)).json.scope).toContain('wallets:write');
  });

  it('3-05: refreshing a login extends its session', async () => {
    const first = await loginPair();
    clock.skewMs = 29 * DAY_MS;
    const second = await refresh(first.refresh_token);
    clock.skewMs = 31 * DAY_MS;
    const third = await refresh(second.json.refresh_token);
    expect(third.status).toBe(200);
    expect((await p.call('GET', '/v1/accounts', { token: third.json.access_token })).status).toBe(200);
    refused(await refresh(first.refresh_token));
  });
});

describe('the expiry of a refresh token', () => {
  it('5.2-01 7.2-02: a refresh token of a login expires after 30 days', async () => {
    const { refresh_token } = await loginPair();
    clock.skewMs = 30 * DAY_MS - 1;
    expect((await refresh(refresh_token)).status).toBe(200);
    const other = await loginPair();
    clock.skewMs += 30 * DAY_MS + 1_000;
    refused(await refresh(other.refresh_token));
  });

  it('D3-04 7.2-02: a refresh token of a client expires after its configured duration', async () => {
    const client = await addClient(p, { token_expiry_duration: 60 });
    const { refresh_token } = await apiPair(client);
    clock.skewMs = 59_999;
    expect((await refresh(refresh_token, client)).status).toBe(200);
    clock.skewMs = 60_000;
    refused(await refresh(refresh_token, client));
  });

  it.each([
    ['without an expiry', { token_expiry_enabled: false }],
    ['with a longer duration', { token_expiry_duration: 400 * 24 * 3600 }],
  ])('8-03 3-05: a refresh token expires 365 days after iat for a client %s', async (_name, settings) => {
    const client = await addClient(p, settings);
    const { refresh_token } = await apiPair(client);
    clock.skewMs = 365 * DAY_MS;
    const { status, json } = await refresh(refresh_token, client);
    expect(status).toBe(200);
    clock.skewMs = 365 * DAY_MS + 1;
    refused(await refresh(refresh_token, client));
    expect((await refresh(json.refresh_token, client)).status).toBe(200);
  });

  it('5.2-04 7.2-02: a refresh token is rejected once its supervisor, session or client is disabled or revoked', async () => {
    const supervisor = { ...(await addSupervisor(p, 'secret')), password: 'secret' };
    const login = await loginPair(supervisor);
    const setStatus = (status: 'active' | 'disabled') =>
      rows(p).run((k) => k.updateTable('supervisors').set({ status }).where('id', '=', supervisor.id));
    await setStatus('disabled');
    refused(await refresh(login.refresh_token));
    await setStatus('active');
    expect((await refresh(login.refresh_token)).status).toBe(200);
    const sid = String(decodeJwt(login.refresh_token).sid);
    const now = new Date().toISOString();
    await rows(p).run((k) => k.updateTable('sessions').set({ revoked_at: now }).where('id', '=', sid));
    refused(await refresh(login.refresh_token));
    const client = await addClient(p);
    const { refresh_token } = await apiPair(client);
    await updateClient(p, client.client_id, { status: 'disabled' });
    refused(await refresh(refresh_token, client));
  });
});

describe('a refresh token that this client cannot use', () => {
  it('7.2-02: a token issued more than five minutes in the future is rejected', async () => {
    const claims = apiClaims(p, { token_use: 'refresh' });
    expect((await refresh(signed(p, claims))).status).toBe(200);
    refused(await refresh(signed(p, { ...claims, iat: 1_800_000_301 })));
  });

  it('7.2-02: a token of another client of the node, or used on another node, is rejected', async () => {
    const client = await addClient(p);
    for (const { refresh_token } of [await apiPair(p.demo.client), await loginPair()]) {
      refused(await refresh(refresh_token, client));
      refused(await refresh(refresh_token, p.demo.other_node.client));
    }
  });
});

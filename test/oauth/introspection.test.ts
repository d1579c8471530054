import { randomUUID } from 'node:crypto';
import { decodeJwt } from 'jose';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { beforeTests } from '../support/harness/before-tests.ts';
import { type Answer, startPortcullis } from '../support/harness.ts';
import { addClient, type ClientCredentials, rows, updateClient } from '../support/oauth/clients.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';
import { basicOf, oauthEnvelope, postForm } from '../support/oauth/requests.ts';
import { failSessionReads } from '../support/oauth/session-reads.ts';

const INTROSPECT = '/v2/oauth/introspect';
const DAY_MS = 24 * 3600 * 1000;
const clock = { nowMs: 1_800_000_000_000 };

const p = beforeTests(() => startPortcullis({ overrides: { nowMs: () => clock.nowMs } }));
afterEach(() => {
  clock.nowMs = 1_800_000_000_000;
  vi.restoreAllMocks();
});

async function pairOf(grant: object, client: ClientCredentials = p.demo.client): Promise<Answer['json']> {
  return (await p.call('POST', '/v2/oauth/token', { json: { ...grant, ...client } })).json;
}

const api = (client?: ClientCredentials) => pairOf({ grant_type: 'client_credentials' }, client);
const login = (client?: ClientCredentials) => pairOf({ grant_type: 'password', ...p.demo.supervisor }, client);

function introspect(token: string, client: ClientCredentials = p.demo.client): Promise<Answer> {
  return postForm(p, INTROSPECT, { token, token_type_hint: 'refresh_token' }, basicOf(client));
}

async function told(token: string, client?: ClientCredentials): Promise<Answer['json']> {
  const { status, headers, json } = await introspect(token, client);
  expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
  return json;
}

async function inactive(token: string, client?: ClientCredentials): Promise<void> {
  const { status, text } = await introspect(token, client);
  expect([status, text]).toEqual([200, '{"active":false}']);
}

describe('introspection of a valid token', () => {
  it('D3-12: returns the claims of a client token', async () => {
    const { access_token } = await api();
    const { scope, client_id, exp, iat, sub, aud, iss, jti } = decodeJwt(access_token);
    const expected = { scope, token_type: 'Bearer', client_id, exp, iat, sub, aud, iss, jti, token_use: 'api' };
    expect(await told(access_token)).toEqual({ active: true, ...expected });
    expect(sub).toBe(p.demo.client.client_id);
  });

  it('D3-12: returns the username of a login token', async () => {
    const { access_token, refresh_token } = await login();
    const { username } = p.demo.supervisor;
    const expected = { active: true, username, token_type: 'Bearer', token_use: 'login' };
    expect(await told(access_token)).toMatchObject(expected);
    const refresh = await told(refresh_token);
    expect(refresh).toMatchObject({ active: true, username, token_use: 'refresh' });
    expect(refresh).not.toHaveProperty('token_type');
  });

  it('D3-12: returns no exp for a token without expiry', async () => {
    const client = await addClient(p, { token_expiry_enabled: false });
    const { access_token, refresh_token } = await api(client);
    for (const token of [access_token, refresh_token]) {
      const answer = await told(token, client);
      expect(answer).toMatchObject({ active: true, scope: 'accounts:read wallets:read' });
      expect(answer).not.toHaveProperty('exp');
    }
  });

  it('D3-12: is allowed for every client of the node of the token, also with a JSON body', async () => {
    const { access_token } = await api();
    const other = await addClient(p);
    expect(await told(access_token, other)).toMatchObject({ active: true, client_id: p.demo.client.client_id });
    const { json } = await p.call('POST', INTROSPECT, { json: { token: access_token, ...other } });
    expect(json.active).toBe(true);
  });

  it('D3-12 D2-17: returns the claims of a legacy token', async () => {
    const { current } = p.service.context.secrets.jwt.legacy;
    const token = signed(p, { sub: 'node-7', aud: p.demo.node_id, scope: 'accounts:read' }, { secret: current });
    const expected = { scope: 'accounts:read', token_type: 'Bearer', sub: 'node-7', aud: p.demo.node_id };
    expect(await told(token)).toEqual({ active: true, ...expected, token_use: 'api' });
  });

  it('D3-12 D3-24: returns an empty scope for a forgot-password token', async () => {
    const token = signed(p, apiClaims(p, { token_use: 'forgot_password' }));
    expect(await told(token)).toMatchObject({ active: true, scope: '', token_use: 'forgot_password' });
  });

  it('D3-12 D3-21: returns active for a refresh token without iat until ten seconds after it was used', async () => {
    const client = await addClient(p);
    const { client_id } = client;
    const refresh_token = signed(p, { sub: client_id, client_id });
    expect(await told(refresh_token)).toEqual({ active: true, sub: client_id, client_id, token_use: 'refresh' });
    await pairOf({ grant_type: 'refresh_token', refresh_token }, client);
    expect(await told(refresh_token)).toMatchObject({ active: true });
    clock.nowMs += 10_001;
    await inactive(refresh_token);
  });
});

describe('introspection of a token that is not valid', () => {
  it('D3-29: a token of another node is inactive', async () => {
    for (const { access_token, refresh_token } of [await api(), await login()]) {
      await inactive(access_token, p.demo.other_node.client);
      await inactive(refresh_token, p.demo.other_node.client);
    }
  });

  it('D3-12: a token without a known subject or session, or of a class without introspection, is inactive', async () => {
    const { discover, legacy } = p.service.context.secrets.jwt;
    for (const token of [
      'x'.repeat(50_000),
      signed(p, apiClaims(p), { secret: discover.current }),
      signed(p, apiClaims(p, { token_use: 'refresh' }), { secret: legacy.current }),
      ...[{ token_use: 'login' }, { token_use: 'refresh' }].map((use) =>
        signed(p, apiClaims(p, { ...use, sid: randomUUID() })),
      ),
      signed(p, apiClaims(p, { token_use: 'refresh', sub: randomUUID() })),
    ]) {
      await inactive(token);
    }
  });

  it('D3-12: an expired token is inactive', async () => {
    const [{ access_token, refresh_token }, endless] = [
      await login(),
      await api(await addClient(p, { token_expiry_enabled: false })),
    ];
    clock.nowMs += 900_000;
    await inactive(access_token);
    expect(await told(refresh_token)).toMatchObject({ active: true });
    clock.nowMs += 30 * DAY_MS;
    await inactive(refresh_token);
    clock.nowMs += 336 * DAY_MS;
    await inactive(endless.refresh_token);
    expect(await told(endless.access_token)).toMatchObject({ active: true });
  });

  it('D3-12 D3-22: a revoked access token and a revoked refresh token are inactive', async () => {
    const revoke = (token: string) => postForm(p, '/v2/oauth/revoke', { token }, basicOf(p.demo.client));
    for (const pair of [await api(), await login()]) {
      await revoke(pair.access_token);
      await inactive(pair.access_token);
      expect(await told(pair.refresh_token)).toMatchObject({ active: true });
      await revoke(pair.refresh_token);
      await inactive(pair.refresh_token);
    }
  });

  it('D3-12 D3-20: a used refresh token with reuse detection is inactive', async () => {
    const client = await addClient(p, { refresh_reuse_detection: true });
    const { refresh_token } = await api(client);
    await pairOf({ grant_type: 'refresh_token', refresh_token }, client);
    clock.nowMs += 10_001;
    await inactive(refresh_token);
  });

  it('D3-12 D3-07: a token of a disabled client or supervisor is inactive', async () => {
    const client = await addClient(p);
    const pairs = [await api(client), await login(client)];
    await updateClient(p, client.client_id, { status: 'disabled' });
    p.service.context.directory.forget(client.client_id);
    for (const { access_token, refresh_token } of pairs) {
      await inactive(access_token);
      await inactive(refresh_token);
    }
    const { refresh_token } = await login();
    const id = String(decodeJwt(refresh_token).sub);
    const setStatus = (status: 'active' | 'disabled') =>
      rows(p).run((k) => k.updateTable('supervisors').set({ status }).where('id', '=', id));
    await setStatus('disabled');
    await inactive(refresh_token);
    await setStatus('active');
    expect(await told(refresh_token)).toMatchObject({ active: true });
  });
});

it('5.1-05 D3-12: introspection of a login returns 503 while sessions cannot be read', async () => {
  const { access_token } = await login();
  failSessionReads(p);
  const answer = await introspect(access_token);
  expect([answer.status, answer.text]).toEqual([503, oauthEnvelope('service_unavailable', 'temporarily_unavailable')]);
});

import { randomUUID } from 'node:crypto';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import { describe, expect, it } from 'vitest';
import { envelope } from '../support/gateway/envelopes.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { type Answer, startPortcullis } from '../support/harness.ts';
import { cheapHash } from '../support/oauth/cheap-hash.ts';
import { addClient, addSecret, rows, updateClient } from '../support/oauth/clients.ts';

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const MEMBERS = ['access_token', 'refresh_token', 'expires_in', 'token_type', 'scope', 'created_at'];
const COMMON = ['iss', 'sub', 'aud', 'iat', 'exp', 'jti', 'scope', 'client_id', 'token_use'];
const READS = ['accounts', 'wallets', 'wallet-rules', 'users', 'transactions', 'tokens'].map((name) => `${name}:read`);
const AT = 1_800_000_000;

const p = beforeTests(() => startPortcullis({ overrides: { nowMs: () => AT * 1000 + 700 } }));

function ask(json: object, headers: Record<string, string> = {}): Promise<Answer> {
  return p.call('POST', '/v2/oauth/token', { json, headers });
}

const byClient = (client: object) => ask({ grant_type: 'client_credentials', ...client });
const byPassword = (client: object = p.demo.client) => ask({ grant_type: 'password', ...client, ...p.demo.supervisor });

describe('the token response', () => {
  it.each([
    ['password', () => byPassword()],
    ['client_credentials', () => byClient(p.demo.client)],
    ['refresh_token', async () => refreshed(await byClient(p.demo.client))],
  ])(
    '2.1-01 2.1-03 2.1-05 2.1-07 D3-05 4.1-01: the response to %s has exactly the documented members',
    async (_grant, answerOf) => {
      const { status, headers, json } = await answerOf();
      expect(status).toBe(200);
      expect(Object.keys(json)).toEqual(MEMBERS);
      expect(json.token_type).toBe('Bearer');
      expect(json.created_at).toBe(AT);
      expect(json.expires_in).toBeTypeOf('number');
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('pragma')).toBe('no-cache');
      expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
      for (const token of [json.access_token, json.refresh_token]) expect(decodeJwt(token).iat).toBe(AT);
    },
  );

  it('2.1-02 2.1-04 5.2-01: a login gets 900 seconds, 30 days, and the permissions of the role', async () => {
    const { json } = await byPassword();
    expect(json.expires_in).toBe(900);
    expect(decodeJwt(json.access_token).exp).toBe(AT + 900);
    expect(decodeJwt(json.refresh_token).exp).toBe(AT + 30 * 24 * 3600);
    expect(json.scope.split(' ')).toContain('clients:manage');
    expect(json.scope.split(' ')).toHaveLength(13);
  });

  it.each([
    ['operator', [...READS, 'wallets:write', 'wallet-rules:write', 'users:migrate', 'transactions:write']],
    ['viewer', READS],
    ['unknown', ['']],
  ])('2.1-04: a login with the role %s gets its permissions and no others', async (role, permissions) => {
    const username = `${role}-${randomUUID()}`;
    const row = { id: randomUUID(), node_id: p.demo.node_id, username, role, password_hash: cheapHash('secret') };
    await rows(p).run((k) => k.insertInto('supervisors').values(row));
    const { json } = await ask({ grant_type: 'password', ...p.demo.client, username, password: 'secret' });
    expect(json.scope.split(' ').sort()).toEqual([...permissions].sort());
    expect(decodeJwt(json.access_token).scope).toBe(json.scope);
  });

  it.each([
    [true, 7200, 7200, AT + 7200],
    [true, null, 3600, AT + 3600],
    [true, 1, 1, AT + 1],
    [false, 7200, 7200, undefined],
    [false, null, 3600, undefined],
  ])(
    '2.1-02 2.1-06 5.2-03 D3-03 D3-04: token_expiry {enabled: %s, duration: %s} gives the documented lifetime',
    async (enabled, duration, lifetime, exp) => {
      const client = await addClient(p, { token_expiry_enabled: enabled, token_expiry_duration: duration });
      const { json } = await byClient(client);
      expect(json.expires_in).toBe(lifetime);
      for (const token of [json.access_token, json.refresh_token]) {
        expect(decodeJwt(token).exp).toBe(exp);
        expect('exp' in decodeJwt(token)).toBe(exp !== undefined);
      }
      expect(decodeJwt(json.refresh_token).iat).toBe(AT);
    },
  );

  it('2.1-02 9-02: a login through a client without expiry still gets 900 seconds', async () => {
    const { json } = await byPassword(await addClient(p, { token_expiry_enabled: false, token_expiry_duration: 60 }));
    expect([json.expires_in, decodeJwt(json.access_token).exp]).toEqual([900, AT + 900]);
  });

  it('2.1-04: a request without a known scope gets the scopes of the client, in its order', async () => {
    const client = await addClient(p, { scopes: ['wallets:write', 'accounts:read'] });
    for (const scope of [undefined, null, '', 'admin openid', 7, ['accounts:read']]) {
      const { json } = await byClient({ ...client, scope });
      expect(json.scope).toBe('wallets:write accounts:read');
    }
    expect((await byClient(await addClient(p, { scopes: [] }))).json.scope).toBe('');
  });

  it('4.1-02 D2-18: unknown and null members and query parameters are ignored, and ids may be in upper case', async () => {
    const { client_id, client_secret } = p.demo.client;
    const more = { client_secret, username: null, x: 1 };
    const json = { grant_type: 'client_credentials', client_id: client_id.toUpperCase(), ...more };
    const answer = await p.call('POST', '/v2/oauth/token?grant_type=password&client_id=x', { json });
    expect(answer.status).toBe(200);
    expect(decodeJwt(answer.json.access_token).client_id).toBe(client_id);
  });
});

describe('token claims', () => {
  it('D3-01 D3-02: the claims of an API pair are exactly the documented ones', async () => {
    const { json } = await byClient(p.demo.client);
    const access = decodeJwt(json.access_token);
    const refresh = decodeJwt(json.refresh_token);
    const { client_id } = p.demo.client;
    const common = { iss: p.url, sub: client_id, aud: p.demo.node_id, iat: AT, scope: json.scope, client_id };
    expect(Object.keys(access).sort()).toEqual([...COMMON, 'family'].sort());
    expect(Object.keys(refresh).sort()).toEqual([...COMMON, 'family'].sort());
    expect([access.family, refresh.family]).toEqual([refresh.jti, refresh.jti]);
    expect(access).toMatchObject({ ...common, token_use: 'api' });
    expect(refresh).toMatchObject({ ...common, token_use: 'refresh' });
    expect(access.jti).toMatch(UUID_V7);
    expect(refresh.jti).toMatch(UUID_V7);
    expect(access.jti).not.toBe(refresh.jti);
  });

  it('D3-01 D3-02: the claims of a login pair are exactly the documented ones, with the session', async () => {
    const { json } = await byPassword();
    const access = decodeJwt(json.access_token);
    const refresh = decodeJwt(json.refresh_token);
    expect(Object.keys(access).sort()).toEqual([...COMMON, 'sid'].sort());
    expect(Object.keys(refresh).sort()).toEqual([...COMMON, 'sid'].sort());
    expect([access.token_use, refresh.token_use]).toEqual(['login', 'refresh']);
    expect([access.aud, access.client_id]).toEqual([p.demo.node_id, p.demo.client.client_id]);
    expect(access.sid).toBe(refresh.sid);
    const session = await rows(p).run((k) => k.selectFrom('sessions').selectAll().where('id', '=', String(access.sid)));
    expect(session[0]).toMatchObject({ supervisor_id: access.sub, client_id: access.client_id, revoked_at: null });
  });

  it('2.1-06 D3-01: tokens of a client without expiry lack only exp', async () => {
    const { json } = await byClient(await addClient(p, { token_expiry_enabled: false }));
    expect(Object.keys(decodeJwt(json.access_token)).sort()).toEqual(
      [...COMMON, 'family'].filter((claim) => claim !== 'exp').sort(),
    );
  });

  it('D3-20: a refreshed pair of a client keeps its family, and another grant starts a new family', async () => {
    const first = (await byClient(p.demo.client)).json;
    const second = (await refreshed({ json: first })).json;
    const third = (await refreshed({ json: second })).json;
    const { jti, family } = decodeJwt(first.refresh_token);
    for (const token of [second.access_token, third.access_token, third.refresh_token]) {
      expect(decodeJwt(token).family).toBe(family);
      expect(decodeJwt(token).jti).not.toBe(jti);
    }
    expect(decodeJwt((await byClient(p.demo.client)).json.access_token).family).not.toBe(family);
  });

  it('D3-07: tokens of a client enabled within this second have the next second as iat, so that they are valid', async () => {
    const tokens_from = new Date((AT + 1) * 1000).toISOString();
    const { json } = await byClient(await addClient(p, { tokens_from }));
    expect(json.created_at).toBe(AT + 1);
    expect(decodeJwt(json.access_token)).toMatchObject({ iat: AT + 1, exp: AT + 1 + json.expires_in });
    expect((await p.call('GET', '/v1/accounts', { token: json.access_token })).status).toBe(200);
  });

  it('D3-01: the header contains HS256, JWT and the kid of the user class', async () => {
    const { json } = await byClient(p.demo.client);
    for (const token of [json.access_token, json.refresh_token]) {
      const header = decodeProtectedHeader(token);
      expect(header).toEqual({ alg: 'HS256', typ: 'JWT', kid: expect.stringMatching(/^user\.[0-9a-f]{16}$/) });
    }
  });
});

async function refreshed(first: Pick<Answer, 'json'>): Promise<Answer> {
  return ask({ grant_type: 'refresh_token', ...p.demo.client, refresh_token: first.json.refresh_token });
}

function refused(answer: Answer, status: number, message = 'invalid_request'): void {
  expect(answer.text).toBe(envelope(message));
  expect(answer.status).toBe(status);
  expect(Object.keys(answer.json)).toEqual(['code', 'domain', 'message']);
}

const absent = [undefined, null, ''];
const misshapen = [7, true, {}, ['x'], 'a\u0000b', 'a\ud800b'];

/** The member that is missing or malformed, of a request that is otherwise good. Bodies as a whole are in test/gateway/bad-input.test.ts. */
const members: [string, string, unknown[]][] = [
  ['client_credentials', 'grant_type', [...absent, ...misshapen]],
  ['client_credentials', 'client_id', [...absent, ...misshapen, 'demo', `{${randomUUID()}}`, randomUUID().slice(1)]],
  ['client_credentials', 'client_secret', [...absent, ...misshapen]],
  ['password', 'client_id', [...absent, 'demo']],
  ['password', 'client_secret', absent],
  ['password', 'username', [...absent, ...misshapen]],
  ['password', 'password', [...absent, ...misshapen]],
  ['refresh_token', 'client_id', [...absent, 'demo']],
  ['refresh_token', 'client_secret', absent],
  ['refresh_token', 'refresh_token', [...absent, ...misshapen]],
];

describe('400 invalid_request', () => {
  it.each(members)(
    '7.2-01 2.3-01 4.1-02: %s with a missing or malformed %s is a 400',
    async (grantType, member, values) => {
      const good = { grant_type: grantType, ...p.demo.client, ...p.demo.supervisor, refresh_token: 'x' };
      for (const value of values) refused(await ask({ ...good, [member]: value }), 400);
    },
  );
});

describe('401 invalid_request', () => {
  it('7.2-02 2.3-01 5.3-01: an unknown client and a wrong, foreign or expired secret get the same 401', async () => {
    const { client_id, client_secret } = p.demo.client;
    const dead = await addSecret(p, client_id, p.demo.node_id, '2020-01-01T00:00:00Z');
    const faults = [
      { client_id: randomUUID(), client_secret },
      { client_id, client_secret: `${client_secret}x` },
      { client_id, client_secret: client_secret.toUpperCase() },
      { client_id, client_secret: p.demo.other_node.client.client_secret },
      { client_id: p.demo.other_node.client.client_id, client_secret },
      { client_id, client_secret: dead },
    ];
    for (const grantType of ['client_credentials', 'password', 'refresh_token', 'unheard_of']) {
      for (const fault of faults) {
        refused(await ask({ grant_type: grantType, ...fault, ...p.demo.supervisor, refresh_token: 'x' }), 401);
      }
    }
  });

  it('5.3-01: two valid secrets of a client are both accepted', async () => {
    const { client_id } = p.demo.client;
    const second = await addSecret(p, client_id, p.demo.node_id, '2999-01-01T00:00:00Z');
    for (const client_secret of [second, p.demo.client.client_secret]) {
      expect((await ask({ grant_type: 'client_credentials', client_id, client_secret })).status).toBe(200);
    }
  });

  it('7.2-02: a disabled client gets a 401', async () => {
    const client = await addClient(p);
    await updateClient(p, client.client_id, { status: 'disabled' });
    refused(await ask({ grant_type: 'client_credentials', ...client }), 401);
  });

  it('5.2-02: a supervisor of another node gets a 401, and usernames are matched in any case', async () => {
    const { client, supervisor } = p.demo.other_node;
    expect((await ask({ grant_type: 'password', ...client, ...supervisor })).status).toBe(200);
    refused(await ask({ grant_type: 'password', ...client, ...p.demo.supervisor }), 401);
    const upper = { ...supervisor, username: supervisor.username.toUpperCase() };
    expect((await ask({ grant_type: 'password', ...client, ...upper })).status).toBe(200);
  });
});

describe('403 invalid_request', () => {
  it.each([
    ['password', ['client_credentials', 'refresh_token']],
    ['client_credentials', ['password', 'refresh_token']],
    ['refresh_token', ['password', 'client_credentials']],
    ['client_credentials', []],
  ])('7.2-03 5.2-05: %s by a client whose grants are %j is a 403', async (grantType, grants) => {
    const client = await addClient(p, { grant_types: grants });
    refused(await ask({ grant_type: grantType, ...client, ...p.demo.supervisor, refresh_token: 'x' }), 403);
  });
});

describe('the order of checks at the token endpoint', () => {
  it('D3-10 7.2-01 7.2-02 7.2-03 7.2-04 7.2-05: the earliest failing check determines the error', async () => {
    const settings = { require_certificate: true, cert_fingerprint: 'ab:cd', allowed_ips: ['198.51.100.7'] };
    const client = await addClient(p, { ...settings, grant_types: ['client_credentials'] });
    const login = { grant_type: 'password', username: 'nobody', password: 'wrong' };
    const certificate = { 'ssl-client-fingerprint': 'ab:cd' };
    const address = { ...certificate, 'x-forwarded-for': '198.51.100.7' };
    const wrongSecret = { ...client, client_secret: 'wrong' };
    refused(await ask({ ...login, ...wrongSecret, username: undefined }), 400);
    refused(await ask({ ...login, ...wrongSecret }), 401);
    refused(await ask({ ...login, ...client }), 403, 'mtls_required');
    refused(await ask({ ...login, ...client }, certificate), 403, 'ip_not_allowed');
    const { runs } = p.service.context.passwords;
    refused(await ask({ ...login, ...client }, address), 403);
    expect(p.service.context.passwords.runs).toBe(runs);
    await updateClient(p, client.client_id, { grant_types: ['password'] });
    refused(await ask({ ...login, ...client }, address), 401);
    expect((await ask({ ...login, ...client, ...p.demo.supervisor }, address)).status).toBe(200);
  });
});

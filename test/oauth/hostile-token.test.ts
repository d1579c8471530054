import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { importJwtKeys } from '../../src/access/tokens/jwt-keys.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { openSocket, readAnswer } from '../support/gateway/raw.ts';
import { type Answer, type Portcullis, startPortcullis } from '../support/harness.ts';
import { apiClaims, signed, signedText } from '../support/oauth/jwt.ts';
import { basicOf, postForm } from '../support/oauth/requests.ts';

/** Four characters are three bytes. */
const CUTS = inject('isThorough') ? 8 : 5;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

let p: Portcullis;
let pair: { access_token: string; refresh_token: string };
beforeAll(async () => {
  p = await startPortcullis();
  const json = { grant_type: 'password', ...p.demo.client, ...p.demo.supervisor };
  pair = (await p.call('POST', '/v2/oauth/token', { json })).json;
});
afterAll(() => p[Symbol.asyncDispose]());

/** Every place where a token is shown, and what it says of one that is none. */
const places: [string, (token: string) => Promise<Answer>, number, string][] = [
  ['Authorization', (token) => p.call('GET', '/v1/accounts', { token }), 401, envelope('unauthorized')],
  ['the refresh grant', refresh, 401, envelope('invalid_request')],
  ['introspection', introspect, 200, '{"active":false}'],
  ['revocation', revoke, 200, '{}'],
];

function refresh(refresh_token: string): Promise<Answer> {
  return p.call('POST', '/v2/oauth/token', { json: { grant_type: 'refresh_token', ...p.demo.client, refresh_token } });
}

function introspect(token: string): Promise<Answer> {
  return postForm(p, '/v2/oauth/introspect', { token }, basicOf(p.demo.client));
}

function revoke(token: string): Promise<Answer> {
  return p.call('POST', '/v2/oauth/revoke', { json: { token, ...p.demo.client } });
}

async function stillGood(): Promise<void> {
  expect((await p.call('GET', '/v1/accounts', { token: pair.access_token })).status).toBe(200);
  expect((await introspect(pair.refresh_token)).json.active).toBe(true);
}

describe.each(places.map((place, turn) => [...place, turn] as const))('by %s', (name, show, status, text, turn) => {
  /** In a quick run a token is of the use that is good here, but for what makes it hostile. */
  const uses = inject('isThorough') ? ['api', 'refresh'] : [name === 'Authorization' ? 'api' : 'refresh'];

  async function refused(token: string): Promise<void> {
    const answer = await show(token);
    expect([token.slice(-20), answer.status, answer.text]).toEqual([token.slice(-20), status, text]);
  }

  it('7.6-02 D3-25: a token with any one of its characters changed is none', async () => {
    const token = name === 'Authorization' ? pair.access_token : pair.refresh_token;
    for (let at = 0; at < token.length; at += 1) {
      // In turn at each place, but for the last ones, of which several spellings are one signature.
      if (!inject('isThorough') && (at + turn * 5) % 20 !== 0 && at < token.length - 3) continue;
      const others = [...ALPHABET.replace(token.charAt(at), ''), '.'];
      const other = others[(at * 31) % others.length] ?? '.';
      await refused(`${token.slice(0, at)}${other}${token.slice(at + 1)}`);
    }
    await stillGood();
  });

  it('7.6-02 D3-25: nor one that is cut short, joined or padded', async () => {
    const { access_token, refresh_token } = pair;
    for (const token of [access_token, refresh_token]) {
      const [header = '', payload = '', signature = ''] = token.split('.');
      await refused(`${header}.${payload}.`);
      await refused(`${header}.${payload}`);
      await refused(`${header}..${signature}`);
      await refused(`.${payload}.${signature}`);
      await refused(`${token}.${signature}`);
      for (const end of ['=', '==', 'A', '.', '%3D']) await refused(`${token}${end}`);
      for (let length = 1; length < CUTS; length += 1) await refused(token.slice(0, -length));
    }
    const [[accessHeader, , accessSignature], [, refreshPayload]] = [access_token.split('.'), refresh_token.split('.')];
    await refused(`${accessHeader}.${refreshPayload}.${accessSignature}`);
    await stillGood();
  });

  const headers: [string, Record<string, unknown>][] = [
    ['alg none', { alg: 'none' }],
    ['alg RS256', { alg: 'RS256' }],
    ['alg HS384', { alg: 'HS384' }],
    ['alg dir', { alg: 'dir' }],
    ['an unknown crit', { crit: ['x'], x: 1 }],
    ['an empty crit', { crit: [] }],
    ['a crit that is text', { crit: 'exp' }],
    ['an unencoded payload', { crit: ['b64'], b64: false }],
    ['a kid that is an array', { kid: ['user.0123456789abcdef'] }],
    ['a kid that is a number', { kid: 0 }],
    ['a kid that is null', { kid: null }],
    ['a kid that is an object', { kid: {} }],
    ['an empty kid', { kid: '' }],
    ['an unknown kid', { kid: 'user.0000000000000000' }],
    ['the kid of a path', { kid: '../../dev/null' }],
  ];

  it.each(headers)('7.6-02 D3-01: nor one with %s', async (_name, header) => {
    for (const token_use of uses) await refused(signed(p, apiClaims(p, { token_use }), { header }));
  });

  it('7.6-02 D3-01 D3-24: nor one with the kid of another class, or one like it', async () => {
    const keys = await otherKeys();
    for (const token_use of uses) {
      for (const { keyId: kid } of keys) {
        await refused(signed(p, apiClaims(p, { token_use }), { header: { kid } }));
        await refused(signed(p, apiClaims(p, { token_use }), { header: { kid: `${kid}x` } }));
      }
    }
  });

  const payloads: [string, (good: string) => string][] = [
    ['an infinite exp', (good) => good.replace(/"exp":\d+/, '"exp":1e400')],
    ['an exp of minus infinity', (good) => good.replace(/"exp":\d+/, '"exp":-1e400')],
    ['a negative exp', (good) => good.replace(/"exp":\d+/, '"exp":-1')],
    ['an exp that is text', (good) => good.replace(/"exp":(\d+)/, '"exp":"$1"')],
    ['an exp that is NaN', (good) => good.replace(/"exp":\d+/, '"exp":NaN')],
    ['an exp that is an array', (good) => good.replace(/"exp":(\d+)/, '"exp":[$1]')],
    ['an exp that is true', (good) => good.replace(/"exp":\d+/, '"exp":true')],
    ['an iat that is text', (good) => good.replace(/"iat":(\d+)/, '"iat":"$1"')],
    ['an iat that is null', (good) => good.replace(/"iat":\d+/, '"iat":null')],
    ['an iat that is an object', (good) => good.replace(/"iat":\d+/, '"iat":{}')],
    ['a second exp that is over', (good) => good.replace(/}$/, ',"exp":1}')],
    ['a sub that is an object', (good) => good.replace(/"sub":"[^"]+"/, '"sub":{"a":1}')],
    ['an aud that is an object', (good) => good.replace(/"aud":"([^"]+)"/, '"aud":{"0":"$1"}')],
    ['an aud in a list', (good) => good.replace(/"aud":"([^"]+)"/, '"aud":["$1"]')],
    ['another aud', (good) => good.replace(/"aud":"[^"]+"/, `"aud":"${randomUUID()}"`)],
    ['a client_id that is a number', (good) => good.replace(/"client_id":"[^"]+"/, '"client_id":7')],
    ['a jti that is a number', (good) => good.replace(/"jti":"[^"]+"/, '"jti":7')],
    ['a family that is a list', (good) => good.replace(/}$/, ',"family":["x"]}')],
    ['a sid that is a number', (good) => good.replace(/}$/, ',"sid":7}')],
    ['a list around it', (good) => `[${good}]`],
    ['text around it', (good) => JSON.stringify(good)],
    ['a number', () => '7'],
    ['nothing', () => ''],
    ['two objects', (good) => `${good}${good}`],
    ['3,000 levels', () => `${'['.repeat(3_000)}${']'.repeat(3_000)}`],
    ['an open end', (good) => good.slice(0, -1)],
    ['a NUL behind it', (good) => `${good}\0`],
  ];

  it.each(payloads)('7.6-02 D3-01: nor a signed one with %s for claims', async (_name, changed) => {
    for (const token_use of uses) {
      await refused(signedText(p, changed(JSON.stringify(apiClaims(p, { token_use })))));
    }
  });
});

/** The keys of the classes that are not the token endpoint's. */
async function otherKeys() {
  const { jwt } = p.service.context.secrets;
  const { byKeyId } = await importJwtKeys(jwt);
  const others = [...byKeyId.values()].filter(({ tokenClass }) => tokenClass !== 'user');
  return others.map(({ keyId, tokenClass }) => ({
    keyId,
    secret: jwt[tokenClass].current,
  }));
}

describe('a token of many bytes', () => {
  it.each([20_000, 100 * 1024, 150 * 1024])('7.6-02: %i of them are a 401, whatever they are', async (bytes) => {
    const long = signed(p, apiClaims(p, { scope: 'x'.repeat(Math.floor(bytes * 0.75)) }));
    for (const token of [long, 'a'.repeat(bytes), '.'.repeat(bytes), `${'a.'.repeat(bytes / 2)}a`]) {
      const answer = await p.call('GET', '/v1/accounts', { token });
      expect([answer.status, answer.text]).toEqual([401, envelope('unauthorized')]);
    }
  });

  it('7.6-02: more than any header may have is a 400, and the connection ends', async () => {
    const socket = openSocket(p.url);
    socket.write(`GET /v1/accounts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${'a'.repeat(200 * 1024)}\r\n\r\n`);
    const answer = await readAnswer(socket);
    expect([answer.status, JSON.parse(answer.body).message]).toEqual([400, 'invalid_request']);
    expect((await p.call('GET', '/v1/accounts', { token: pair.access_token })).status).toBe(200);
  });
});

it('D3-02: an access token is no refresh token, nor the reverse, by either name', async () => {
  const [access, refreshed] = [await refresh(pair.access_token), await refresh(pair.refresh_token)];
  expect([access.status, refreshed.status]).toEqual([401, 200]);
  const answer = await p.call('GET', '/v1/accounts', { token: pair.refresh_token });
  expect([answer.status, answer.text]).toEqual([401, envelope('unauthorized')]);
});

import { rm } from 'node:fs/promises';
import { decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newDataDir, type Portcullis, startPortcullis } from '../support/harness.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';

const NEW_USER = 'the secret of user tokens that comes next';
const NEW_LEGACY = 'the secret of legacy tokens that comes next';
const NEW_PEPPER = 'the pepper of client secrets that comes next';

let dataDir: string;
let before: Awaited<ReturnType<typeof firstInstance>>['before'];
let p: Portcullis;

/** What an instance gave out before its secrets were rotated, with the variables that rotate them. */
async function firstInstance() {
  await using first = await startPortcullis({ dataDir });
  const { jwt, pepper } = first.service.context.secrets;
  const grant = { grant_type: 'password', ...first.demo.client, ...first.demo.supervisor };
  const login = (await first.call('POST', '/v2/oauth/token', { json: grant })).json;
  const api = await first.clientToken();
  const before = {
    api,
    login: login.access_token,
    refresh: login.refresh_token,
    legacy: signed(first, apiClaims(first), { secret: jwt.legacy.current }),
    keyId: decodeProtectedHeader(api).kid,
  };
  const env = {
    JWT_SECRET_USER: NEW_USER,
    JWT_SECRET_USER_PREVIOUS: jwt.user.current,
    JWT_SECRET_LEGACY: NEW_LEGACY,
    JWT_SECRET_LEGACY_PREVIOUS: jwt.legacy.current,
    SECRET_PEPPER: NEW_PEPPER,
    SECRET_PEPPER_PREVIOUS: pepper.current,
  };
  return { before, env };
}

beforeAll(async () => {
  dataDir = await newDataDir();
  const first = await firstInstance();
  before = first.before;
  p = await startPortcullis({ dataDir, env: first.env });
});
afterAll(async () => {
  await p[Symbol.asyncDispose]();
  await rm(dataDir, { recursive: true, force: true });
});

async function statusOf(token: string): Promise<number> {
  return (await p.call('GET', '/v1/accounts', { token })).status;
}

describe('while the secrets are rotated', () => {
  it('D3-27: tokens of the earlier secrets still pass, sessions and all', async () => {
    expect([await statusOf(before.api), await statusOf(before.login), await statusOf(before.legacy)]).toEqual([
      200, 200, 200,
    ]);
  });

  it('D3-27: a client secret stored under the earlier pepper is still good, and so is a refresh token', async () => {
    const json = { grant_type: 'refresh_token', ...p.demo.client, refresh_token: before.refresh };
    expect((await p.call('POST', '/v2/oauth/token', { json })).status).toBe(200);
  });

  it('D3-27: new tokens are signed by the new secret, and named so', async () => {
    const token = await p.clientToken();
    const { kid } = decodeProtectedHeader(token);
    expect(kid).toMatch(/^user\./);
    expect(kid).not.toBe(before.keyId);
    expect(await statusOf(token)).toBe(200);
    for (const secret of [NEW_USER, NEW_LEGACY]) expect(await statusOf(signed(p, apiClaims(p), { secret }))).toBe(200);
  });

  it('D3-01: a key id spares the trial: a good signature under the name of the other key is a 401', async () => {
    expect(await statusOf(signed(p, apiClaims(p), { secret: NEW_USER, header: { kid: before.keyId } }))).toBe(401);
  });
});

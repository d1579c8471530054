import { decodeProtectedHeader } from 'jose';
import { describe, expect, it } from 'vitest';
import { hashClientSecret } from '../../src/access/clients/clients.service.ts';
import { importJwtKeys } from '../../src/access/tokens/token-authenticator.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startPortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';

const USER_BEFORE = 'the secret of user tokens that came before';
const PEPPER_BEFORE = 'the pepper of client secrets that came before';

const p = beforeTests(() =>
  startPortcullis({ env: { JWT_SECRET_USER_PREVIOUS: USER_BEFORE, SECRET_PEPPER_PREVIOUS: PEPPER_BEFORE } }),
);

async function statusOf(token: string): Promise<number> {
  return (await p.call('GET', '/v1/accounts', { token })).status;
}

/** That access tokens of the earlier secrets pass is proven in test/gateway/token-matrix.test.ts. */
describe('during the rotation of secrets', () => {
  it('D3-27: a client secret stored with the previous pepper and a refresh token of the previous secret are accepted', async () => {
    const { client, node_id } = p.demo;
    const client_secret = 'a secret that was stored before';
    const row = { hash: hashClientSecret(PEPPER_BEFORE, client_secret), client_id: client.client_id, node_id };
    await rows(p).run((k) => k.insertInto('client_secrets').values(row));
    const refresh_token = signed(p, apiClaims(p, { token_use: 'refresh' }), { secret: USER_BEFORE });
    const json = { grant_type: 'refresh_token', ...client, client_secret, refresh_token };
    expect((await p.call('POST', '/v2/oauth/token', { json })).status).toBe(200);
  });

  it('D3-27 D3-01: new tokens carry the kid of the new secret; the kid of another key with a valid signature is a 401', async () => {
    const token = await p.clientToken();
    const { kid } = decodeProtectedHeader(token);
    const { jwt } = p.service.context.secrets;
    const keys = [...(await importJwtKeys(jwt)).byKeyId.values()].filter(({ tokenClass }) => tokenClass === 'user');
    const other = keys.map(({ keyId }) => keyId).filter((keyId) => keyId !== kid);
    expect([keys.length, other.length, await statusOf(token)]).toEqual([2, 1, 200]);
    const sign = (name?: string) =>
      signed(p, apiClaims(p), { secret: jwt.user.current, header: name === undefined ? {} : { kid: name } });
    expect([await statusOf(sign()), await statusOf(sign(kid)), await statusOf(sign(other[0]))]).toEqual([
      200, 200, 401,
    ]);
  });
});

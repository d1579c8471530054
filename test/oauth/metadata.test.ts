import { decodeJwt } from 'jose';
import { expect, it } from 'vitest';
import { PERMISSIONS } from '../../src/access/identity/permissions.rules.ts';
import { startPortcullis } from '../support/harness.ts';

const PATH = '/.well-known/oauth-authorization-server';

it.each([
  ['https://gateway.example', 'https://gateway.example'],
  ['https://gateway.example/api', 'https://gateway.example/api'],
])('D3-12: the metadata of %s names it as issuer, and endpoints below it', async (issuer, base) => {
  await using p = await startPortcullis({ env: { PUBLIC_URL: issuer } });
  const { status, headers, json } = await p.call('GET', PATH);
  expect([status, headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
  expect(headers.get('cache-control')).toBe('public, max-age=3600');
  const methods = ['client_secret_basic', 'client_secret_post'];
  expect(json).toEqual({
    issuer,
    token_endpoint: `${base}/v2/oauth/token`,
    token_endpoint_auth_methods_supported: methods,
    grant_types_supported: ['password', 'client_credentials', 'refresh_token'],
    response_types_supported: [],
    scopes_supported: PERMISSIONS,
    revocation_endpoint: `${base}/v2/oauth/revoke`,
    revocation_endpoint_auth_methods_supported: methods,
    introspection_endpoint: `${base}/v2/oauth/introspect`,
    introspection_endpoint_auth_methods_supported: methods,
  });
  expect(decodeJwt(await p.clientToken()).iss).toBe(issuer);
});

it('D3-12: without PUBLIC_URL the issuer is where the instance listens, and the endpoints answer', async () => {
  await using p = await startPortcullis();
  const { json } = await p.call('GET', PATH);
  expect(json.issuer).toBe(p.url);
  for (const name of ['token', 'revocation', 'introspection']) {
    const response = await fetch(json[`${name}_endpoint`], { method: 'POST' });
    expect([400, 401]).toContain(response.status);
  }
});

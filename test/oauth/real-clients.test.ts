import { createSecretKey } from 'node:crypto';
import { jwtVerify } from 'jose';
import jsonwebtoken from 'jsonwebtoken';
import * as oauth from 'oauth4webapi';
import * as openid from 'openid-client';
import { ClientCredentials, ResourceOwnerPassword } from 'simple-oauth2';
import { describe, expect, it } from 'vitest';
import { usePortcullis } from '../support/harness.ts';
import { addClient } from '../support/oauth/clients.ts';

const p = usePortcullis();

const insecure = { [oauth.allowInsecureRequests]: true };

async function statusOf(token: unknown): Promise<number> {
  return (await p.call('GET', '/v1/accounts', { token: String(token) })).status;
}

describe('simple-oauth2', () => {
  const ways = [
    ['Basic', { authorizationMethod: 'header' }],
    ['Basic, loosely encoded', { authorizationMethod: 'header', credentialsEncodingMode: 'loose' }],
    ['a form', { authorizationMethod: 'body', bodyFormat: 'form' }],
    ['JSON', { authorizationMethod: 'body', bodyFormat: 'json' }],
  ] as const;
  const settings = (options: (typeof ways)[number][1]) => ({
    client: { id: p.demo.client.client_id, secret: p.demo.client.client_secret },
    auth: { tokenHost: p.url, tokenPath: '/v2/oauth/token', revokePath: '/v2/oauth/revoke' },
    options,
  });

  it.each(ways)('4.1-01 D3-11: gets a token for a client by %s', async (_, options) => {
    const access = await new ClientCredentials(settings(options)).getToken({});
    expect(access.expired()).toBe(false);
    expect(await statusOf(access.token.access_token)).toBe(200);
  });

  it.each(ways)('D3-11 5.2-04: logs in, refreshes and logs out by %s', async (_, options) => {
    const first = await new ResourceOwnerPassword(settings(options)).getToken(p.demo.supervisor);
    const second = await first.refresh();
    expect(second.token.access_token).not.toBe(first.token.access_token);
    expect(await statusOf(second.token.access_token)).toBe(200);
    await second.revokeAll();
    expect(await statusOf(second.token.access_token)).toBe(401);
    await expect(second.refresh()).rejects.toMatchObject({ output: { statusCode: 401 } });
  });
});

describe('oauth4webapi', () => {
  async function server(): Promise<oauth.AuthorizationServer> {
    const issuer = new URL(p.url);
    const response = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure });
    return oauth.processDiscoveryResponse(issuer, response);
  }
  const authentications = [
    ['client_secret_basic', oauth.ClientSecretBasic],
    ['client_secret_post', oauth.ClientSecretPost],
  ] as const;

  it.each(authentications)('D3-11 D3-12: discovers, gets, introspects, refreshes and revokes by %s', async (_, by) => {
    const as = await server();
    const { client_id, client_secret } = p.demo.client;
    const [client, auth] = [{ client_id }, by(client_secret)];
    const granted = await oauth.processClientCredentialsResponse(
      as,
      client,
      await oauth.clientCredentialsGrantRequest(as, client, auth, {}, insecure),
    );
    expect(granted.token_type).toBe('bearer');
    const introspect = async (token: string) =>
      oauth.processIntrospectionResponse(
        as,
        client,
        await oauth.introspectionRequest(as, client, auth, token, insecure),
      );
    expect(await introspect(granted.access_token)).toMatchObject({ active: true, client_id, scope: granted.scope });
    const refreshed = await oauth.processRefreshTokenResponse(
      as,
      client,
      await oauth.refreshTokenGrantRequest(as, client, auth, granted.refresh_token ?? '', insecure),
    );
    expect(await statusOf(refreshed.access_token)).toBe(200);
    const revoked = await oauth.revocationRequest(as, client, auth, refreshed.access_token, insecure);
    expect(await oauth.processRevocationResponse(revoked)).toBeUndefined();
    expect(await introspect(refreshed.access_token)).toEqual({ active: false });
    expect(await statusOf(refreshed.access_token)).toBe(401);
  });

  it('D3-11: receives the error codes of RFC 6749', async () => {
    const as = await server();
    const narrow = await addClient(p, { grant_types: ['refresh_token'] });
    const client = { client_id: narrow.client_id };
    const ask = async (secret: string) =>
      oauth.processClientCredentialsResponse(
        as,
        client,
        await oauth.clientCredentialsGrantRequest(as, client, oauth.ClientSecretPost(secret), {}, insecure),
      );
    await expect(ask(narrow.client_secret)).rejects.toMatchObject({ status: 403, error: 'unauthorized_client' });
    await expect(ask('wrong')).rejects.toMatchObject({ status: 401, error: 'invalid_client' });
  });
});

describe('openid-client', () => {
  it('D3-12: gets a token for itself, has it introspected, and revokes it', async () => {
    const { client_id, client_secret } = p.demo.client;
    const options = { algorithm: 'oauth2' as const, execute: [openid.allowInsecureRequests] };
    const by = openid.ClientSecretBasic(client_secret);
    const config = await openid.discovery(new URL(p.url), client_id, client_secret, by, options);
    const tokens = await openid.clientCredentialsGrant(config);
    expect(tokens.expiresIn()).toBeGreaterThan(0);
    expect(await openid.tokenIntrospection(config, tokens.access_token)).toMatchObject({ active: true });
    await openid.tokenRevocation(config, tokens.access_token);
    expect(await statusOf(tokens.access_token)).toBe(401);
  });
});

describe('tokens read by JWT libraries', () => {
  it('D3-01: jose and jsonwebtoken verify them with the raw bytes of the secret', async () => {
    const token = await p.clientToken();
    const secret = p.service.context.secrets.jwt.user.current;
    const options = { issuer: p.url, audience: p.demo.node_id, subject: p.demo.client.client_id };
    const { payload } = await jwtVerify(token, createSecretKey(Buffer.from(secret)), {
      ...options,
      algorithms: ['HS256'],
    });
    expect(jsonwebtoken.verify(token, secret, { ...options, algorithms: ['HS256'] })).toEqual(payload);
    expect(() => jsonwebtoken.verify(token, 'another secret of at least thirty-two bytes')).toThrow(
      'invalid signature',
    );
  });
});

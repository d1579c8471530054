import { decodeJwt } from 'jose';
import * as oauth from 'oauth4webapi';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PERMISSIONS } from '../../src/access/identity/permissions.rules.ts';
import { startStrippingProxy } from '../support/gateway/stripping-proxy.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { inTurn } from '../support/harness/in-turn.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { limit } from '../support/wallet-rules/rules.ts';
import { basic, notification } from '../support/webhook/fixture.ts';

const PREFIX = '/custody';
const METADATA = '/.well-known/oauth-authorization-server';

const proxy = beforeTests(() => startStrippingProxy(PREFIX));
let p: Portcullis;
let base: string;
beforeAll(async () => {
  base = `${proxy.origin}${PREFIX}`;
  p = await startPortcullis({ env: { PUBLIC_URL: base, CONSOLE: 'on' } });
  proxy.lead(p.url);
});
afterAll(async () => {
  await p[Symbol.asyncDispose]();
});

const insecure = { [oauth.allowInsecureRequests]: true };

/** Asks for an address as a client does that got it in a response from another. */
function follow(from: string, to: string | null, init: RequestInit = {}): Promise<Response> {
  return fetch(new URL(to ?? '', from), { redirect: 'manual', ...init });
}

describe('a public URL with a path', () => {
  it('D1-15 D3-12: a client discovers the metadata as RFC 8414 says, gets a token and introspects it', async () => {
    const issuer = new URL(base);
    const response = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure });
    expect(proxy.asked.at(-1)).toBe(`${METADATA}${PREFIX}`);
    const as = await oauth.processDiscoveryResponse(issuer, response);
    const { client_id, client_secret } = p.demo.client;
    const [client, auth] = [{ client_id }, oauth.ClientSecretBasic(client_secret)];
    const granted = await oauth.processClientCredentialsResponse(
      as,
      client,
      await oauth.clientCredentialsGrantRequest(as, client, auth, {}, insecure),
    );
    const introspection = await oauth.introspectionRequest(as, client, auth, granted.access_token, insecure);
    expect(await introspection.json()).toMatchObject({ active: true, iss: base });
  });

  it('D1-15 D2-15: the metadata is served at both URLs, and at no other', async () => {
    const [own, known] = await Promise.all([p.call('GET', METADATA), p.call('GET', `${METADATA}${PREFIX}`)]);
    expect([own.status, known.status, known.text]).toEqual([200, 200, own.text]);
    expect(known.headers.get('cache-control')).toBe('public, max-age=3600');
    for (const path of [
      `${METADATA}/`,
      `${METADATA}${PREFIX}/`,
      `${METADATA}/other`,
      `${METADATA}${PREFIX}/x`,
      `${METADATA}/Custody`,
      `${METADATA}/%2Fcustody`,
      `${PREFIX}${METADATA}`,
      '/.well-known/custody',
    ]) {
      expect([path, (await p.call('GET', path)).status]).toEqual([path, 404]);
    }
    expect((await p.call('POST', `${METADATA}${PREFIX}`)).status).toBe(404);
    const resource = await p.call('GET', `/.well-known/oauth-protected-resource${PREFIX}/v2/mcp`);
    expect(resource.json.resource).toBe(`${own.json.issuer}/v2/mcp`);
    const aimed = (service: string) => ({ headers: { 'x-target-server': service } });
    expect((await p.call('GET', `${METADATA}${PREFIX}`, aimed('integration'))).status).toBe(200);
    expect((await p.call('GET', `${METADATA}${PREFIX}`, aimed('accounts'))).status).toBe(404);
    expect((await p.call('GET', `${METADATA}/%63ustod%79`)).text).toBe(own.text);
  });

  it('D1-15 D5-05: the Location of a rule includes the path, also for a repeated idempotency key', async () => {
    const rule = limit({ network_id: p.demo.network_id, network_currency_id: p.demo.network_currency_id });
    const from = `${base}/v1/wallets/${p.demo.wallet_id}/rules`;
    const headers = { authorization: `Bearer ${await p.clientToken()}`, 'content-type': 'application/json' };
    const post = { method: 'POST', body: JSON.stringify(rule), headers: { ...headers, 'idempotency-key': 'below' } };
    const locations = [await fetch(from, post), await fetch(from, post)].map((made) => made.headers.get('location'));
    expect(locations[0]).toMatch(new RegExp(`^${PREFIX}/v1/wallets/${p.demo.wallet_id}/rules/[0-9a-f-]{36}$`));
    expect(locations[1]).toBe(locations[0]);
    const replaced = await follow(from, locations[0] ?? null, { method: 'PUT', body: post.body, headers });
    expect(replaced.status).toBe(200);
  });

  it('D1-15: the Link of the alias leads to its successor, also in a rejection', async () => {
    const { username, password } = p.webhook;
    for (const secret of [password, 'wrong']) {
      const headers = { authorization: basic(username, secret), 'content-type': 'application/json' };
      const post = { method: 'POST', body: JSON.stringify(notification()), headers };
      const { headers: given } = await fetch(`${base}/v2/webhooks`, post);
      const [, successor = ''] = /^<([^>]+)>; rel="successor-version"$/.exec(given.get('link') ?? '') ?? [];
      expect(successor).toBe(`${PREFIX}/v2/webhooks/custodial`);
      expect((await follow(base, successor, post)).status).toBe(secret === password ? 200 : 401);
    }
  });

  it.each([
    ['/console', '/console/'],
    ['/swagger', '/swagger/'],
  ])('D1-15: %s redirects to its page, whose files are below the path', async (path, page) => {
    const answer = await follow(base, `${PREFIX}${path}`);
    expect([answer.status, answer.headers.get('location')]).toEqual([308, `${PREFIX}${page}`]);
    const shown = await follow(base, answer.headers.get('location'));
    const html = await shown.text();
    const files = [...html.matchAll(/(?:src|href)="([^"]+)"|"(\.\/packages\/[^"]+\.js)"/g)].map(
      ([, a, b]) => a ?? b ?? '',
    );
    expect(files.length).toBeGreaterThan(2);
    for (const file of files) {
      expect([file, (await follow(shown.url, file)).status]).toEqual([file, 200]);
    }
  });

  it('D1-15 DG-04: GraphiQL sends its operations to the path', async () => {
    const page = await fetch(`${base}/graphql`, { headers: { accept: 'text/html' } });
    expect(await page.text()).toContain(`"endpoint":"${PREFIX}/graphql"`);
  });

  it('D1-15 D8-02: the OpenAPI document names the server, and the token endpoint below the path', async () => {
    const { servers, components } = (await p.call('GET', '/swagger/openapi.json')).json;
    expect(servers).toEqual([{ url: base }]);
    for (const { tokenUrl, refreshUrl } of Object.values<Record<string, string>>(
      components.securitySchemes.oauth2.flows,
    )) {
      for (const url of [tokenUrl, refreshUrl]) expect(new URL(url ?? '', base).href).toBe(`${base}/v2/oauth/token`);
    }
  });

  it('D1-15 4.9-06: an MCP client that uses the public URL is served', async () => {
    const headers = { authorization: `Bearer ${p.demo.client.client_secret}`, 'content-type': 'application/json' };
    const body = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
    expect((await fetch(`${base}/v2/mcp`, { method: 'POST', headers, body })).status).toBe(200);
  });
});

describe('other public URLs', () => {
  const others: [url: string, path: string][] = [
    ['https://api.example.com/a/b', '/a/b'],
    ['https://api.example.com:8443/', ''],
    ['https://api.example.com/x.y_z-1~', '/x.y_z-1~'],
    ['https://api.example.com/a%20b', '/a%20b'],
  ];
  it.each(inTurn(others, 2, 1))('D1-15 D3-12: with %s the paths begin with "%s"', async (url, path) => {
    await using instance = await startPortcullis({ env: { PUBLIC_URL: url } });
    const known = await instance.call('GET', `${METADATA}${path}`);
    const issuer = url.replace(/\/$/, '');
    expect([known.status, known.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    const methods = ['client_secret_basic', 'client_secret_post'];
    const endpoints = ['revocation', 'introspection'].flatMap((name) => [
      [`${name}_endpoint`, `${issuer}/v2/oauth/${name === 'revocation' ? 'revoke' : 'introspect'}`],
      [`${name}_endpoint_auth_methods_supported`, methods],
    ]);
    expect(known.json).toEqual({
      ...{ issuer, token_endpoint: `${issuer}/v2/oauth/token`, token_endpoint_auth_methods_supported: methods },
      grant_types_supported: ['password', 'client_credentials', 'refresh_token'],
      ...{ response_types_supported: [], scopes_supported: PERMISSIONS },
      ...Object.fromEntries(endpoints),
    });
    const { client, wallet_id, network_id, network_currency_id } = instance.demo;
    const token = await instance.clientToken(client);
    const json = limit({ network_id, network_currency_id });
    const made = await instance.call('POST', `/v1/wallets/${wallet_id}/rules`, { token, json });
    expect(decodeJwt(token).iss).toBe(issuer);
    expect(made.headers.get('location')).toMatch(new RegExp(`^${path}/v1/wallets/${wallet_id}/rules/[0-9a-f-]{36}$`));
  });
});

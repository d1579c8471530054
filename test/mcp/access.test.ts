import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { TOOLS } from '../../src/app/tools.ts';
import { recordOf } from '../support/audit/records.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import type { Portcullis } from '../support/harness.ts';
import { callOf, connect, post } from '../support/mcp/agents.ts';
import { type AgentFixture, agentFixture, CONSOLE, PING, PONG } from '../support/mcp/fixture.ts';
import { addClient, addSecret, updateClient } from '../support/oauth/clients.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';

const fixture = beforeTests(agentFixture);
let p: Portcullis;
let secret: string;
let raw: AgentFixture['raw'];

beforeAll(async () => {
  ({ p, secret, raw } = fixture);
});

describe('authentication of MCP requests', () => {
  it.each([
    ['none', undefined],
    ['an empty value', ''],
    ['only a scheme', 'Bearer'],
    ['another scheme', 'Basic c2VjcmV0'],
    ['two credentials in one header', 'Bearer a, Bearer b'],
    ['an unknown secret', 'Bearer nobody'],
    ['a secret of 10,000 characters', `Bearer ${'a'.repeat(10_000)}`],
  ])(
    '4.9-06 D2-11 D8-08: with %s as Authorization: 401, and WWW-Authenticate names the metadata',
    async (_name, authorization) => {
      const answer = await raw({ authorization });
      expect([answer.status, answer.body]).toEqual([401, envelope('unauthorized')]);
      const isShown = /^Bearer +\S/i.test(authorization ?? '');
      const challenge = isShown
        ? 'Bearer error="invalid_token", error_description="the token is not valid",'
        : 'Bearer';
      const metadata = 'https://gate.example/.well-known/oauth-protected-resource/v2/mcp';
      expect(answer.headers['www-authenticate']).toBe(`${challenge} resource_metadata="${metadata}"`);
    },
  );

  it('D8-08: an access token of a client or a supervisor is accepted with its scopes; other tokens are rejected', async () => {
    const client = await addClient(p, { scopes: ['accounts:read'] });
    const grant = { grant_type: 'client_credentials', ...client };
    const { access_token, refresh_token } = (await p.call('POST', '/v2/oauth/token', { json: grant })).json;
    await using agent = await connect(p, access_token);
    expect((await agent.call('get_access')).given).toMatchObject({
      ...{ node_id: p.demo.node_id, subject: client.client_id, client_id: client.client_id },
      scopes: ['accounts:read'],
    });
    const names = ['get_access', 'list_accounts', 'list_networks', 'list_gas_fees'];
    expect((await agent.tools()).map(({ name }) => name)).toEqual(names);
    expect((await agent.call('list_users')).error?.code).toBe('forbidden');
    await using supervisor = await connect(p, await p.loginToken());
    expect((await supervisor.call('get_access')).given).toMatchObject({ client_id: p.demo.client.client_id });
    expect((await post(p, refresh_token, PING)).status).toBe(401);
    const legacy = signed(p, { ...apiClaims(p), iss: 'legacy' }, { secret: 'x'.repeat(32) });
    expect((await post(p, legacy, PING)).status).toBe(401);
  });

  it('D8-08 D3-07: a token is rejected once it expires or is revoked, or its client is disabled', async () => {
    const expired = signed(p, apiClaims(p, { exp: 1 }));
    expect((await post(p, expired, PING)).headers.get('www-authenticate')).toContain('the token has expired');
    const client = await addClient(p);
    const [one, other] = [await p.clientToken(client), await p.clientToken(client)];
    const statuses = () => Promise.all([one, other].map(async (token) => (await post(p, token, PING)).status));
    expect(await statuses()).toEqual([200, 200]);
    await p.call('POST', '/v2/oauth/revoke', { json: { ...client, token: one } });
    expect(await statuses()).toEqual([401, 200]);
    await updateClient(p, client.client_id, { status: 'disabled' });
    expect(await statuses()).toEqual([401, 401]);
  });

  it('D8-08 D2-07: the audit record of a call with a token names the node, and never contains the token', async () => {
    const [id, token] = [randomUUID(), await p.clientToken()];
    await post(p, token, callOf('list_accounts', { limit: 1 }), { headers: { 'x-correlation-id': id } });
    const record = await recordOf(p, id);
    expect(record).toMatchObject({ path: '/v2/mcp', status_code: 200, node_id: p.demo.node_id, is_api: true });
    expect(JSON.stringify(record)).not.toContain(token);
  });

  it.each([
    [{ allowed_ips: ['192.0.2.1'] }, [403, 403]],
    // The request of the token counts too.
    [{ requests_per_hour: 2 }, [200, 429]],
  ])('D8-08 D3-13: the guards of a client (%j) apply to its tokens as to its secrets', async (settings, statuses) => {
    const client = await addClient(p, settings);
    const grant = { 'x-forwarded-for': '192.0.2.1' };
    const issued = await p.call('POST', '/v2/oauth/token', {
      ...{ headers: grant, json: { grant_type: 'client_credentials', ...client } },
    });
    const token = issued.json.access_token;
    const tried = [await post(p, token, PING), await post(p, token, PING)].map(({ status }) => status);
    expect(tried).toEqual(statuses);
  });

  it('D8-08: the resource metadata names the authorization server and the scopes of the tools', async () => {
    const { status, json } = await p.call('GET', '/.well-known/oauth-protected-resource/v2/mcp');
    expect([status, json]).toEqual([
      200,
      {
        resource: 'https://gate.example/v2/mcp',
        authorization_servers: ['https://gate.example'],
        scopes_supported: [...new Set([...TOOLS.values()].flatMap(({ scope }) => scope ?? []))],
        bearer_methods_supported: ['header'],
        resource_name: 'Portcullis',
      },
    ]);
  });

  it('4.9-06 D3-06 D3-07: every valid secret of an active client is accepted; expired ones and disabled clients are not', async () => {
    const client = await addClient(p);
    const { node_id: nodeId } = p.demo;
    const other = await addSecret(p, client.client_id, nodeId);
    const ended = await addSecret(p, client.client_id, nodeId, '2026-01-01T00:00:00Z');
    const statuses = async () =>
      Promise.all([client.client_secret, other, ended].map(async (one) => (await post(p, one, PING)).status));
    expect(await statuses()).toEqual([200, 200, 401]);
    await updateClient(p, client.client_id, { status: 'disabled' });
    expect(await statuses()).toEqual([401, 401, 401]);
  });

  it('D3-18: more than 20 wrong secrets a minute from an address are 429; a correct one is still accepted', async () => {
    const from = { 'x-forwarded-for': '203.0.113.7' };
    const tried = [];
    for (let count = 0; count < 22; count += 1) tried.push(await post(p, `wrong-${count}`, PING, { headers: from }));
    expect(tried.map(({ status }) => status)).toEqual([...Array(20).fill(401), 429, 429]);
    expect(tried.at(-1)?.text).toBe(envelope('rate_limit_exceeded'));
    expect(Number(tried.at(-1)?.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await post(p, secret, PING, { headers: from })).status).toBe(200);
    expect((await post(p, 'wrong', PING, { headers: { 'x-forwarded-for': '203.0.113.8' } })).status).toBe(401);
    expect((await post(p, undefined, PING, { headers: from })).status).toBe(401);
  });

  it.each<[string, NonNullable<Parameters<typeof addClient>[1]>, number, string]>([
    ['certificate', { require_certificate: true, cert_fingerprint: 'AA' }, 403, 'mtls_required'],
    ['address', { allowed_ips: ['192.0.2.1'] }, 403, 'ip_not_allowed'],
    ['rate', { requests_per_hour: 1 }, 429, 'rate_limit_exceeded'],
    ['quota', { monthly_limit: 1 }, 429, 'monthly_limit_exceeded'],
  ])(
    'D3-13 D3-16: the %s guard rejects a call with a secret as it does with a token',
    async (_guard, settings, status, message) => {
      const client = await addClient(p, settings);
      const answers = [];
      for (const _call of [1, 2]) answers.push(await post(p, client.client_secret, PING));
      expect([answers[1]?.status, answers[1]?.text]).toEqual([status, envelope(message)]);
      expect(answers[0]?.status).toBe(status === 429 ? 200 : status);
      const limit = settings.monthly_limit === 1 ? 'x-monthlylimit-limit' : 'x-ratelimit-limit-hour';
      expect(answers.map(({ headers }) => headers.get(limit))).toEqual(status === 429 ? ['1', '1'] : [null, null]);
      expect(answers[1]?.headers.get('retry-after') === null).toBe(status !== 429);
    },
  );

  it('D3-13: certificate, address and rate are checked in this order, and a rejected request is not counted', async () => {
    const settings = {
      require_certificate: true,
      cert_fingerprint: 'aa',
      allowed_ips: ['192.0.2.1'],
      requests_per_hour: 1,
    };
    const client = await addClient(p, settings);
    const ask = async (headers: Record<string, string>) =>
      (await post(p, client.client_secret, PING, { headers })).text;
    expect(await ask({})).toBe(envelope('mtls_required'));
    expect(await ask({ 'ssl-client-fingerprint': 'AA' })).toBe(envelope('ip_not_allowed'));
    const good = { 'ssl-client-fingerprint': 'AA', 'x-forwarded-for': '192.0.2.1' };
    expect(JSON.parse(await ask(good))).toEqual(PONG);
    expect(await ask(good)).toBe(envelope('rate_limit_exceeded'));
  });

  it.each([
    ['evil.example', undefined, 403],
    ['gate.example', undefined, 200],
    ['gate.example', CONSOLE, 200],
    ['localhost:1234', CONSOLE, 200],
    ['localhost', 'https://evil.example', 403],
    ['localhost', 'null', 403],
    ['gate.example.evil.example', CONSOLE, 403],
  ])('4.9-06 D2-12: Host %s, Origin %s: %i', async (host, origin, status) => {
    const answer = await raw({ host, origin });
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body)).toEqual(status === 403 ? JSON.parse(envelope('forbidden')) : PONG);
    // Whose secret it is, is asked first: a stranger learns nothing of hosts.
    expect((await raw({ host, origin, authorization: 'Bearer nobody' })).status).toBe(401);
  });
});

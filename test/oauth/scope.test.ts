import { decodeJwt } from 'jose';
import { describe, expect, it } from 'vitest';
import { permissionsOfRole } from '../../src/access/identity/permissions.rules.ts';
import { envelope } from '../support/gateway/envelopes.ts';
import { type Answer, usePortcullis } from '../support/harness.ts';
import { connect } from '../support/mcp/agents.ts';
import { addSupervisor } from '../support/oauth/cheap-hash.ts';
import { addClient, type ClientCredentials, rows, updateClient } from '../support/oauth/clients.ts';
import { basicOf, oauthEnvelope, postForm } from '../support/oauth/requests.ts';

const p = usePortcullis();

const VIEWER = permissionsOfRole('viewer').join(' ');
/** A client with two permissions and a scope of its own. */
const SCOPES = ['wallets:read', 'accounts:read', 'acme.reports'];
const ALL = SCOPES.join(' ');

const ask = (json: object) => p.call('POST', '/v2/oauth/token', { json });
const refresh = (refresh_token: string, client: ClientCredentials, scope?: string) =>
  ask({ grant_type: 'refresh_token', ...client, refresh_token, scope });

async function byClient(scope: unknown): Promise<{ answer: Answer; client: ClientCredentials }> {
  const client = await addClient(p, { scopes: SCOPES });
  return { client, answer: await ask({ grant_type: 'client_credentials', ...client, scope }) };
}

async function byPassword(scope: unknown): Promise<{ answer: Answer; client: ClientCredentials }> {
  const client = await addClient(p, { scopes: SCOPES });
  const { username } = await addSupervisor(p, 'secret');
  return { client, answer: await ask({ grant_type: 'password', ...client, username, password: 'secret', scope }) };
}

function refused({ status, text }: Answer): void {
  expect([status, text]).toEqual([400, envelope('invalid_request')]);
}

describe('D3-33: the scope of a token request', () => {
  it.each<[string, unknown, string | undefined, string | undefined]>([
    ['is absent', undefined, ALL, VIEWER],
    ['is null', null, ALL, VIEWER],
    ['is empty', '', ALL, VIEWER],
    ['is not a text', ['accounts:read'], ALL, VIEWER],
    ['has unknown names only', 'openid Accounts:Read accounts:read,wallets:read \u0000', ALL, VIEWER],
    ['has a granted name', 'accounts:read', 'accounts:read', 'accounts:read'],
    [
      'repeats names in another order',
      'accounts:read  wallets:read accounts:read',
      'wallets:read accounts:read',
      'accounts:read wallets:read',
    ],
    ['has known and unknown names', 'openid wallets:read', 'wallets:read', 'wallets:read'],
    ['has a name that is not granted among others', 'clients:manage wallets:read', 'wallets:read', 'wallets:read'],
    ['has a permission of the supervisor only', 'users:read', undefined, 'users:read'],
    ["has the client's own scope only", 'acme.reports openid', 'acme.reports', undefined],
    ['has no granted name', 'clients:manage audit:read', undefined, undefined],
  ])(
    'the issued tokens have the expected scope when the requested scope %s',
    async (_case, scope, ofClient, ofLogin) => {
      for (const [{ answer, client }, expected] of [
        [await byClient(scope), ofClient],
        [await byPassword(scope), ofLogin],
      ] as const) {
        if (expected === undefined) {
          refused(answer);
          continue;
        }
        const { access_token, refresh_token, scope: issued } = answer.json;
        expect([issued, decodeJwt(access_token).scope]).toEqual([expected, expected]);
        expect((await refresh(refresh_token, client)).json.scope).toBe(expected);
      }
    },
  );

  it.each([
    ['a client', byClient, 'wallets:read accounts:read'],
    ['a login', byPassword, 'accounts:read wallets:read'],
  ])(
    'the scope of %s limits its refreshes, which may narrow it further but never widen it',
    async (_kind, issue, both) => {
      const { answer, client } = await issue('accounts:read wallets:read');
      const { refresh_token } = answer.json;
      refused(await refresh(refresh_token, client, 'users:read'));
      expect((await refresh(refresh_token, client, 'openid')).json.scope).toBe(both);
      expect((await refresh(refresh_token, client, `${VIEWER} ${ALL}`)).json.scope).toBe(both);
      const narrower = (await refresh(refresh_token, client, 'accounts:read users:read')).json;
      expect(narrower.scope).toBe('accounts:read');
      refused(await refresh(narrower.refresh_token, client, 'wallets:read'));
      const last = await refresh(narrower.refresh_token, client);
      expect(last.json.scope).toBe('accounts:read');
    },
  );

  it('a narrowed token follows later changes of permissions, within its first scope', async () => {
    const { answer, client } = await byClient('accounts:read wallets:read');
    const whole = (await ask({ grant_type: 'client_credentials', ...client })).json;
    await updateClient(p, client.client_id, { scopes: ['accounts:read', 'users:read'] });
    expect((await refresh(answer.json.refresh_token, client)).json.scope).toBe('accounts:read');
    expect((await refresh(whole.refresh_token, client)).json.scope).toBe('accounts:read users:read');
    await updateClient(p, client.client_id, { scopes: ['users:read'] });
    const emptied = (await refresh(answer.json.refresh_token, client)).json;
    expect(emptied.scope).toBe('');
    await updateClient(p, client.client_id, { scopes: ['users:read', 'accounts:read'] });
    expect((await refresh(emptied.refresh_token, client)).json.scope).toBe('');
  });

  it('a scope without any granted name creates no session and does not use up the refresh token', async () => {
    const client = await addClient(p, { scopes: SCOPES, refresh_reuse_detection: true });
    const { id, username } = await addSupervisor(p, 'secret');
    const login = { grant_type: 'password', ...client, username, password: 'secret' };
    refused(await ask({ ...login, scope: 'audit:read' }));
    const sessions = () => rows(p).run((k) => k.selectFrom('sessions').select('id').where('supervisor_id', '=', id));
    expect(await sessions()).toEqual([]);
    const { refresh_token } = (await ask(login)).json;
    refused(await refresh(refresh_token, client, 'audit:read'));
    const spent = await rows(p).run((k) =>
      k.selectFrom('spent_refresh_tokens').select('digest').where('client_id', '=', client.client_id),
    );
    expect(spent).toEqual([]);
  });

  it('a scope without any granted name is reported to standard clients as invalid_scope', async () => {
    const client = await addClient(p, { scopes: SCOPES });
    const form = { grant_type: 'client_credentials', scope: 'audit:read' };
    const { status, text } = await postForm(p, '/v2/oauth/token', form, basicOf(client));
    expect([status, text]).toEqual([400, oauthEnvelope('invalid_request', 'invalid_scope')]);
  });

  it('a narrowed scope is enforced by REST, GraphQL, MCP and introspection', async () => {
    const { answer, client } = await byClient('accounts:read');
    const { access_token: token, refresh_token } = answer.json;
    expect((await p.call('GET', '/v1/accounts', { token })).status).toBe(200);
    expect(
      (await p.call('POST', `/v1/wallets/${p.demo.wallet_id}/networks/${p.demo.network_id}`, { token })).status,
    ).toBe(403);
    const query = '{ me { permissions } wallet(id: "x") { id } }';
    const { json } = await p.call('POST', '/graphql', { token, json: { query } });
    expect(json).toMatchObject({
      data: { me: { permissions: ['accounts:read'] } },
      errors: [{ extensions: { code: 'FORBIDDEN', permission: 'wallets:read' } }],
    });
    await using agent = await connect(p, token);
    expect((await agent.call('get_access')).given).toMatchObject({ scopes: ['accounts:read'] });
    for (const each of [token, refresh_token]) {
      const seen = await p.call('POST', '/v2/oauth/introspect', { json: { token: each, ...client } });
      expect(seen.json).toMatchObject({ active: true, scope: 'accounts:read' });
    }
  });
});

import { beforeAll, describe, expect, it } from 'vitest';
import { createdClient, grantStatus, operate, rotatedSecret } from '../support/graphql/administration.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startPortcullis } from '../support/harness.ts';
import { rows } from '../support/oauth/clients.ts';
import {
  ClientDocument,
  type ClientInput,
  type ClientPatch,
  ClientsDocument,
  PatchClientDocument,
  RotateClientSecretDocument,
  SetClientStatusDocument,
  UpdateClientDocument,
} from './generated/graphql.ts';

const clock = { skewMs: 0 };
const p = beforeTests(() => startPortcullis({ overrides: { nowMs: () => Date.now() + clock.skewMs } }));
let token: string;

beforeAll(async () => {
  token = await p.clientToken();
});

const FULL: ClientInput = {
  name: 'Trader',
  grantTypes: ['PASSWORD', 'CLIENT_CREDENTIALS'],
  scopes: ['accounts:read', 'wallets:read'],
  tokenExpiry: { enabled: false, duration: 60 },
  allowedIps: ['127.0.0.0/8', '::1'],
  requireCertificate: false,
  certFingerprint: `AB:cd${'0'.repeat(60)}`,
  rateLimit: { requestsPerSecond: 1_000, requestsPerHour: 5_000 },
  monthlyLimit: 100_000,
  refreshReuseDetection: true,
};

function secretsOf(clientId: string) {
  return rows(p).run((k) => k.selectFrom('client_secrets').selectAll().where('client_id', '=', clientId));
}

function withSecret(clientId: string, client_secret: string): Promise<number> {
  return grantStatus(p, { grant_type: 'client_credentials', client_id: clientId, client_secret });
}

describe('a client', () => {
  it('2.2-01, DG-03: is created as requested, active, in the node of the token', async () => {
    const { client, clientSecret, credentials } = await createdClient(p, token, FULL);
    expect(client).toMatchObject({
      ...FULL,
      clientId: client.id,
      nodeId: p.demo.node_id,
      rateLimit: { requestsPerSecond: 1_000, requestsPerMinute: null, requestsPerHour: 5_000 },
      status: 'ACTIVE',
      lastUsedAt: null,
    });
    expect(clientSecret).toMatch(/^[\w-]{43}$/);
    const answer = await p.call('POST', '/v2/oauth/token', {
      json: { grant_type: 'client_credentials', ...credentials },
    });
    expect(answer.json).toMatchObject({ expires_in: 60, token_type: 'Bearer' });
  });

  it('D3-08: has no limits and tokens of an hour by default', async () => {
    const { client } = await createdClient(p, token);
    expect(client).toMatchObject({
      tokenExpiry: { enabled: true, duration: 3_600 },
      allowedIps: [],
      requireCertificate: false,
      certFingerprint: null,
      rateLimit: null,
      monthlyLimit: null,
      refreshReuseDetection: false,
    });
  });

  it('DG-01: is replaced in full: absent members take their defaults', async () => {
    const { client } = await createdClient(p, token, FULL);
    const input: ClientInput = { name: 'Other', grantTypes: ['CLIENT_CREDENTIALS'], scopes: ['users:read'] };
    const { result } = await operate(p, token, UpdateClientDocument, { id: client.id.toUpperCase(), input });
    expect(result).toMatchObject({
      __typename: 'Client',
      ...input,
      id: client.id,
      status: 'ACTIVE',
      createdAt: client.createdAt,
      tokenExpiry: { enabled: true, duration: 3_600 },
      allowedIps: [],
      certFingerprint: null,
      rateLimit: null,
      monthlyLimit: null,
      refreshReuseDetection: false,
    });
    const read = await operate(p, token, ClientDocument, { id: client.id.toUpperCase() });
    expect(result).toEqual({ __typename: 'Client', ...read.client });
  });

  it('DG-01: a patch changes the given members, and inside them the given ones; what is absent or null stays', async () => {
    const { client } = await createdClient(p, token, FULL);
    const limits = { requestsPerSecond: 1_000, requestsPerMinute: null, requestsPerHour: 5_000 };
    const patches: [ClientPatch, Partial<typeof client>][] = [
      [{}, {}],
      [{ name: 'Other', scopes: null, rateLimit: null }, { name: 'Other' }],
      [{ rateLimit: { requestsPerMinute: 7 } }, { rateLimit: { ...limits, requestsPerMinute: 7 } }],
      [
        { rateLimit: { requestsPerSecond: 0, requestsPerHour: null } },
        { rateLimit: { ...limits, requestsPerSecond: null, requestsPerMinute: 7 } },
      ],
      [{ rateLimit: { requestsPerMinute: 0, requestsPerHour: 0 } }, { rateLimit: null }],
      [{ monthlyLimit: 5 }, { monthlyLimit: 5 }],
      [{ monthlyLimit: 0 }, { monthlyLimit: null }],
      [{ tokenExpiry: { duration: 120 } }, { tokenExpiry: { enabled: false, duration: 120 } }],
      [{ tokenExpiry: { enabled: true } }, { tokenExpiry: { enabled: true, duration: 120 } }],
      [{ allowedIps: [] }, { allowedIps: [] }],
      [{ certFingerprint: '' }, { certFingerprint: null }],
      [{ requireCertificate: true }, { requireCertificate: true }],
      [{ refreshReuseDetection: false }, { refreshReuseDetection: false }],
      [{ grantTypes: ['CLIENT_CREDENTIALS'] }, { grantTypes: ['CLIENT_CREDENTIALS'] }],
      [{ scopes: ['users:read'] }, { scopes: ['users:read'] }],
    ];
    let expected: object = client;
    for (const [patch, change] of patches) {
      expected = { ...expected, ...change, updatedAt: expect.any(String) };
      const { result } = await operate(p, token, PatchClientDocument, { id: client.id, input: patch });
      expect(result).toEqual({ __typename: 'Client', ...expected });
    }
    expect((await operate(p, token, ClientDocument, { id: client.id })).client).toEqual(expected);
  });

  it('D3-31: a patch that takes a scope away revokes the tokens that the client has', async () => {
    const { client, credentials } = await createdClient(p, token, { scopes: ['accounts:read', 'users:read'] });
    const own = await p.clientToken(credentials);
    const status = async () => (await p.call('GET', '/v1/accounts', { token: own })).status;
    await operate(p, token, PatchClientDocument, { id: client.id, input: { name: 'Renamed' } });
    expect(await status()).toBe(200);
    await operate(p, token, PatchClientDocument, { id: client.id, input: { scopes: ['accounts:read'] } });
    await expect.poll(status).toBe(401);
  });

  it('2.2-01: the new settings apply at once', async () => {
    const { client, credentials } = await createdClient(p, token);
    const grant = { grant_type: 'client_credentials', ...credentials };
    expect(await grantStatus(p, grant)).toBe(200);
    const input: ClientInput = { name: 'Trader', grantTypes: ['REFRESH_TOKEN'], scopes: [] };
    await operate(p, token, UpdateClientDocument, { id: client.id, input });
    expect(await grantStatus(p, grant)).toBe(403);
    const narrow: ClientInput = { ...input, grantTypes: ['CLIENT_CREDENTIALS'], allowedIps: ['192.0.2.1'] };
    await operate(p, token, UpdateClientDocument, { id: client.id, input: narrow });
    expect(await grantStatus(p, grant)).toBe(403);
  });
});

describe('the secret of a client', () => {
  it('D3-06: stops working at once when it is rotated without an overlap', async () => {
    const { client, credentials } = await createdClient(p, token);
    expect(await withSecret(client.id, credentials.client_secret)).toBe(200);
    const next = await rotatedSecret(p, token, client.id);
    expect(await withSecret(client.id, next)).toBe(200);
    expect(await withSecret(client.id, credentials.client_secret)).toBe(401);
    expect(await secretsOf(client.id)).toHaveLength(1);
  });

  it('D3-06: keeps working for the overlap next to the new secret', async () => {
    const { client, credentials } = await createdClient(p, token);
    const next = await rotatedSecret(p, token, client.id, 60);
    expect(await withSecret(client.id, credentials.client_secret)).toBe(200);
    clock.skewMs += 60_000;
    expect(await withSecret(client.id, credentials.client_secret)).toBe(401);
    expect(await withSecret(client.id, next)).toBe(200);
  });

  it('D3-06: a rotation never leaves three valid secrets: the oldest stops working', async () => {
    const { client, credentials } = await createdClient(p, token);
    const second = await rotatedSecret(p, token, client.id, 3_600);
    const third = await rotatedSecret(p, token, client.id, 3_600);
    const all = [credentials.client_secret, second, third];
    expect(await Promise.all(all.map((secret) => withSecret(client.id, secret)))).toEqual([401, 200, 200]);
    expect(await secretsOf(client.id)).toHaveLength(2);
  });

  it('D3-06: concurrent rotations leave at most two valid secrets', async () => {
    const { client } = await createdClient(p, token);
    const secrets = await Promise.all([1, 2, 3, 4].map(() => rotatedSecret(p, token, client.id, 3_600)));
    const statuses = await Promise.all(secrets.map((secret) => withSecret(client.id, secret)));
    expect(statuses.filter((status) => status === 200)).toHaveLength(2);
    expect(await secretsOf(client.id)).toHaveLength(2);
  });

  it('D3-06: a rotation does not extend the expiry of a secret that already has one', async () => {
    const { client, credentials } = await createdClient(p, token);
    const endsAt = new Date(Date.now() + clock.skewMs + 30_000).toISOString();
    await rows(p).run((k) =>
      k.updateTable('client_secrets').set({ expires_at: endsAt }).where('client_id', '=', client.id),
    );
    await rotatedSecret(p, token, client.id, 3_600);
    expect(await withSecret(client.id, credentials.client_secret)).toBe(200);
    clock.skewMs += 30_000;
    expect(await withSecret(client.id, credentials.client_secret)).toBe(401);
  });

  it('D3-06: every response shows when the previous secret expires, until it has expired', async () => {
    const [rotated, other] = [await createdClient(p, token), await createdClient(p, token)];
    const shown = async () => {
      const { client } = await operate(p, token, ClientDocument, { id: rotated.client.id });
      const { clients } = await operate(p, token, ClientsDocument, { first: 100 });
      const listed = clients.edges.filter(({ node }) => [rotated.client.id, other.client.id].includes(node.id));
      return [client, ...listed.map(({ node }) => node)].map((found) => found?.previousSecretExpiresAt);
    };
    expect(rotated.client.previousSecretExpiresAt).toBeNull();
    expect(await shown()).toEqual([null, null, null]);
    const sentMs = Date.now() + clock.skewMs;
    const { result } = await operate(p, token, RotateClientSecretDocument, {
      id: rotated.client.id,
      overlapSeconds: 60,
    });
    if (result.__typename !== 'CreatedClient') throw new Error(JSON.stringify(result));
    const until = result.client.previousSecretExpiresAt ?? '';
    expect(Date.parse(until) - 60_000).toBeGreaterThanOrEqual(sentMs);
    expect(Date.parse(until) - 60_000).toBeLessThanOrEqual(Date.now() + clock.skewMs);
    expect(await shown()).toEqual([until, until, null]);
    clock.skewMs += 60_000;
    expect(await withSecret(rotated.client.id, rotated.credentials.client_secret)).toBe(401);
    expect(await shown()).toEqual([null, null, null]);
  });

  it('D3-06: each rotation in one request shows the expiry of its own previous secret', async () => {
    const { client } = await createdClient(p, token);
    const rotation = (name: string, seconds: number) =>
      `${name}: rotateClientSecret(id: "${client.id}", overlapSeconds: ${seconds}) {
        ... on CreatedClient { client { previousSecretExpiresAt } } }`;
    const query = `mutation { ${rotation('first', 60)} ${rotation('second', 120)} ${rotation('third', 0)} }`;
    const { json } = await p.call('POST', '/graphql', { token, json: { query } });
    const [first, second, third] = ['first', 'second', 'third'].map(
      (name) => json.data[name].client.previousSecretExpiresAt,
    );
    expect(Date.parse(second)).toBeGreaterThan(Date.parse(first));
    expect(third).toBeNull();
  });

  it('D3-06: an overlap of null means none', async () => {
    const { client, credentials } = await createdClient(p, token);
    await rotatedSecret(p, token, client.id, null);
    expect(await withSecret(client.id, credentials.client_secret)).toBe(401);
  });

  it.each([-1, 2_592_001])('D3-06: an overlap of %i seconds is a ValidationError', async (overlapSeconds) => {
    const { client, credentials } = await createdClient(p, token);
    const { result } = await operate(p, token, RotateClientSecretDocument, { id: client.id, overlapSeconds });
    expect(result).toMatchObject({ __typename: 'ValidationError', issues: [{ path: ['overlapSeconds'] }] });
    expect(await withSecret(client.id, credentials.client_secret)).toBe(200);
  });
});

describe('a disabled client', () => {
  it('D3-07: keeps its settings and its secrets, which work again once it is enabled', async () => {
    const { client, credentials } = await createdClient(p, token, FULL);
    const disabled = await operate(p, token, SetClientStatusDocument, { id: client.id, status: 'DISABLED' });
    expect(disabled.result).toMatchObject({ ...FULL, rateLimit: client.rateLimit, status: 'DISABLED' });
    expect(await withSecret(client.id, credentials.client_secret)).toBe(401);
    const enabled = await operate(p, token, SetClientStatusDocument, { id: client.id, status: 'ACTIVE' });
    expect(enabled.result).toMatchObject({ __typename: 'Client', status: 'ACTIVE' });
    expect(await withSecret(client.id, credentials.client_secret)).toBe(200);
  });
});

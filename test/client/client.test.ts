import { randomUUID } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import {
  Portcullis as Client,
  NotFoundError,
  PortcullisError,
  PreconditionFailedError,
} from '../../client/src/index.ts';
import { createdClient } from '../support/graphql/administration.ts';
import { usePortcullis } from '../support/harness.ts';
import { logged, notify, registered } from '../support/realtime/live.ts';

const p = usePortcullis();

/** A client of the demo that notes its requests. */
function demoClient(options: Partial<ConstructorParameters<typeof Client>[0]> = {}) {
  const { client_id: clientId, client_secret: clientSecret } = p.demo.client;
  const requests: { method: string; url: string; body: string; headers: Headers; status: number }[] = [];
  const client = new Client({
    baseUrl: p.url,
    clientId,
    clientSecret,
    fetch: async (input, init = {}) => {
      const response = await fetch(input, init);
      const { method = 'GET', body, headers } = init;
      const noted = { method, body: String(body ?? ''), headers: new Headers(headers) };
      requests.push({ ...noted, url: String(input).replace(p.url, ''), status: response.status });
      return response;
    },
    ...options,
  });
  return { client, requests };
}

const rule = (amount: string) => ({
  name: 'Top up',
  type: 'auto_transfer' as const,
  network_id: p.demo.network_id,
  network_currency_id: p.demo.network_currency_id,
  auto_transfer_rule: {
    type: 'auto' as const,
    amount,
    target_wallet_id: p.demo.target_wallet_id,
    rule_logic: {
      field: 'target.balance',
      op: 'lt' as const,
      value: '100.10',
      network_currency_id: p.demo.network_currency_id,
    },
  },
});

const AMOUNTS = 'query ($id: ID!) { walletRule(id: $id) { autoTransferRule { amount } } }';

describe('the client package', () => {
  it('calls every REST operation', async () => {
    const { client, requests } = demoClient();
    const { wallet_id: walletId, second_network_id: networkId, asset_id: assetId } = p.demo;
    const accounts = await Array.fromAsync(client.listAccounts({ limit: 10 }));
    expect(accounts).toHaveLength(25);
    expect(await Array.fromAsync(client.listAccounts({ includeDeleted: true }))).toHaveLength(27);
    const created = await client.createWalletRule(walletId, rule('12.50'));
    const replaced = await client.replaceWalletRule(walletId, created.id, rule('13'), { ifMatch: created.etag });
    expect(replaced).toEqual({ id: created.id, etag: '"2"' });
    await client.assignNetwork(walletId, networkId);
    const user = { wallet_address: '0xAB', email: 'grace@example.com' };
    expect(await client.migrateUser(user)).toMatchObject({ address: '0xab' });
    expect(await client.migrateUsers([user, { wallet_address: '0xCD', external_id: 'cd' }])).toMatchObject({
      success: 1,
      skipped: 1,
    });
    expect(await client.getAsset(assetId)).toMatchObject({ id: assetId });
    expect(await client.getGasFees()).toEqual([]);
    expect(await client.getHealth()).toMatchObject({ status: 'ok' });
    const [id = ''] = await registered(p, 1);
    const at = new Date().toISOString();
    const times = { created_at: at, updated_at: at };
    const notification = { id, type: 1, status: 3 as const, ...times, gas_used: '18446744073709551615' };
    await client.notifyTransaction(notification, p.webhook);
    expect(await client.waitFor(id)).toMatchObject({ id, status: 'DONE', gasUsed: '18446744073709551615' });
    const { body } = await client.request('GET', '/v1/accounts?limit=1');
    expect(body).toMatchObject({ per_page: 1 });
    const token = await p.clientToken();
    expect(await client.introspectToken(token)).toMatchObject({ active: true });
    await client.revokeToken(token);
    expect(await client.introspectToken(token)).toEqual({ active: false });
    expect(requests.filter(({ status }) => status >= 400)).toEqual([]);
    expect(requests.filter(({ url }) => url.endsWith('/token'))).toHaveLength(1);
  });

  it('keeps every digit of a decimal, and rejects text that is not a decimal', async () => {
    const { client } = demoClient();
    const amount = '12345678901234567890.123456789';
    const { id } = await client.createWalletRule(p.demo.wallet_id, rule(amount));
    expect(await client.graphql(AMOUNTS, { id })).toEqual({ walletRule: { autoTransferRule: { amount } } });
    await expect(client.createWalletRule(p.demo.wallet_id, rule('1,5'))).rejects.toThrow(/amount must be a decimal/);
  });

  it('names the invalid members of a variable', async () => {
    const { client } = demoClient();
    const PREVIEW = 'query ($input: PreviewWalletRuleInput!) { previewWalletRule(input: $input) { fires } }';
    const invalid = {
      name: 'Top up',
      type: 'auto_transfer',
      networkId: p.demo.network_id,
      networkCurrencyId: p.demo.network_currency_id,
      priority: 'first',
    };
    const balances = [{ field: 'balance', networkCurrencyId: p.demo.network_currency_id, value: '1 000' }];
    await expect(client.graphql(PREVIEW, { input: { rule: invalid, balances } })).rejects.toMatchObject({
      status: 400,
      code: 'GRAPHQL_ERROR',
      issues: [
        { path: ['balances', '0', 'value'], message: 'Decimal must be a number, or a string that contains a number' },
        { path: ['rule', 'priority'], message: 'Int cannot represent non-integer value.' },
      ],
      correlationId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
  });

  it('sends a file among the variables of a mutation', async () => {
    const { client } = demoClient();
    const START =
      'mutation ($file: File!) { startUserMigration(file: $file) { ... on Migration { total } ... on Error { message } } }';
    const file = new File(['wallet_address,email\n0xEF,ef@example.com\n'], 'users.csv', { type: 'text/csv' });
    expect(await client.graphql(START, { file })).toEqual({ startUserMigration: { total: 1 } });
  });

  it('requests one token for all callers, and one more after a 401', async () => {
    const { client, requests } = demoClient();
    const page = () => client.getAsset(p.demo.asset_id);
    await Promise.all([page(), page(), page()]);
    const tokens = () => requests.filter(({ url }) => url === '/v2/oauth/token').length;
    expect(tokens()).toBe(1);
    const used = requests
      .find(({ url }) => url.startsWith('/v2/admin'))
      ?.headers.get('authorization')
      ?.slice(7);
    await client.revokeToken(used ?? '');
    await Promise.all([page(), page()]);
    expect(tokens()).toBe(2);
  });

  it('D3-33: requests a token with fewer permissions if scope is set', async () => {
    const { client } = demoClient({ scope: 'tokens:read' });
    expect(await client.graphql('{ me { permissions } }')).toEqual({ me: { permissions: ['tokens:read'] } });
    await expect(client.listAccounts().next()).rejects.toMatchObject({ status: 403, permission: 'accounts:read' });
    const { client: greedy } = demoClient({ scope: 'unknown:name' });
    expect((await greedy.listAccounts().next()).done).toBe(false);
  });

  it('throws typed errors with the correlation id', async () => {
    const { client } = demoClient();
    const { wallet_id: walletId } = p.demo;
    const { id } = await client.createWalletRule(walletId, rule('1'));
    const stale = client.replaceWalletRule(walletId, id, rule('2'), { ifMatch: '"7"' });
    await expect(stale).rejects.toBeInstanceOf(PreconditionFailedError);
    await expect(client.getAsset(randomUUID())).rejects.toBeInstanceOf(NotFoundError);
    await expect(client.waitFor(randomUUID())).rejects.toBeInstanceOf(NotFoundError);
    const invalid = await client.migrateUser({ wallet_address: ' ' }).catch((error: unknown) => error);
    expect(invalid).toBeInstanceOf(PortcullisError);
    expect(invalid).toMatchObject({
      status: 400,
      code: 'invalid_request',
      issues: [{ path: 'wallet_address' }],
      correlationId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    const wrong = demoClient({ clientSecret: 'wrong' }).client;
    await expect(wrong.getGasFees()).rejects.toMatchObject({ status: 401, code: 'invalid_client' });
    await expect(client.getAsset('..')).rejects.toThrow(/not an id/);
    await expect(client.request('GET', '@other.example/x')).rejects.toThrow(/begin with/);
    expect(() => new Client({ baseUrl: p.url })).toThrow(/either clientId and clientSecret, or token/);
  });

  it('sends the secret only to its base URL, which may differ from the public address of the gateway', async () => {
    const baseUrl = p.url.replace('127.0.0.1', 'localhost');
    const { client, requests } = demoClient({ baseUrl });
    await client.getGasFees();
    expect(requests.map(({ url }) => url)).toContain(`${baseUrl}/v2/oauth/token`);
    const metadata = { issuer: 'https://gateway.example', token_endpoint: 'https://elsewhere.example/v2/oauth/token' };
    const sent: string[] = [];
    const lying = demoClient({
      baseUrl,
      fetch: async (input) => {
        sent.push(String(input));
        return Response.json(metadata);
      },
    }).client;
    await expect(lying.getGasFees()).rejects.toThrow('https://gateway.example has no token_endpoint of its own');
    expect(sent.every((url) => url.startsWith(baseUrl))).toBe(true);
  });

  it('follows updates across expired tokens without a gap, and resumes after a cursor', async () => {
    const { credentials } = await createdClient(p, await p.clientToken(), {
      grantTypes: ['CLIENT_CREDENTIALS'],
      scopes: ['transactions:read'],
      tokenExpiry: { enabled: true, duration: 3 },
    });
    const { client_id: clientId, client_secret: clientSecret } = credentials;
    const { client, requests } = demoClient({ clientId, clientSecret });
    const [id = ''] = await registered(p, 1);
    const seen: { cursor: string; hash: string }[] = [];
    const connections = () => requests.filter(({ url }) => url === '/graphql').length;
    const next = (at: number) =>
      notify(p, id, 2, {
        updated_at: new Date(Date.UTC(2026, 10, 21) + at * 1000).toISOString(),
        transaction_hash: `0x${at}`,
      });
    await next(0);
    for await (const { cursor, transaction } of client.updates({ after: '0' })) {
      if (transaction.id !== id) continue;
      seen.push({ cursor, hash: transaction.transactionHash });
      if (connections() >= 3) break;
      await next(seen.length);
    }
    const hashes = seen.map(({ hash }) => hash);
    expect(hashes).toEqual(seen.map((_, index) => `0x${index}`));
    const [first, second] = seen;
    for await (const { cursor } of client.updates({ after: first?.cursor ?? '' })) {
      expect(cursor).toBe(second?.cursor);
      break;
    }
  });

  it('D6-19: yields each update once to a reader whose stream was closed for being too slow', async () => {
    const { client, requests } = demoClient();
    const { streams, transactions } = p.service.context;
    const after = (await logged(p)).at(-1) ?? '0';
    const ids = await registered(p, 100);
    const updates = client.updates({ after });
    const next = updates.next();
    await vi.waitFor(() => expect(streams.load.streams).toBe(1));
    const at = new Date().toISOString();
    for (const id of ids) {
      // Large, so that the buffers between the two are soon full.
      const event = { id, type: 1, status: 2, created_at: at, updated_at: at, error: 'x'.repeat(200_000) };
      const body = Buffer.from(JSON.stringify(event));
      await transactions.applyBatch('transactions.user', [{ body, correlationId: 'large' }]);
    }
    await vi.waitFor(() => expect(streams.load.streams).toBe(0));
    const seen = [(await next).value?.transaction.id];
    for await (const { transaction } of updates) if (seen.push(transaction.id) === ids.length) break;
    expect(seen).toEqual(ids);
    expect(requests.filter(({ url }) => url === '/graphql').length).toBeGreaterThan(1);
  });
});

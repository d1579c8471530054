import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { gatewayFile } from '../support/gateway/gateway-file.ts';
import { request, sendRaw } from '../support/gateway/raw.ts';
import { type Answer, type Portcullis, startOnSharedStores, startReplica } from '../support/harness.ts';
import { addClient, rows } from '../support/oauth/clients.ts';
import { describeReal } from '../support/services/real.ts';

const SERVICES = ['integration', 'notification', 'accounts', 'wallets', 'wallet-rules'];

describeReal(['postgres', 'redis'], 'services in another process', () => {
  const stack = new AsyncDisposableStack();
  /** Runs the guards itself; believes that the gateway in front has run them. */
  let whole: Portcullis;
  let behind: Portcullis;
  /** Its services are at `whole`, which runs the guards; its accounts are at `behind`, and it runs the guards. */
  let front: Portcullis;
  let guard: Portcullis;

  async function replica(services: Record<string, unknown>, env: Record<string, string> = {}): Promise<Portcullis> {
    const file = stack.use(await gatewayFile(services));
    return stack.use(await startReplica(whole, { env: { GATEWAY_CONFIG: file.path, ...env } }));
  }

  beforeAll(async () => {
    whole = stack.use(await startOnSharedStores());
    behind = await replica({ accounts: { at: 'local', guards: 'front' } }, { TRUST_PROXY: '127.0.0.1' });
    const all = Object.fromEntries(SERVICES.map((name) => [name, { at: whole.url, guards: 'upstream' }]));
    front = await replica(all);
    guard = await replica({ accounts: { at: behind.url, guards: 'here' } });
  });
  afterAll(() => stack.disposeAsync());

  const places: [name: string, place: () => Portcullis][] = [
    ['guards: upstream', () => front],
    ['guards: here', () => guard],
  ];

  /** The records of a request, once every process has written its own. */
  async function recordsOf(correlationId: string, count: number) {
    return vi.waitFor(
      async () => {
        const read = rows(whole).run((k) =>
          k.selectFrom('audit_records').selectAll().where('correlation_id', '=', correlationId),
        );
        const found = await read;
        for (const { service } of [whole, behind, front, guard]) expect(service.context.spool.pendingBytes).toBe(0);
        expect(found.length).toBeGreaterThanOrEqual(count);
        return found;
      },
      { interval: 50 },
    );
  }

  describe.each(places)('with %s', (_name, place) => {
    const accounts = (token: string, headers: Record<string, string> = {}) =>
      place().call('GET', '/v1/accounts?limit=2', { token, headers: { 'x-target-server': 'accounts', ...headers } });

    it('D2-10 D2-02: accounts are the same as in one process', async () => {
      const token = await whole.clientToken();
      const [got, direct] = [await accounts(token), await whole.call('GET', '/v1/accounts?limit=2', { token })];
      expect([got.status, got.json.data.length, got.text]).toEqual([200, 2, direct.text]);
      expect((await accounts(await whole.loginToken())).status).toBe(200);
    });

    it('D2-02 1-09: a client limit counts each request once, and rejects with its headers', async () => {
      const client = await addClient(whole, { monthly_limit: 5 });
      const token = await whole.clientToken(client);
      const seen: [number, string | null][] = [];
      for (let index = 0; index < 5; index++) {
        const { status, headers } = await accounts(token);
        seen.push([status, headers.get('x-monthlylimit-remaining')]);
      }
      expect(seen).toEqual([
        [200, '3'],
        [200, '2'],
        [200, '1'],
        [200, '0'],
        [429, '0'],
      ]);
    });

    it('D2-02 D1-09: the address is that of the client, whichever process checks it', async () => {
      const client = await addClient(whole, { allowed_ips: ['127.0.0.1', '198.51.100.7'] });
      const token = await whole.clientToken(client);
      const from = async (address: string) => (await accounts(token, { 'x-forwarded-for': address })).json.message;
      expect(await from('198.51.100.7')).toBeUndefined();
      expect(await from('203.0.113.9')).toBe('ip_not_allowed');
      expect(await from('198.51.100.7, 203.0.113.9')).toBe('ip_not_allowed');
    });

    it('D2-02: the certificate is checked by the process with the guards', async () => {
      const certificate = { 'ssl-client-fingerprint': 'ab:cd' };
      const client = await addClient(whole, { require_certificate: true, cert_fingerprint: 'ab:cd' });
      const json = { grant_type: 'client_credentials', ...client };
      const issued = await whole.call('POST', '/v2/oauth/token', { json, headers: certificate });
      const token = issued.json.access_token;
      expect([(await accounts(token, certificate)).status, (await accounts(token)).json.message]).toEqual([
        200,
        'mtls_required',
      ]);
    });

    it('D2-07 D2-06: each process records the request once, under one correlation id', async () => {
      const correlationId = randomUUID();
      const token = await whole.clientToken();
      const got = await accounts(token, { 'x-correlation-id': correlationId, 'x-forwarded-for': '198.51.100.7' });
      expect(got.headers.get('x-correlation-id')).toBe(correlationId);
      const records = await recordsOf(correlationId, 2);
      expect(records).toHaveLength(2);
      for (const record of records) {
        expect(record).toMatchObject({
          method: 'GET',
          path: '/v1/accounts',
          query: 'limit=2',
          status_code: 200,
          real_ip: '198.51.100.7',
          is_api: true,
          aborted: false,
          response_body: got.text,
        });
        expect(record.headers).toMatchObject({ authorization: '***' });
      }
    });

    it('1-01 D2-07: a request that the gateway rejects is recorded only there', async () => {
      const correlationId = randomUUID();
      expect((await accounts('x.y.z', { 'x-correlation-id': correlationId })).status).toBe(401);
      expect(await recordsOf(correlationId, 1)).toHaveLength(1);
    });
  });

  it('D1-05: a peer that is not the gateway is checked by the other process itself', async () => {
    const client = await addClient(whole, { allowed_ips: ['127.0.0.1'] });
    const token = await whole.clientToken(client);
    const call = request('GET', '/v1/accounts', { Authorization: `Bearer ${token}`, 'X-Forwarded-For': '127.0.0.1' });
    expect((await sendRaw(behind.url, call, { from: '127.0.0.5' })).body).toContain('ip_not_allowed');
    expect((await sendRaw(behind.url, call, { from: '127.0.0.1' })).status).toBe(200);
  });

  it('D2-10 1-11: each documented service answers as it does locally', async () => {
    const token = await front.clientToken();
    const basic = `Basic ${Buffer.from(`${whole.webhook.username}:${whole.webhook.password}`).toString('base64')}`;
    const at = '2026-11-01T00:00:00Z';
    const notification = {
      id: whole.demo.transactions.otc_transactions,
      type: 1,
      status: 1,
      created_at: at,
      updated_at: at,
    };
    const rule = { type: 'auto_transfer_rule', name: 'x' };
    const { wallet_id: wallet, network_id: network, asset_id: asset } = whole.demo;
    type Call = [method: string, path: string, target: string, options: object];
    const calls: Call[] = [
      ['GET', '/v1/accounts', 'accounts', { token }],
      ['GET', `/v2/admin/tokens/${asset}`, 'integration', { token }],
      ['POST', `/v1/wallets/${wallet}/networks/${network}`, 'wallets', { token }],
      ['POST', `/v1/wallets/${wallet}/rules`, 'wallet-rules', { token, json: rule }],
      ['POST', '/v2/users/migrate/with-wallet', 'integration', { token, json: { wallet_address: '0xabc' } }],
      ['POST', '/v2/webhooks', 'notification', { json: notification, headers: { authorization: basic } }],
      ['POST', '/v2/webhooks/custodial', 'notification', { json: notification }],
      ['GET', '/.well-known/oauth-authorization-server', 'integration', {}],
      ['POST', '/graphql', 'integration', { token, json: { query: '{ accounts(first: 3) { totalCount } }' } }],
      ['POST', '/graphql', 'integration', { token, json: { query: '{ nothing }' } }],
    ];
    const shown = ({ status, text, headers }: Answer) => {
      const names = ['content-type', 'etag', 'location', 'www-authenticate', 'deprecation', 'sunset', 'link'];
      return [status, text, names.map((name) => headers.get(name)).join('|')];
    };
    for (const [method, path, target, options] of calls) {
      const headers = { ...('headers' in options ? (options.headers as object) : {}), 'x-target-server': target };
      const [there, here] = [
        await front.call(method, path, { ...options, headers }),
        await whole.call(method, path, { ...options, headers }),
      ];
      expect([method, path, ...shown(there)]).toEqual([method, path, ...shown(here)]);
      expect(there.status).toBeLessThan(500);
    }
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Log, silentLog } from '../../src/lib/log.ts';
import { recordOf } from '../support/audit/records.ts';
import { type Answer, type Portcullis, startPortcullis } from '../support/harness.ts';
import { apiClaims, signed } from '../support/oauth/jwt.ts';

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7/;
const lines: Record<string, unknown>[] = [];
const log: Log = { ...silentLog, info: (fields, message) => void lines.push({ ...fields, message }) };
let p: Portcullis;
let basic: string;
beforeAll(async () => {
  p = await startPortcullis({ overrides: { log } });
  basic = `Basic ${Buffer.from(`${p.webhook.username}:${p.webhook.password}`).toString('base64')}`;
});
afterAll(() => p[Symbol.asyncDispose]());

let sent = 0;
function newId(): string {
  sent += 1;
  return `audited-${sent}`;
}

function notification(more: object = {}): object {
  const at = '2026-11-01T00:00:00Z';
  return { id: p.demo.transactions.otc_transactions, type: 1, status: 1, created_at: at, updated_at: at, ...more };
}

function post(path: string, json: object, headers: Record<string, string> = {}): Promise<Answer> {
  return p.call('POST', path, { json, headers });
}

describe('the audit record', () => {
  it('1-04 1-05 1-12 D1-09: has every documented member', async () => {
    const id = newId();
    const token = await p.clientToken();
    const startedAt = Date.now();
    const answer = await p.call('GET', '/v1/accounts?page=1&limit=2&access_token=abc', {
      token,
      headers: {
        'x-correlation-id': id,
        'x-target-server': 'accounts',
        'x-forwarded-for': '203.0.113.7',
        cookie: 'a=b',
      },
    });
    const record = await recordOf(p, id);
    expect(record).toMatchObject({
      correlation_id: id,
      method: 'GET',
      path: '/v1/accounts',
      query: 'page=1&limit=2&access_token=***',
      status_code: 200,
      remote_address: '127.0.0.1',
      real_ip: '203.0.113.7',
      request_body: null,
      response_body: answer.text,
      node_id: p.demo.node_id,
      is_api: true,
      aborted: false,
    });
    expect(record.headers).toMatchObject({ authorization: '***', cookie: '***', 'x-target-server': 'accounts' });
    expect(Number(record.response_bytes)).toBe(Buffer.byteLength(answer.text));
    expect(Number(record.request_bytes)).toBe(0);
    expect(record.elapsed).toBeGreaterThan(0);
    expect(record.elapsed).toBeLessThan(Date.now() - startedAt + 1);
    expect(record.id).toMatch(UUID_V7);
    expect(JSON.stringify(record)).not.toContain(token);
  });

  it('1-06 D2-08: masks secrets in a body by name, at any depth and in any case, and nothing else', async () => {
    const id = newId();
    const secrets = {
      password: 's1',
      Token: 's2',
      AUTHORIZATION: 's3',
      client_secret: 's4',
      refreshToken: { a: 's5' },
    };
    const body = notification({ ...secrets, deep: [{ x: { new_password: 's6', secretary: 'kept', tokens: 'kept' } }] });
    await post('/v2/webhooks/custodial', body, { 'x-correlation-id': id, authorization: basic });
    const record = await recordOf(p, id);
    const masked = { password: '***', Token: '***', AUTHORIZATION: '***', client_secret: '***', refreshToken: '***' };
    expect(JSON.parse(record.request_body ?? '')).toEqual({
      ...body,
      ...masked,
      deep: [{ x: { new_password: '***', secretary: 'kept', tokens: 'kept' } }],
    });
    expect([record.status_code, record.response_body, Number(record.response_bytes)]).toEqual([200, null, 0]);
    expect(JSON.stringify(record.headers)).not.toContain(basic);
  });

  it('D2-09: keeps 64 KiB of a body, and its whole length', async () => {
    const id = newId();
    const body = notification({ filler: 'é'.repeat(100_000) });
    await post('/v2/webhooks/custodial', body, { 'x-correlation-id': id, authorization: basic });
    const record = await recordOf(p, id);
    const kept = Buffer.byteLength(record.request_body ?? '');
    expect([kept <= 65_536, kept > 65_000]).toEqual([true, true]);
    expect(Number(record.request_bytes)).toBe(Buffer.byteLength(JSON.stringify(body)));
  });

  it('1-08: of a token call has no body, but its length and a line at info', async () => {
    const id = newId();
    const grant = { grant_type: 'password', ...p.demo.client, ...p.demo.supervisor };
    const answer = await post('/v2/oauth/token', grant, { 'x-correlation-id': id });
    const record = await recordOf(p, id);
    expect([record.request_body, record.response_body]).toEqual([null, null]);
    expect(Number(record.request_bytes)).toBe(JSON.stringify(grant).length);
    expect(Number(record.response_bytes)).toBe(answer.text.length);
    const line = lines.filter((fields) => fields.correlation_id === id);
    expect(line).toHaveLength(1);
    expect(line[0]).toMatchObject({ method: 'POST', path: '/v2/oauth/token', status: 200, message: 'request' });
    const kept = JSON.stringify([record, line]);
    for (const secret of [grant.password, grant.client_secret, answer.json.access_token]) {
      expect(kept).not.toContain(secret);
    }
  });

  it('1-08: of a refused token call has none either', async () => {
    const id = newId();
    await post('/v2/oauth/token', { client_secret: 'x' }, { 'x-correlation-id': id });
    expect(await recordOf(p, id)).toMatchObject({ status_code: 400, request_body: null, response_body: null });
  });

  it('D2-07: of a refused request has the length of the body that was not read', async () => {
    const id = newId();
    const headers = { 'x-correlation-id': id };
    const answer = await post('/v2/users/migrate/with-wallet', { email: 'ada@example.com' }, headers);
    const record = await recordOf(p, id);
    expect(record).toMatchObject({ status_code: 401, request_body: null, response_body: answer.text });
    expect(Number(record.request_bytes)).toBe(JSON.stringify({ email: 'ada@example.com' }).length);
  });
});

describe('who asked', () => {
  const nobody = () => null;
  const demo = () => p.demo.node_id;
  const neighbour = () => p.demo.other_node.node_id;
  const client = { grant_type: 'client_credentials' };
  const login = { grant_type: 'password' };

  it.each([
    ['an API token', () => list(p.clientToken()), demo, true],
    ['a login token', () => list(p.loginToken()), demo, false],
    ["another node's token", () => list(p.clientToken(p.demo.other_node.client)), neighbour, true],
    ['a legacy token', () => list(legacyToken()), demo, true],
    ['a token without the permission', () => list(signed(p, apiClaims(p, { scope: '' }))), demo, true],
    ['a broken token', () => list('broken'), nobody, false],
    ['an expired token', () => list(signed(p, apiClaims(p, { exp: 1 }))), nobody, false],
    ['nobody', () => (id: string) => p.call('GET', '/health', { headers: { 'x-correlation-id': id } }), nobody, false],
    ['a token call of a client', () => call({ ...client, ...p.demo.client }), demo, true],
    ['a token call for a login', () => call({ ...login, ...p.demo.client, ...p.demo.supervisor }), demo, false],
    ['a refresh of a login', () => refresh(login), demo, false],
    ['a refresh of a client', () => refresh(client), demo, true],
    ['a wrong password', () => call({ ...login, ...p.demo.client, username: 'x', password: 'y' }), demo, false],
    ['a refused grant', () => call({ ...p.demo.other_node.client, grant_type: 'x' }), neighbour, true],
    ['a wrong client secret', () => call({ ...client, ...p.demo.client, client_secret: 'wrong' }), demo, true],
  ])('1-07 D2-07: %s: the record is of its node, and of its kind', async (_name, asking, nodeId, isApi) => {
    const id = newId();
    await (await asking())(id);
    const record = await recordOf(p, id);
    expect([record.node_id, record.is_api]).toEqual([nodeId(), isApi]);
  });

  async function list(token: string | Promise<string>) {
    const bearer = await token;
    return (id: string) => p.call('GET', '/v1/accounts', { token: bearer, headers: { 'x-correlation-id': id } });
  }

  function legacyToken(): string {
    const claims = { sub: 'x', aud: p.demo.node_id, scope: 'accounts:read' };
    return signed(p, claims, { secret: p.service.context.secrets.jwt.legacy.current });
  }

  async function refresh(grant: object) {
    const first = await post('/v2/oauth/token', { ...p.demo.client, ...p.demo.supervisor, ...grant });
    const { refresh_token } = first.json;
    return call({ grant_type: 'refresh_token', ...p.demo.client, refresh_token });
  }

  function call(grant: object) {
    return (id: string) => post('/v2/oauth/token', grant, { 'x-correlation-id': id });
  }
});

import { randomUUID } from 'node:crypto';
import type { Portcullis } from '../harness.ts';
import { basicOf } from '../oauth/requests.ts';
import { newUser } from '../user-migrations/calls.ts';
import { autoTransfer, rulesOf } from '../wallet-rules/rules.ts';
import { openSocket, type RawAnswer, readAnswer } from './raw.ts';

/** A request as its bytes are sent: a header that is undefined is left out, one that is a list is repeated. */
export interface Sent {
  method: string;
  target: string;
  headers: Record<string, string | string[] | undefined>;
  body?: string | Buffer;
}

export interface GoodRoute {
  request: () => Sent;
  status: number;
}

/** Sends a request byte by byte as it is told, and reads the answer. */
export async function sendBytes(url: string, { method, target, headers, body }: Sent): Promise<RawAnswer> {
  const bytes = body === undefined ? undefined : Buffer.from(body);
  const length = bytes && headers['transfer-encoding'] === undefined ? { 'content-length': String(bytes.length) } : {};
  const given = Object.entries({ host: 'portcullis', connection: 'close', ...length, ...headers });
  const lines = given.flatMap(([name, value]) => [value ?? []].flat().map((one) => `${name}: ${one}\r\n`));
  const socket = openSocket(url);
  socket.write(`${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1');
  if (bytes) socket.write(bytes);
  const answer = await readAnswer(socket);
  return answer.headers['transfer-encoding'] === 'chunked' ? { ...answer, body: withoutChunks(answer.body) } : answer;
}

function withoutChunks(body: string): string {
  const [, size = '0'] = /^([0-9a-f]+)\r\n/i.exec(body) ?? [];
  const length = Number.parseInt(size, 16);
  if (length === 0) return '';
  const start = size.length + 2;
  return body.slice(start, start + length) + withoutChunks(body.slice(start + length + 2));
}

/** A good request of every route that is registered, by `METHOD path`. */
export async function goodRoutes(p: Portcullis): Promise<Record<string, GoodRoute>> {
  const { demo } = p;
  const token = await p.clientToken();
  const rule = await rulesOf(p, token).created();
  const bearer = { authorization: `Bearer ${token}` };
  const json = (method: string, target: string, status: number, body: () => object, headers = {}): GoodRoute => ({
    status,
    request: () => ({
      ...{ method, target, body: JSON.stringify(body()) },
      headers: { 'content-type': 'application/json', ...headers },
    }),
  });
  const plain = (method: string, target: string, status: number, headers = {}): GoodRoute => ({
    status,
    request: () => ({ method, target, headers }),
  });
  const basic = { authorization: basicOf({ client_id: p.webhook.username, client_secret: p.webhook.password }) };
  const webhook = (path: string) => json('POST', path, 200, () => notification(randomUUID()), basic);
  const agent = {
    ...{ host: 'localhost', accept: 'application/json, text/event-stream' },
    authorization: `Bearer ${demo.client.client_secret}`,
  };
  const ping = () => ({ jsonrpc: '2.0', id: 1, method: 'ping' });
  const console = { client_id: demo.console_client_id };
  const page = { 'sec-fetch-site': 'same-origin' };
  const wallet = `/v1/wallets/${demo.wallet_id}`;
  const graphql = { query: 'query ($id: ID!) { account(id: $id) { id } }', variables: { id: demo.account_id } };
  return {
    'POST /v2/oauth/token': json('POST', '/v2/oauth/token', 200, () => ({
      ...{ grant_type: 'client_credentials', ...demo.client },
    })),
    'POST /v2/oauth/revoke': json('POST', '/v2/oauth/revoke', 200, () => ({ ...demo.client, token: 'unknown' })),
    'POST /v2/oauth/introspect': json('POST', '/v2/oauth/introspect', 200, () => ({
      ...demo.client,
      token: 'unknown',
    })),
    'GET /.well-known/oauth-authorization-server': plain('GET', '/.well-known/oauth-authorization-server', 200),
    [RULES]: json('POST', `${wallet}/rules`, 201, fullRule, bearer),
    [RULE]: json('PUT', `${wallet}/rules/${rule}`, 200, fullRule, bearer),
    [NETWORK]: plain('POST', `${wallet}/networks/${demo.network_id}`, 204, bearer),
    'POST /v2/webhooks/custodial': webhook('/v2/webhooks/custodial'),
    'POST /v2/webhooks': webhook('/v2/webhooks'),
    [SINGLE]: json('POST', '/v2/users/migrate/with-wallet', 201, () => fullUser(), bearer),
    [BULK]: json('POST', '/v2/users/migrate/with-wallet/bulk', 200, () => ({ users: [fullUser()] }), bearer),
    'GET /v1/accounts': plain('GET', '/v1/accounts', 200, bearer),
    [ASSET]: plain('GET', `/v2/admin/tokens/${demo.asset_id}`, 200, bearer),
    ...Object.fromEntries(
      ['/health', '/v1/health', '/v2/health'].flatMap((path) =>
        ['GET', 'HEAD'].map((method) => [`${method} ${path}`, plain(method, path, 200)]),
      ),
    ),
    'GET /console': plain('GET', '/console', 308),
    'GET /console/**': plain('GET', '/console/', 200),
    'GET /console/tenants/{client_id}': plain('GET', `/console/tenants/${console.client_id}`, 200),
    'POST /console/session': json('POST', '/console/session', 200, () => ({ ...console, ...demo.supervisor }), page),
    // A cookie can be redeemed only once: the request passes the gateway, and lacks the client.
    'POST /console/session/renew': json('POST', '/console/session/renew', 400, () => ({}), page),
    'DELETE /console/session': json('DELETE', '/console/session', 204, () => console, page),
    'GET /swagger': plain('GET', '/swagger', 308),
    'GET /swagger/*': plain('GET', '/swagger/openapi.json', 200),
    'GET /v2/blockchain/gas-fee': plain('GET', '/v2/blockchain/gas-fee', 200),
    'OPTIONS **': plain('OPTIONS', '/v1/accounts', 204),
    'GET /.well-known/oauth-protected-resource/v2/mcp': plain(
      ...(['GET', '/.well-known/oauth-protected-resource/v2/mcp', 200] as const),
    ),
    'GET /v2/mcp': plain('GET', '/v2/mcp', 405, agent),
    'POST /v2/mcp': json('POST', '/v2/mcp', 200, ping, agent),
    'DELETE /v2/mcp': plain('DELETE', '/v2/mcp', 405, agent),
    'GET /v2/mcp/**': plain('GET', '/v2/mcp/a/b', 405, agent),
    'POST /v2/mcp/**': json('POST', '/v2/mcp/a/b', 200, ping, agent),
    'GET /graphql': plain('GET', '/graphql?query=%7Bme%7BnodeId%7D%7D', 200, bearer),
    // A path of an export works once: the request passes the gateway, and there is no export.
    'GET /graphql/audit-exports/{id}/{key}': plain('GET', `/graphql/audit-exports/${rule}/${rule}`, 404, bearer),
    [GRAPHQL]: json('POST', '/graphql', 200, () => graphql, bearer),
  };
}

export const RULES = 'POST /v1/wallets/{wallet_id}/rules';
export const RULE = 'PUT /v1/wallets/{wallet_id}/rules/{id}';
export const NETWORK = 'POST /v1/wallets/{wallet_id}/networks/{network_id}';
export const SINGLE = 'POST /v2/users/migrate/with-wallet';
export const BULK = 'POST /v2/users/migrate/with-wallet/bulk';
export const ASSET = 'GET /v2/admin/tokens/{id}';
export const GRAPHQL = 'POST /graphql';

function fullUser() {
  return newUser({ external_id: randomUUID(), name: 'N', surname: 'S', kyc_sent: true });
}

function fullRule(): object {
  const sign = { mandatory_user_id: randomUUID(), min_priority: 1, max_priority: 9, min_user_count: 1 };
  const limit = { max_amount: 9, time_period: 'day', time_period_value: 1 };
  return autoTransfer({ priority: 5, sign_and_approve_rule: sign, permissionless_transfer_limit_rule: limit });
}

function notification(id: string): object {
  const at = '2026-11-21T00:00:00Z';
  const hashes = { transaction_hash: '0x1', contract_address: '', gas_used: 5, error: 'none' };
  return { id, type: 1, status: 1, ...hashes, created_at: at, updated_at: at };
}

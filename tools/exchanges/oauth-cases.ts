import { createHmac } from 'node:crypto';
import type { Options, Recorder } from './recorder.ts';
import { type Callers, JSON_TYPE, LONG_ID } from './rest-cases.ts';
import { basic, DEMO, forged, JWT_SECRETS, NOBODY, SIGNING_SECRET, spoilt, WEBHOOK } from './values.ts';

const TOKEN = '/v2/oauth/token';
const INTROSPECT = '/v2/oauth/introspect';
const FORM_TYPE = 'application/x-www-form-urlencoded';
const { client, supervisor, other_node: other } = DEMO;
const CREDENTIALS = { grant_type: 'client_credentials' };
const PASSWORD = { grant_type: 'password', ...supervisor };
const WRONG = { client_id: client.client_id, client_secret: 'wrong' };

/** Asks for a token of a client, recorded. */
export async function tokenOf(
  r: Recorder,
  name: string,
  who: { client_id: string; client_secret: string },
): Promise<string> {
  return (await r.call(name, 'POST', TOKEN, { json: { ...CREDENTIALS, ...who } })).json.access_token;
}

export async function loginOf(r: Recorder, name: string): Promise<string> {
  return (await r.call(name, 'POST', TOKEN, { json: { ...PASSWORD, ...client } })).json.access_token;
}

/** So that wrong secrets and passwords are each of another address, which nobody throttles. */
function addresses(): () => Record<string, string> {
  let count = 0;
  return () => {
    count += 1;
    return { 'x-forwarded-for': `198.51.${Math.floor(count / 250)}.${count % 250}` };
  };
}

export async function oauthCases(r: Recorder, { token, login, limited }: Callers): Promise<void> {
  const from = addresses();
  const post = (name: string, path: string, options: Options) =>
    r.call(name, 'POST', path, { ...options, headers: { ...from(), ...options.headers } });
  for (const [grant, good] of Object.entries({
    client: { ...CREDENTIALS, ...client },
    password: { ...PASSWORD, ...client, username: 'nobody' },
  })) {
    for (const [what, json] of spoilt(good)) await post(`token ${grant} ${what}`, TOKEN, { json });
  }
  const form = { ...CREDENTIALS, ...client };
  const byBasic = { authorization: basic(client.client_id, client.client_secret) };
  const issued = await post('token by form', TOKEN, { form });
  const twice = 'grant_type=client_credentials&grant_type=password';
  const twiceInJson = '{"grant_type":"x","grant_type":"client_credentials"}';
  for (const [what, options] of Object.entries<Options>({
    'by Basic': { form: CREDENTIALS, headers: byBasic },
    'by Basic and JSON': { json: CREDENTIALS, headers: byBasic },
    'by Basic and body': { form, headers: byBasic },
    'by Basic with its id': { form: { ...CREDENTIALS, client_id: client.client_id }, headers: byBasic },
    'by broken Basic': { form: CREDENTIALS, headers: { authorization: 'Basic !' } },
    'by another scheme': { form: CREDENTIALS, headers: { authorization: 'Digest x' } },
    'with a scope': { form: { ...form, scope: 'accounts:read' } },
    'with a parameter twice': { body: twice, headers: { ...byBasic, 'content-type': FORM_TYPE } },
    'with a member twice': { body: twiceInJson, headers: { ...byBasic, ...JSON_TYPE } },
  })) {
    await post(`token ${what}`, TOKEN, options);
  }
  for (const grant of ['implicit', 'authorization_code', 'urn:x', '']) {
    await post(`token grant ${grant}`, TOKEN, { json: { ...client, grant_type: grant } });
    await post(`token form grant ${grant}`, TOKEN, { form: { ...client, grant_type: grant } });
  }
  for (const path of [TOKEN, '/v2/oauth/revoke', '/v2/oauth/introspect']) {
    const asked = { ...CREDENTIALS, token: 'x' };
    for (const [what, options] of Object.entries<Options>({
      'wrong secret': { json: { ...asked, ...WRONG } },
      'wrong secret by Basic': { form: asked, headers: { authorization: basic(client.client_id, 'wrong') } },
      'unknown client': { json: { ...asked, client_id: NOBODY, client_secret: 'x' } },
      'no client': { json: asked },
      'for another service': {
        json: { ...CREDENTIALS, ...client, token: 'x' },
        headers: { 'x-target-server': 'wallets' },
      },
      nothing: {},
      text: { body: 'x', headers: { 'content-type': 'text/plain' } },
      'no JSON': { body: '{', headers: JSON_TYPE },
      'too long': { json: { ...client, grant_type: 'x'.repeat(70_000) } },
      'a long correlation id': { json: {}, headers: LONG_ID },
    })) {
      await post(`${path} ${what}`, path, options);
    }
    for (const method of ['GET', 'PUT', 'HEAD', 'OPTIONS']) await r.call(`${path} as ${method}`, method, path);
  }
  // A login, its refresh, and the same twice.
  const byPassword = { ...PASSWORD, ...client };
  const first = (await post('login', TOKEN, { json: byPassword })).json;
  const second = (await post('login in capitals by form', TOKEN, { form: { ...byPassword, username: 'ADMIN' } })).json;
  const refresh = (refresh_token: string, who: object = client) => ({
    json: { grant_type: 'refresh_token', refresh_token, ...who },
  });
  const third = (await post('refresh', TOKEN, refresh(first.refresh_token))).json;
  await post('refresh with the former', TOKEN, refresh(first.refresh_token));
  await post('refresh by form', TOKEN, { form: { ...refresh(third.refresh_token).json } });
  await post('refresh of the client', TOKEN, refresh(issued.json.refresh_token));
  await post('refresh with an access token', TOKEN, refresh(first.access_token));
  await post('refresh with nothing good', TOKEN, refresh('x'));
  await post('refresh by another client', TOKEN, refresh(first.refresh_token, other.client));
  const undated = forged({ token_use: 'refresh', iat: undefined, sub: NOBODY });
  await post('refresh forged without iat', TOKEN, refresh(undated));
  await post('refresh expired', TOKEN, refresh(forged({ token_use: 'refresh', exp: 1_700_000_000 })));
  for (const [what, json] of spoilt(refresh('x').json)) await post(`refresh ${what}`, TOKEN, { json });
  for (const [what, given] of Object.entries({
    access: first.access_token,
    refresh: second.refresh_token,
    api: token,
    login,
    legacy: forged({}, JWT_SECRETS.legacy),
    none: 'x',
    expired: forged({ exp: 1_700_000_000 }),
  })) {
    const hinted = { token: given, token_type_hint: 'refresh_token' };
    await post(`introspect ${what}`, INTROSPECT, { json: { token: given, ...client } });
    await post(`introspect ${what} by another node`, INTROSPECT, { form: { token: given, ...other.client } });
    await post(`introspect ${what} with a hint`, INTROSPECT, { form: hinted, headers: byBasic });
  }
  const revoked = {
    access: second.access_token,
    refresh: second.refresh_token,
    api: issued.json.access_token,
    none: 'x',
    'of another': (await post('neighbour', TOKEN, { json: { ...CREDENTIALS, ...other.client } })).json.access_token,
  };
  for (const [what, given] of Object.entries(revoked)) {
    await post(`revoke ${what}`, '/v2/oauth/revoke', { form: { token: given, ...client } });
    await post(`revoke ${what} again`, '/v2/oauth/revoke', { json: { token: given, ...client } });
    await post(`introspect revoked ${what}`, INTROSPECT, { json: { token: given, ...client } });
    await r.call(`accounts with revoked ${what}`, 'GET', '/v1/accounts?limit=1', { token: given });
  }
  for (const path of ['/v2/oauth/revoke', '/v2/oauth/introspect']) {
    for (const [what, json] of spoilt({ token: 'x', ...client })) await post(`${path} ${what}`, path, { json });
  }
  // Six wrong passwords of one who is there lock the name; the right one then does not help.
  for (let turn = 1; turn <= 6; turn += 1)
    await post(`wrong password ${turn}`, TOKEN, {
      json: { ...other.client, grant_type: 'password', username: 'admin', password: 'wrong' },
    });
  await post('right password of a locked name', TOKEN, {
    json: { ...other.client, grant_type: 'password', ...other.supervisor },
  });
  await untilMinuteIsYoung();
  const headers = { 'x-forwarded-for': '203.0.113.200' };
  for (let turn = 1; turn <= 22; turn += 1) {
    await r.call(`wrong secret ${turn} of one address`, 'POST', TOKEN, { json: { ...CREDENTIALS, ...WRONG }, headers });
  }
  for (const path of ['/v2/oauth/revoke', '/v2/oauth/introspect']) {
    await r.call(`${path} throttled`, 'POST', path, { json: { token: 'x', ...WRONG }, headers });
  }
  await limits(r, limited);
}

/** A client with three requests a minute. */
async function limits(r: Recorder, limited: Callers['limited']): Promise<void> {
  await untilMinuteIsYoung();
  const token = (await r.call('limited token', 'POST', TOKEN, { json: { ...CREDENTIALS, ...limited } })).json
    .access_token;
  for (const [method, path] of [
    ['GET', '/v1/accounts?limit=1'],
    ['GET', '/v1/accounts?limit=1&again'],
    ['GET', '/v1/accounts'],
    ['GET', `/v2/admin/tokens/${DEMO.asset_id}`],
    ['POST', `/v1/wallets/${DEMO.wallet_id}/rules`],
    ['PUT', `/v1/wallets/${DEMO.wallet_id}/rules/${NOBODY}`],
    ['POST', `/v1/wallets/${DEMO.wallet_id}/networks/${DEMO.network_id}`],
    ['POST', '/v2/users/migrate/with-wallet'],
    ['POST', '/v2/users/migrate/with-wallet/bulk'],
  ] as const) {
    await r.call(`limited ${method} ${path}`, method, path, { token, ...(method !== 'GET' && { json: {} }) });
  }
  for (const path of [TOKEN, '/v2/oauth/revoke', '/v2/oauth/introspect']) {
    await r.call(`limited ${path}`, 'POST', path, { json: { ...CREDENTIALS, ...limited, token: 'x' } });
  }
  for (const [method, path] of [
    ['POST', '/v2/mcp'],
    ['GET', '/v2/mcp'],
    ['DELETE', '/v2/mcp'],
    ['POST', '/v2/mcp/x'],
    ['GET', '/v2/mcp/x'],
  ] as const) {
    await r.call(`limited ${method} ${path}`, method, path, {
      token: limited.client_secret,
      ...(method === 'POST' && { json: { jsonrpc: '2.0', id: 1, method: 'ping' } }),
    });
  }
  await r.graphql('limited graphql', '{ me { nodeId } }', { token });
  await r.call('limited graphql batch', 'POST', '/graphql', {
    token,
    json: [{ query: '{ me { nodeId } }' }, { query: '{ me { subject } }' }],
  });
}

/** Windows of limits are aligned to the clock: what counts in one must not end in the next. */
async function untilMinuteIsYoung(): Promise<void> {
  const left = 60_000 - (Date.now() % 60_000);
  if (left < 15_000) await new Promise((done) => setTimeout(done, left + 100));
}

const NOTIFICATION = {
  id: DEMO.transactions.node_transactions,
  type: 2,
  status: 1,
  transaction_hash: '0xfeed',
  contract_address: '0xc0ffee',
  gas_used: 21000,
  error: 'none',
  created_at: '2025-03-01T10:30:00Z',
  updated_at: '2025-03-01T10:31:00Z',
};

export async function webhookCases(r: Recorder, { token }: Callers): Promise<void> {
  const authorization = basic(WEBHOOK.username, WEBHOOK.password);
  const hook = (name: string, json: object, headers: Record<string, string> = {}, path = '/v2/webhooks/custodial') =>
    r.call(`webhook ${name}`, 'POST', path, { json, headers: { authorization, ...headers } });
  for (const path of ['/v2/webhooks/custodial', '/v2/webhooks']) {
    const refused: Record<string, Options> = {
      'no credentials': { json: NOTIFICATION },
      'wrong credentials': { json: NOTIFICATION, headers: { authorization: basic('x', 'y') } },
      'a bearer': { json: NOTIFICATION, token },
      'another service': { json: NOTIFICATION, headers: { authorization, 'x-target-server': 'x' } },
      'the notification service': { json: NOTIFICATION, headers: { authorization, 'x-target-server': 'notification' } },
      'no JSON': { body: '{', headers: { authorization, ...JSON_TYPE } },
      'no type': { body: '{}', headers: { authorization } },
      'too long': { json: { ...NOTIFICATION, error: 'x'.repeat(300_000) }, headers: { authorization } },
      'a long correlation id': { json: NOTIFICATION, headers: { authorization, ...LONG_ID } },
    };
    for (const [what, options] of Object.entries(refused)) await r.call(`${path} ${what}`, 'POST', path, options);
    for (const method of ['GET', 'PUT', 'OPTIONS']) await r.call(`${path} as ${method}`, method, path);
    await hook(`good at ${path}`, { ...NOTIFICATION, id: DEMO.transactions.currency_token_transactions }, {}, path);
  }
  for (const [what, json] of spoilt(NOTIFICATION))
    await hook(what, { ...json, ...('id' in json && json.id === NOTIFICATION.id && { id: 'nobodys' }) });
  for (const [what, value] of Object.entries({
    status: 6,
    type: 2 ** 31,
    gas_used: 2 ** 64,
    created_at: '2025-02-30T00:00:00Z',
    updated_at: '2025-03-01',
    id: 'x'.repeat(129),
  })) {
    await hook(`${what} out of range`, { ...NOTIFICATION, [what]: value });
  }
  // Each collection through each status, told late and against each other. Each is waited for, or two would be joined in one.
  for (const [collection, id] of Object.entries(DEMO.transactions)) {
    for (const [turn, status] of [1, 2, 5, 2, 3, 4].entries()) {
      const json = {
        ...NOTIFICATION,
        id,
        status,
        type: turn === 5 ? 999 : 1,
        updated_at: `2025-03-01T10:3${turn}:00Z`,
      };
      await hook(`${collection} turn ${turn} status ${status}`, json);
      // Transactions of users know no PENDING_RECEIPT, and a status that is passed by changes nothing.
      const changes = [1, 2, collection === 'user_transactions' ? 2 : 3, 0, 3, 4][turn] ?? 0;
      const query = `{ transaction(id: "${id}") { events { totalCount } } }`;
      await r.until(token, query, (data) => data.transaction.events.totalCount >= changes);
    }
  }
  await hook('of nobody yet', { ...NOTIFICATION, id: 'parked-1', status: 3 });
  const body = JSON.stringify({ ...NOTIFICATION, id: 'signed-1' });
  const now = Math.floor(Date.now() / 1000);
  const signatures: Record<string, [at: number, secret: string, changed?: string]> = {
    good: [now, SIGNING_SECRET],
    old: [now - 3600, SIGNING_SECRET],
    early: [now + 3600, SIGNING_SECRET],
    foreign: [now, 'whsec_d2hvZXZlciBoYXMgdGhpcyBvbmUgaXMgYSBzdHJhbmdlciE='],
    'of another body': [now, SIGNING_SECRET, `${body} `],
  };
  for (const [what, [at, secret, sent = body]] of Object.entries(signatures)) {
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
    const signature = createHmac('sha256', key).update(`msg_1.${at}.${body}`).digest('base64');
    const headers = {
      authorization,
      'content-type': 'application/json',
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(at),
      'webhook-signature': `v1,${signature}`,
    };
    for (const [how, changed] of [
      ['', {}],
      [' without an id', { 'webhook-id': '' }],
      [' without credentials', { authorization: '' }],
    ] as const) {
      const options = { body: sent, headers: { ...headers, ...changed } };
      await r.call(`webhook signature ${what}${how}`, 'POST', '/v2/webhooks/custodial', options);
    }
  }
}

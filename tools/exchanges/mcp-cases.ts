import { schemaFile } from './coverage.ts';
import type { Recorder } from './recorder.ts';
import { type Callers, JSON_TYPE, LIMIT_RULE, LONG_ID, TRANSFER_RULE } from './rest-cases.ts';
import { basic, CONSOLE, DEMO, NOBODY, spoilt } from './values.ts';

type Arguments = Record<string, unknown>;

const SECRET = DEMO.client.client_secret;

/** What each tool is called with, where it is none of the pages' arguments. */
function goodArguments(made: { rule: string; migration: string }): Record<string, Arguments> {
  return {
    list_accounts: {
      account_id: DEMO.account_id,
      type: 'organisation',
      status: 1,
      search: 'acme',
      include_deleted: true,
    },
    list_wallets: { wallet_id: DEMO.wallet_id, account_id: DEMO.account_id, network_id: DEMO.network_id },
    list_networks: { wallet_id: DEMO.wallet_id },
    assign_network: { wallet_id: DEMO.wallet_id, network_id: DEMO.network_id },
    list_wallet_rules: { wallet_id: DEMO.wallet_id },
    get_wallet_rule: { rule_id: made.rule, versions: 2 },
    preview_wallet_rule: {
      rule: TRANSFER_RULE,
      balances: [{ field: 'balance.available', network_currency_id: DEMO.network_currency_id, value: '1' }],
      transfers: [],
      at: '2025-01-01T00:00:00Z',
    },
    create_wallet_rule: { wallet_id: DEMO.wallet_id, rule: LIMIT_RULE, idempotency_key: 'mcp-1' },
    replace_wallet_rule: { rule_id: made.rule, rule: LIMIT_RULE, if_version: 999 },
    list_transactions: {
      type: 1,
      collection: 'node_transactions',
      status: 'done',
      updated_since: '2025-01-01T00:00:00Z',
    },
    get_transaction: { transaction_id: DEMO.transactions.node_transactions, events: 2 },
    list_users: { user_id: DEMO.user_id, search: 'bob', kyc_verified: false },
    get_migration: { migration_id: made.migration, rows: 2 },
    migrate_users: {
      users: [{ wallet_address: '0xmcp2', external_id: 'mcp-2' }, { wallet_address: '0xmcp3' }],
      idempotency_key: 'mcp-1',
    },
  };
}

export async function mcpCases(r: Recorder, { poorSecret }: Callers): Promise<void> {
  await messages(r, poorSecret);
  const given = async (name: string, args: Arguments) =>
    (await r.mcp(`the first of ${name}`, SECRET, callOf(name, args))).json.result.structuredContent;
  const rules = await given('list_wallet_rules', { wallet_id: DEMO.wallet_id });
  const made = { rule: rules.data[0].id, migration: (await given('get_migration', {})).id };
  const good = goodArguments(made);
  const { tools } = JSON.parse(schemaFile('tools.json')) as {
    tools: { name: string; inputSchema: { properties: object } }[];
  };
  for (const { name, inputSchema } of tools) {
    r.tools.add(name);
    const args = good[name] ?? {};
    const call = (what: string, given: unknown, secret = SECRET) =>
      r.mcp(`tool ${name} ${what}`, secret, callOf(name, given));
    await call('good', args);
    await call('again', args);
    await call('without scopes', args, poorSecret);
    await call('of another node', args, DEMO.other_node.client.client_secret);
    await call('nothing', {});
    await call('an unknown argument', { ...args, nothing: 1, token: 'x' });
    await call('a list', []);
    const ids = Object.keys(args).filter((member) => member.endsWith('_id'));
    for (const id of ids)
      for (const bad of [NOBODY, DEMO.other_node.wallet_id]) await call(`${id} ${bad}`, { ...args, [id]: bad });
    for (const [what, spoiltArgs] of spoilt(args)) {
      // Under the key of before nothing is done again.
      const key =
        'idempotency_key' in spoiltArgs && spoiltArgs.idempotency_key === 'mcp-1'
          ? { idempotency_key: what.slice(0, 200) }
          : {};
      await call(what, { ...spoiltArgs, ...key });
    }
    if (!('include_total' in inputSchema.properties)) continue;
    const needed = Object.fromEntries(
      Object.entries(args).filter(([member]) => name === 'list_wallet_rules' && member === 'wallet_id'),
    );
    const first = (await call('first page', { ...needed, limit: 1, include_total: true })).json.result
      .structuredContent;
    await call('second page', { ...needed, limit: 1, cursor: first?.next_cursor ?? '' });
    for (const bad of [
      { limit: 0 },
      { limit: 101 },
      { limit: 'x' },
      { limit: 1.5 },
      { cursor: 'x' },
      { cursor: '' },
      { include_total: 'x' },
    ]) {
      await call(JSON.stringify(bad), { ...needed, ...bad });
    }
  }
}

function callOf(name: string, args: unknown): object {
  return { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } };
}

async function messages(r: Recorder, poorSecret: string): Promise<void> {
  const client = { name: 'recorder', version: '1' };
  const initialize = (protocolVersion: string) => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion, capabilities: {}, clientInfo: client },
  });
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
  const list = { jsonrpc: '2.0', id: 'a', method: 'tools/list' };
  const all: Record<string, unknown> = {
    initialize: initialize('2025-06-18'),
    'initialize of another version': initialize('1999-01-01'),
    'initialize without params': { jsonrpc: '2.0', id: 1, method: 'initialize' },
    initialized: { jsonrpc: '2.0', method: 'notifications/initialized' },
    'a ping': ping,
    'tools/list': list,
    'tools/list with a cursor': { ...list, params: { cursor: 'x' } },
    'resources/list': { ...list, method: 'resources/list' },
    'prompts/list': { ...list, method: 'prompts/list' },
    'an unknown method': { ...list, method: 'x' },
    'an unknown notification': { jsonrpc: '2.0', method: 'notifications/x' },
    'an unknown tool': callOf('nothing', {}),
    'a tool without a name': { ...list, method: 'tools/call', params: {} },
    'a tool without params': { ...list, method: 'tools/call' },
    'a tool as a task': {
      ...list,
      method: 'tools/call',
      params: { name: 'get_access', arguments: {}, task: { ttl: 1 } },
    },
    'an answer': { jsonrpc: '2.0', id: 1, result: {} },
    'another version': { ...ping, jsonrpc: '1.0' },
    'no method': { jsonrpc: '2.0', id: 1 },
    'params that are none': { ...ping, params: [] },
    'an id that is none': { ...ping, id: null },
    'a batch': [ping],
    'a text': 'x',
    null: null,
    'many members': {
      ...ping,
      params: Object.fromEntries(Array.from({ length: 1001 }, (_, index) => [`m${index}`, 1])),
    },
  };
  for (const [what, message] of Object.entries(all)) await r.mcp(`mcp ${what}`, SECRET, message);
  await r.mcp('mcp tools/list without scopes', poorSecret, list);
  const headers: Record<string, Record<string, string>> = {
    'a protocol version': { 'mcp-protocol-version': '2025-06-18' },
    'another protocol version': { 'mcp-protocol-version': '1999-01-01' },
    'a session': { 'mcp-session-id': 'x' },
    'another host': { host: 'evil.example' },
    'an origin': { origin: CONSOLE },
    'another origin': { origin: 'https://evil.example' },
    'another service': { 'x-target-server': 'wallets' },
    'a type': { 'content-type': 'text/plain' },
    'accept JSON alone': { accept: 'application/json' },
    'accept nothing': { accept: 'image/png' },
    'a long correlation id': LONG_ID,
  };
  for (const path of ['/v2/mcp', '/v2/mcp/any/thing']) {
    for (const [what, given] of Object.entries(headers)) {
      for (const method of ['POST', 'GET', 'DELETE']) {
        const options = { token: SECRET, ...(method === 'POST' && { json: ping }), headers: given };
        await r.call(`${method} ${path} with ${what}`, method, path, options);
      }
    }
    for (const method of ['POST', 'GET', 'DELETE', 'PUT', 'OPTIONS']) {
      const body = method === 'POST' ? { json: ping } : {};
      await r.call(`${method} ${path} good`, method, path, { token: SECRET, ...body });
      await r.call(`${method} ${path} without a secret`, method, path, body);
      await r.call(`${method} ${path} with a wrong secret`, method, path, { token: 'wrong', ...body });
      const headers = { authorization: basic(DEMO.client.client_id, SECRET) };
      await r.call(`${method} ${path} by Basic`, method, path, { headers, ...body });
    }
    const deep = `${'['.repeat(101)}${']'.repeat(101)}`;
    await r.call(`notification at ${path}`, 'POST', path, { token: SECRET, json: all.initialized });
    await r.call(`no JSON at ${path}`, 'POST', path, { token: SECRET, body: '{', headers: JSON_TYPE });
    await r.call(`deep JSON at ${path}`, 'POST', path, { token: SECRET, body: deep, headers: JSON_TYPE });
    const head = `POST ${path} HTTP/1.1\r\nHost: gate.example\r\nAuthorization: Bearer ${SECRET}\r\nContent-Type: application/json\r\nConnection: close`;
    await r.raw(`${path} declared too long`, `${head}\r\nContent-Length: 3000000\r\n\r\n`);
  }
}

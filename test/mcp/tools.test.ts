import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { PERMISSIONS } from '../../src/access/identity/permissions.rules.ts';
import { type FakeNode, fakeNode } from '../support/gas-fee/node.ts';
import { type Portcullis, startPortcullis } from '../support/harness.ts';
import { type Agent, connect, post, secretWith, type ToolAnswer } from '../support/mcp/agents.ts';
import { scrape } from '../support/observability/scrape.ts';
import { newUser } from '../support/user-migrations/calls.ts';
import { autoTransfer, leaf, limit } from '../support/wallet-rules/rules.ts';
import { basic, notification } from '../support/webhook/stand.ts';

const MANY_DIGITS = '0.123456789012345678901234567890';

let fake: FakeNode;
let p: Portcullis;
let agent: Agent;
const network = randomUUID();

beforeAll(async () => {
  fake = await fakeNode();
  p = await startPortcullis({ env: { GAS_RPC_URLS: `${network}=${fake.url}` } });
  agent = await connect(p, p.demo.client.client_secret);
});
afterAll(async () => {
  await agent[Symbol.asyncDispose]();
  await p[Symbol.asyncDispose]();
  await fake[Symbol.asyncDispose]();
});

async function createdRule(rule: object = limit()): Promise<ToolAnswer['given']> {
  const { given, text } = await agent.call('create_wallet_rule', { wallet_id: p.demo.wallet_id, rule });
  expect(text).toContain('"version":1');
  return given;
}

describe('each tool', () => {
  it('D8-06: stands in schema/tools.json as an agent with every scope is told of it (npm run schema writes it)', async () => {
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const { json } = await post(p, p.demo.client.client_secret, list);
    const committed = await readFile(join(import.meta.dirname, '../../schema/tools.json'), 'utf8');
    expect(`${JSON.stringify(json.result, null, 2)}\n`).toBe(committed);
  });

  it('D8-06: get_access tells the node, the client and its scopes, and no secret', async () => {
    const { given, text } = await agent.call('get_access');
    expect(given).toMatchObject({ node_id: p.demo.node_id, client_id: p.demo.client.client_id, scopes: PERMISSIONS });
    expect(text).not.toContain(p.demo.client.client_secret);
  });

  it('4.8-01 D8-06: list_accounts walks all pages of what REST has, in its order', async () => {
    const { json } = await p.call('GET', '/v1/accounts?limit=100', { token: await p.clientToken() });
    const walked: unknown[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const { given } = await agent.call('list_accounts', { limit: 7, include_total: true, ...(cursor && { cursor }) });
      expect(given.total).toBe(json.total);
      walked.push(...given.data);
      cursor = given.next_cursor;
    }
    expect(walked).toEqual(json.data);
    expect((await agent.call('get_account', { account_id: p.demo.account_id })).given).toEqual(
      json.data.find(({ id }: { id: string }) => id === p.demo.account_id),
    );
    expect((await agent.call('list_accounts', { search: 'no such name' })).given.data).toEqual([]);
  });

  it('D8-06: the text of a result is its structured content', async () => {
    const { given, text } = await agent.call('list_accounts', { limit: 2 });
    expect(JSON.parse(text)).toEqual(given);
  });

  it('D8-06: wallets and networks; an account is named to those who may read it', async () => {
    const { account_id, wallet_id, network_id, second_network_id, other_chain_network_id } = p.demo;
    const { given } = await agent.call('list_wallets', { account_id });
    expect(given.data).toContainEqual(expect.objectContaining({ id: wallet_id, account_id }));
    expect((await agent.call('get_wallet', { wallet_id: wallet_id.toUpperCase() })).given.id).toBe(wallet_id);
    await using narrow = await connect(p, await secretWith(p, ['wallets:read']));
    expect((await narrow.call('get_wallet', { wallet_id })).given.account_id).toBeNull();
    const networks = (await agent.call('list_networks')).given.data.map(({ id }: { id: string }) => id);
    expect(networks).toEqual(expect.arrayContaining([network_id, second_network_id, other_chain_network_id]));
    for (const id of [second_network_id, second_network_id]) {
      expect((await agent.call('assign_network', { wallet_id, network_id: id })).given.id).toBe(wallet_id);
    }
    const own = await agent.call('list_wallet_networks', { wallet_id, include_total: true });
    expect(own.given.data.map(({ id }: { id: string }) => id)).toContain(second_network_id);
    expect(own.given.total).toBe(own.given.data.length);
    const other = await agent.call('assign_network', { wallet_id, network_id: other_chain_network_id });
    expect(other.error).toEqual({
      code: 'invalid_arguments',
      issues: [expect.objectContaining({ path: 'network_id' })],
    });
  });

  it('D5-02 D5-03 D5-05 D8-06: rules are written and read without losing a digit, and versions hold', async () => {
    const rule = autoTransfer({}, { amount: MANY_DIGITS, rule_logic: leaf({ value: MANY_DIGITS, op: 'less_than' }) });
    const created = await createdRule(rule);
    expect(created.auto_transfer_rule).toMatchObject({
      amount: MANY_DIGITS,
      rule_logic: { op: 'lt', value: MANY_DIGITS },
    });
    const { wallet_id } = p.demo;
    const place = { wallet_id, rule_id: created.id };
    const replaced = await agent.call('replace_wallet_rule', {
      ...place,
      rule: limit({ name: 'Less' }),
      if_version: 1,
    });
    expect(replaced.given).toMatchObject({ name: 'Less', version: 2, auto_transfer_rule: null });
    const late = await agent.call('replace_wallet_rule', { ...place, rule: limit(), if_version: 1 });
    expect(late.error?.code).toBe('precondition_failed');
    for (const _again of [1, 2]) {
      const { given } = await agent.call('set_wallet_rule_status', { rule_id: created.id, status: 'disabled' });
      expect(given).toMatchObject({ status: 'disabled', version: 3 });
    }
    const read = (await agent.call('get_wallet_rule', { rule_id: created.id })).given;
    expect(read).toMatchObject({ name: 'Less', status: 'disabled' });
    expect((await agent.call('list_wallet_rules', { wallet_id, limit: 100 })).given.data).toContainEqual(read);
  });

  it('D5-02 D8-06: a page of long entries ends early, and the next one goes on', async () => {
    const leaves = Array.from({ length: 64 }, () => leaf({ field: 'balance.'.repeat(128) }));
    const created: string[] = [];
    for (let count = 0; count < 20; count += 1) {
      created.push((await createdRule(autoTransfer({}, { rule_logic: { and: leaves } }))).id);
    }
    const walked: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = { wallet_id: p.demo.wallet_id, limit: 100, ...(cursor && { cursor }) };
      const { given, text } = await agent.call('list_wallet_rules', page);
      expect(text.length).toBeLessThan(1_100_000);
      walked.push(...given.data.map(({ id }: { id: string }) => id));
      cursor = given.next_cursor;
    }
    expect(walked.slice(-created.length)).toEqual(created);
    expect(new Set(walked).size).toBe(walked.length);
  });

  it('DG-10 D8-06: preview_wallet_rule tells whether a rule fires, and why, for a stored one too', async () => {
    const currency = randomUUID();
    const rule_logic = leaf({ op: 'lt', value: '100.5', network_currency_id: currency });
    const rule = autoTransfer({ network_currency_id: currency }, { rule_logic });
    const balances = [{ field: 'balance.available', network_currency_id: currency, value: '100.49' }];
    const { given } = await agent.call('preview_wallet_rule', { rule, balances });
    expect(given.fires).toBe(true);
    expect(given.explanation).toContainEqual(
      expect.objectContaining({ expected: '100.5', actual: '100.49', result: true, reason: null }),
    );
    const { id: rule_id } = await createdRule(rule);
    const stored = await agent.call('preview_wallet_rule', { rule_id, balances: [] });
    expect(stored.given).toMatchObject({ fires: false, explanation: [{ actual: null, reason: expect.any(String) }] });
    const both = await agent.call('preview_wallet_rule', { rule_id, rule, balances });
    expect(both.error?.issues).toEqual([expect.objectContaining({ path: 'rule' })]);
  });

  it('D6-01: a type that the collection does not know is stored, flagged, and counted', async () => {
    const transaction_id = randomUUID();
    await agent.call('register_transaction', { transaction_id, collection: 'user_transactions', type: 1 });
    const { given: before } = await agent.call('get_transaction', { transaction_id });
    expect(before).toMatchObject({ type: 1, type_flagged: false });
    const { username, password } = p.webhook;
    const json = notification({ id: transaction_id, type: 11, status: 1 });
    await p.call('POST', '/v2/webhooks/custodial', { headers: { authorization: basic(username, password) }, json });
    await vi.waitFor(async () => {
      const { given } = await agent.call('get_transaction', { transaction_id });
      expect(given).toMatchObject({ status: 'Started', type: 11, type_name: null, type_flagged: true });
    });
    const told = await scrape(p.service);
    expect(told.value('portcullis_transactions_flagged_total', { collection: 'user_transactions' })).toBe(1);
  });

  it('D6-13 D8-06: transactions, how far they are, and what happened to them', async () => {
    const transaction_id = randomUUID();
    const registration = { transaction_id, collection: 'user_transactions', type: 1 };
    expect((await agent.call('register_transaction', registration)).given.status).toBeNull();
    expect((await agent.call('register_transaction', registration)).error).toBeUndefined();
    const other = await agent.call('register_transaction', { ...registration, type: 2 });
    expect(other.error?.code).toBe('duplicate_id');
    const { username, password } = p.webhook;
    const headers = { authorization: basic(username, password) };
    for (const status of [1, 3]) {
      const json = notification({ id: transaction_id, type: 1, status, gas_used: 21_000 });
      expect((await p.call('POST', '/v2/webhooks/custodial', { headers, json })).status).toBe(200);
    }
    await vi.waitFor(async () => {
      const { given } = await agent.call('get_transaction', { transaction_id });
      expect(given).toMatchObject({ status: 'Done', type_name: 'PurchaseOnPrimaryMarket', gas_used: '21000' });
    });
    const { given } = await agent.call('list_transaction_events', { transaction_id, include_total: true });
    expect(given.data.map(({ status }: { status: string }) => status).at(-1)).toBe('Done');
    expect(given.total).toBe(given.data.length);
    const filter = { status: 'Done', updated_since: '2020-01-01T00:00:00+01:00', collection: 'user_transactions' };
    const { data } = (await agent.call('list_transactions', filter)).given;
    expect(data.map(({ id }: { id: string }) => id)).toContain(transaction_id);
  });

  it('4.6-01 7.4-02 D8-06: users come in one by one, and a duplicate says what it is one of', async () => {
    const user = newUser({ name: 'Grace' });
    const { given } = await agent.call('migrate_user', user);
    expect(given).toMatchObject({ email: user.email, name: 'Grace', address: user.wallet_address.toLowerCase() });
    const again = await agent.call('migrate_user', { ...newUser(), email: user.email });
    expect(again.error?.code).toBe('duplicate_email');
    expect((await agent.call('migrate_user', { wallet_address: '0x1' })).error?.code).toBe(
      'missing_email_and_external_id',
    );
  });

  it('4.7-03 D7-09 D8-06: many users, and a file of them, become migrations with rows', async () => {
    const [one, two] = [newUser(), newUser()];
    const many = await agent.call('migrate_users', { users: [one, two, one] });
    expect(many.given).toMatchObject({ status: 'done', total: 3, success: 2, skipped: 1 });
    const rows = await agent.call('list_migration_rows', { migration_id: many.given.id });
    expect(rows.given.data[2]).toMatchObject({ index: 3, status: 'skipped', reason: 'duplicate_email' });
    const csv = `wallet_address,email\n0x${randomUUID()},${randomUUID()}@example.com\n`;
    const { given } = await agent.call('start_user_migration', { csv });
    await vi.waitFor(async () => {
      const { given: now } = await agent.call('get_migration', { migration_id: given.id });
      expect(now).toMatchObject({ status: 'done', success: 1, created_by: p.demo.client.client_id });
    });
    expect((await agent.call('cancel_user_migration', { migration_id: given.id })).error?.code).toBe(
      'precondition_failed',
    );
    const listed = (await agent.call('list_migrations', { limit: 2 })).given.data;
    expect(listed.map(({ id }: { id: string }) => id)).toEqual([given.id, many.given.id]);
    const bad = await agent.call('start_user_migration', { csv: 'a,b\n1,2\n' });
    expect(bad.error?.issues).toEqual([expect.objectContaining({ path: 'csv' })]);
  });

  it.each([
    ['sep=;\nwallet_address;email\n', 'begins with a line sep='],
    ['wallet_address,email\r0x1,a@x.y\r', 'ends its lines with a single CR'],
  ])('D7-12 D8-06: the text of a file %j is refused with the cause', async (csv, cause) => {
    const { error } = await agent.call('start_user_migration', { csv });
    expect(error?.issues).toEqual([{ path: 'csv', message: expect.stringContaining(cause) }]);
  });

  it('D7-09 D8-06: users are found, read and erased', async () => {
    const user = newUser({ surname: `Surname ${randomUUID()}` });
    const { id: user_id } = (await agent.call('migrate_user', user)).given;
    const found = await agent.call('list_users', { search: user.surname, include_total: true });
    expect(found.given).toMatchObject({ data: [{ id: user_id, email: user.email }], total: 1 });
    expect((await agent.call('erase_user', { user_id })).given).toMatchObject({ surname: '', email: '', address: '' });
    expect((await agent.call('get_user', { user_id })).given).toMatchObject({ id: user_id, email: '' });
  });

  it('D8-04 D8-06: tokenized assets', async () => {
    const { given } = await agent.call('get_asset', { asset_id: p.demo.asset_id });
    const rest = await p.call('GET', `/v2/admin/tokens/${p.demo.asset_id}`, { token: await p.clientToken() });
    expect(given).toEqual(rest.json);
    expect((await agent.call('list_assets')).given.data).toContainEqual(given);
  });

  it('D8-03 D8-06: gas fees in wei, as texts', async () => {
    const { data } = (await agent.call('list_gas_fees')).given;
    expect(data).toEqual([
      expect.objectContaining({ network_id: network, gas_price: '2000000002', chain_id: 1, error: null }),
    ]);
  });
});

import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { PERMISSIONS } from '../../src/access/identity/permissions.rules.ts';
import { fakeNode } from '../support/gas-fee/node.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startPortcullis } from '../support/harness.ts';
import { connect, post, secretWith, type ToolAnswer } from '../support/mcp/agents.ts';
import { scrape } from '../support/observability/scrape.ts';
import { notify, registered } from '../support/realtime/live.ts';
import { newUser } from '../support/user-migrations/calls.ts';
import { autoTransfer, leaf, limit } from '../support/wallet-rules/rules.ts';

const MANY_DIGITS = '0.123456789012345678901234567890';

const fake = beforeTests(fakeNode);
const p = beforeTests(() => startPortcullis({ env: { GAS_RPC_URLS: `${network}=${fake.url}` } }));
const agent = beforeTests(() => connect(p, p.demo.client.client_secret));
const network = randomUUID();

async function createdRule(rule: object = limit()): Promise<ToolAnswer['given']> {
  const { given, text } = await agent.call('create_wallet_rule', { wallet_id: p.demo.wallet_id, rule });
  expect(text).toContain('"version":1');
  return given;
}

describe('each tool', () => {
  it('D8-06: schema/tools.json is the list that an agent with every scope gets (npm run schema writes it)', async () => {
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const { json } = await post(p, p.demo.client.client_secret, list);
    const committed = await readFile(join(import.meta.dirname, '../../schema/tools.json'), 'utf8');
    expect(`${JSON.stringify(json.result, null, 2)}\n`).toBe(committed);
  });

  it('D8-06: get_access returns the node, the client and its scopes, and no secret', async () => {
    const { given, text } = await agent.call('get_access');
    expect(given).toMatchObject({ node_id: p.demo.node_id, client_id: p.demo.client.client_id, scopes: PERMISSIONS });
    expect(text).not.toContain(p.demo.client.client_secret);
  });

  it('4.8-01 D8-06: list_accounts returns all accounts of REST over its pages, in the same order', async () => {
    const { json } = await p.call('GET', '/v1/accounts?limit=100', { token: await p.clientToken() });
    const walked: unknown[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const { given } = await agent.call('list_accounts', { limit: 7, include_total: true, ...(cursor && { cursor }) });
      expect(given.total).toBe(json.total);
      walked.push(...given.data);
      cursor = given.next_cursor;
    }
    expect(walked).toEqual(json.data);
    const { account_id } = p.demo;
    expect((await agent.call('list_accounts', { account_id, include_total: true })).given).toEqual({
      data: [json.data.find(({ id }: { id: string }) => id === account_id)],
      next_cursor: null,
      total: 1,
    });
    expect((await agent.call('list_accounts', { search: 'no such name' })).given.data).toEqual([]);
  });

  it('D8-06: the text of a result is its structured content', async () => {
    const { given, text } = await agent.call('list_accounts', { limit: 2 });
    expect(JSON.parse(text)).toEqual(given);
  });

  it('D8-06: wallets and networks are listed and assigned; the account id is shown only with accounts:read', async () => {
    const { account_id, wallet_id, network_id, second_network_id, other_chain_network_id } = p.demo;
    const { given } = await agent.call('list_wallets', { account_id });
    expect(given.data).toContainEqual(expect.objectContaining({ id: wallet_id, account_id }));
    const one = (await agent.call('list_wallets', { wallet_id: wallet_id.toUpperCase() })).given.data;
    expect(one).toEqual([expect.objectContaining({ id: wallet_id, account_id })]);
    await using narrow = await connect(p, await secretWith(p, ['wallets:read']));
    expect((await narrow.call('list_wallets', { wallet_id })).given.data[0].account_id).toBeNull();
    await using none = await connect(p, await secretWith(p, []));
    expect((await none.call('list_networks', { wallet_id })).error?.code).toBe('forbidden');
    const networks = (await agent.call('list_networks')).given.data.map(({ id }: { id: string }) => id);
    expect(networks).toEqual(expect.arrayContaining([network_id, second_network_id, other_chain_network_id]));
    for (const id of [second_network_id, second_network_id]) {
      expect((await agent.call('assign_network', { wallet_id, network_id: id })).given.id).toBe(wallet_id);
    }
    const own = await agent.call('list_networks', { wallet_id, include_total: true });
    expect(own.given.data.map(({ id }: { id: string }) => id)).toContain(second_network_id);
    expect(own.given.total).toBe(own.given.data.length);
    const other = await agent.call('assign_network', { wallet_id, network_id: other_chain_network_id });
    expect(other.error).toEqual({
      code: 'invalid_arguments',
      issues: [expect.objectContaining({ path: 'network_id' })],
    });
  });

  it('D5-02 D5-03 D5-05 D8-06: rules are written and read without losing a digit, and an outdated version is rejected', async () => {
    const rule = autoTransfer({}, { amount: MANY_DIGITS, rule_logic: leaf({ value: MANY_DIGITS, op: 'less_than' }) });
    const created = await createdRule(rule);
    expect(created.auto_transfer_rule).toMatchObject({
      amount: MANY_DIGITS,
      rule_logic: { op: 'lt', value: MANY_DIGITS },
    });
    const { wallet_id } = p.demo;
    const place = { rule_id: created.id };
    const replaced = await agent.call('replace_wallet_rule', {
      ...place,
      rule: limit({ name: 'Less' }),
      if_version: 1,
    });
    expect(replaced.given).toMatchObject({ name: 'Less', version: 2, auto_transfer_rule: null });
    const late = await agent.call('replace_wallet_rule', { ...place, rule: limit(), if_version: 1 });
    expect(late.error?.code).toBe('precondition_failed');
    for (const _again of [1, 2]) {
      const { given } = await agent.call('replace_wallet_rule', { ...place, status: 'disabled' });
      expect(given).toMatchObject({ status: 'disabled', version: 3 });
    }
    const read = (await agent.call('get_wallet_rule', place)).given.rule;
    expect(read).toMatchObject({ name: 'Less', status: 'disabled' });
    expect((await agent.call('list_wallet_rules', { wallet_id, limit: 100 })).given.data).toContainEqual(read);
  });

  it('D5-02 D8-06: a page of long entries ends early, and the next page continues after it', async () => {
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

  it('DG-10 D8-06: preview_wallet_rule explains whether a rule fires, for a given and a stored rule', async () => {
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

  it('DG-16 D8-06: preview_wallet_rule lists which active rules of a wallet fire, and the unmet condition of others', async () => {
    const currency = randomUUID();
    const rule_logic = leaf({ op: 'lt', value: '100.5', network_currency_id: currency });
    const { id: first } = await createdRule(
      autoTransfer({ network_currency_id: currency, priority: 99 }, { rule_logic }),
    );
    const { id: second } = await createdRule(autoTransfer({ priority: 98 }, { rule_logic: { not: rule_logic } }));
    const balances = [{ field: 'balance.available', network_currency_id: currency, value: '100.49' }];
    const { given } = await agent.call('preview_wallet_rule', { wallet_id: p.demo.wallet_id, balances });
    expect(given.rules.slice(0, 2)).toEqual([
      expect.objectContaining({ rule_id: first, priority: 99, fires: true, unmet: null }),
      expect.objectContaining({ rule_id: second, fires: false, unmet: expect.objectContaining({ actual: '100.49' }) }),
    ]);
    const both = await agent.call('preview_wallet_rule', { rule_id: first, wallet_id: p.demo.wallet_id, balances });
    expect(both.error?.issues).toEqual([expect.objectContaining({ path: 'rule' })]);
  });

  it('D6-01: a type that is unknown in its collection is stored, flagged and counted', async () => {
    const [transaction_id = ''] = await registered(p, 1);
    const { given: before } = await agent.call('get_transaction', { transaction_id });
    expect(before).toMatchObject({ type: 1, type_flagged: false });
    await notify(p, transaction_id, 1, { type: 11 });
    await vi.waitFor(async () => {
      const { given } = await agent.call('get_transaction', { transaction_id });
      expect(given).toMatchObject({ status: 'Started', type: 11, type_name: null, type_flagged: true });
    });
    const told = await scrape(p.service);
    expect(told.value('portcullis_transactions_flagged_total', { collection: 'user_transactions' })).toBe(1);
  });

  it('D8-06: transactions are read with their status, their events and by filter', async () => {
    const [transaction_id = ''] = await registered(p, 1);
    expect((await agent.call('get_transaction', { transaction_id })).given.status).toBeNull();
    for (const status of [1, 3]) await notify(p, transaction_id, status, { gas_used: 21_000 });
    await vi.waitFor(async () => {
      const { given } = await agent.call('get_transaction', { transaction_id });
      expect(given).toMatchObject({ status: 'Done', type_name: 'PurchaseOnPrimaryMarket', gas_used: '21000' });
      expect(given).not.toHaveProperty('events');
    });
    const first = (await agent.call('get_transaction', { transaction_id, events: 1 })).given.events;
    const rest = (await agent.call('get_transaction', { transaction_id, cursor: first.next_cursor })).given.events;
    const statuses = [...first.data, ...rest.data].map(({ status }: { status: string }) => status);
    expect([first.data.length, statuses.at(-1)]).toEqual([1, 'Done']);
    const filter = { status: 'Done', updated_since: '2020-01-01T00:00:00+01:00', collection: 'user_transactions' };
    const { data } = (await agent.call('list_transactions', filter)).given;
    expect(data.map(({ id }: { id: string }) => id)).toContain(transaction_id);
  });

  it('4.7-03 D7-09 D8-06: migrate_users creates a migration whose rows name the reason of each duplicate', async () => {
    const [one, two] = [newUser({ name: 'Grace', surname: `Surname ${randomUUID()}` }), newUser()];
    const many = await agent.call('migrate_users', { users: [one, two, one] });
    expect(many.given).toMatchObject({ status: 'done', total: 3, success: 2, skipped: 1 });
    expect(many.given.created_by).toBe(p.demo.client.client_id);
    expect(many.given.rows.data[2]).toMatchObject({ index: 3, status: 'skipped', reason: 'duplicate_email' });
    const { rows, ...summary } = many.given;
    expect((await agent.call('get_migration')).given).toEqual(summary);
    expect((await agent.call('get_migration', { migration_id: summary.id, rows: 3 })).given.rows).toEqual(rows);
    const user_id = rows.data[0].user_id;
    const found = await agent.call('list_users', { search: one.surname, include_total: true });
    expect(found.given).toMatchObject({ data: [{ id: user_id, email: one.email, name: 'Grace' }], total: 1 });
    expect((await agent.call('list_users', { user_id })).given.data).toEqual(found.given.data);
  });

  it('D8-03 D8-06: list_gas_fees returns fees in wei, as strings', async () => {
    const { data } = (await agent.call('list_gas_fees')).given;
    expect(data).toEqual([
      expect.objectContaining({ network_id: network, gas_price: '2000000002', chain_id: 1, error: null }),
    ]);
  });
});

import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { beforeTests } from '../support/harness/before-tests.ts';
import { startPortcullis } from '../support/harness.ts';
import { connect } from '../support/mcp/agents.ts';

/** More than the preview of a wallet by 50 facts costs (320 for each thousand, and 80), and less than that by 70. */
const MAX_COST = 100;

const p = beforeTests(() => startPortcullis({ env: { GRAPHQL_MAX_COST: String(MAX_COST) } }));
const agent = beforeTests(() => connect(p, p.demo.client.client_secret));

const balances = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ field: `b${at}`, network_currency_id: randomUUID(), value: '1' }));
const transfers = (count: number) =>
  Array.from({ length: count }, () => ({ network_currency_id: randomUUID(), amount: '1', at: '2026-11-21T10:30:00Z' }));

it('D6-26: a wallet preview costs the same through a tool and through GraphQL, and is rejected at the same cost', async () => {
  const { wallet_id } = p.demo;
  const query = 'query ($id: ID!, $f: PreviewFacts!) { previewWallet(walletId: $id, facts: $f) { rules { name } } }';
  const token = await p.loginToken();
  for (const [few, many, isAllowed] of [
    [50, 0, true],
    [25, 25, true],
    [70, 0, false],
    [0, 70, false],
  ] as const) {
    const facts = { balances: balances(few), transfers: transfers(many) };
    const { error, text } = await agent.call('preview_wallet_rule', { wallet_id, ...facts });
    const f = {
      balances: facts.balances.map(({ network_currency_id: networkCurrencyId, ...one }) => ({
        ...one,
        networkCurrencyId,
      })),
      transfers: facts.transfers.map(({ network_currency_id: networkCurrencyId, ...one }) => ({
        ...one,
        networkCurrencyId,
      })),
    };
    const { json } = await p.call('POST', '/graphql', { token, json: { query, variables: { id: wallet_id, f } } });
    expect([error?.code, json.errors?.[0].extensions.code]).toEqual(
      isAllowed ? [undefined, undefined] : ['limit_exceeded', 'LIMIT_EXCEEDED'],
    );
    if (!isAllowed) expect(text).toMatch(/the cost is 103; at most 100 is allowed: pass fewer balances/);
  }
});

it('D6-26: a preview of one rule has no cost limit', async () => {
  const { error } = await agent.call('preview_wallet_rule', { rule_id: randomUUID(), balances: balances(1_000) });
  expect(error?.code).toBe('not_found');
});

import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { type RuleWarning, warningsOf } from '../../src/features/wallet-rules/evaluate.rules.ts';
import type { WalletRuleContent } from '../../src/tables/wallet-rule-content.ts';
import { usePortcullis } from '../support/harness.ts';
import { callOf, post } from '../support/mcp/agents.ts';
import { addBitcoin } from '../support/wallet-rules/bitcoin.ts';
import { autoTransfer, leaf, limit, rulesOf } from '../support/wallet-rules/rules.ts';

const ID = 'aaaaaaaa-0000-4000-8000-00000000000a';
const BITCOIN = { chain: 'bitcoin' };
const ETHEREUM = { chain: 'ethereum' };
const CURRENCY = { network_id: ID };
const TARGET = 'auto_transfer_rule.target_wallet_id';

const transfer = (type = 'auto', more = {}) =>
  ({
    ...autoTransfer({ network_id: ID.toUpperCase(), ...more }, { type }),
    network_currency_id: ID,
  }) as unknown as WalletRuleContent;

describe('the warnings about a rule', () => {
  const fitting = { wallet: BITCOIN, network: BITCOIN, currency: CURRENCY, target: BITCOIN };

  it.each([
    ['nothing, if all is on one chain', transfer(), fitting, []],
    ['nothing about a wallet that is not known', transfer(), { ...fitting, wallet: undefined }, []],
    ['a wallet on another chain than the network', transfer(), { ...fitting, wallet: ETHEREUM }, ['network_id']],
    ['a target wallet on another chain', transfer(), { ...fitting, target: ETHEREUM }, [TARGET]],
    ['a target wallet that does not exist', transfer(), { ...fitting, target: undefined }, [TARGET]],
    [
      'a currency of another network',
      transfer(),
      { ...fitting, currency: { network_id: randomUUID() } },
      ['network_currency_id'],
    ],
    [
      'a network and a currency that do not exist',
      transfer(),
      { ...fitting, network: undefined, currency: undefined },
      ['network_id', 'network_currency_id'],
    ],
    ['an approval by nobody', transfer('auto_with_approve'), fitting, ['auto_transfer_rule.type']],
    ['nothing, if somebody approves', transfer('auto_with_approve', { sign_and_approve_rule: {} }), fitting, []],
    [
      'nothing about the transfer of a limit',
      {
        ...transfer('auto_with_approve'),
        ...(limit() as object),
        network_id: ID,
        type: 'permissionless_transfer_limit' as const,
      },
      { ...fitting, target: undefined },
      [],
    ],
  ])('name %s', (_what, rule, referred, paths) => {
    expect(warningsOf(rule as WalletRuleContent, referred).map(({ path }) => path)).toEqual(paths);
  });
});

describe('a rule that pays from bitcoin to ethereum', () => {
  const p = usePortcullis();
  let bitcoin: Awaited<ReturnType<typeof addBitcoin>>;
  let rule: Record<string, unknown>;

  beforeAll(async () => {
    bitcoin = await addBitcoin(p);
    const { network_id, currency_id: network_currency_id } = bitcoin;
    const own = { rule_logic: leaf({ network_currency_id }), target_wallet_id: p.demo.target_wallet_id };
    rule = autoTransfer({ network_id, network_currency_id }, own);
  });

  const EXPECTED: RuleWarning = {
    path: TARGET,
    message: 'the target wallet is on ethereum, but the network is on bitcoin',
  };

  const graphql = async (input: object) => {
    const query =
      'query ($i: PreviewWalletRuleInput!) { previewWalletRule(input: $i) { fires warnings { path message } } }';
    const token = await p.clientToken();
    return (await p.call('POST', '/graphql', { token, json: { query, variables: { i: { balances: [], ...input } } } }))
      .json;
  };
  const tool = async (args: object) =>
    (await post(p, p.demo.client.client_secret, callOf('preview_wallet_rule', { balances: [], ...args }))).json.result;

  it('is stored by REST, and its preview over GraphQL and MCP has a warning', async () => {
    const id = await rulesOf(p, await p.clientToken()).created(rule);
    const ofGraphql = (await graphql({ ruleId: id })).data.previewWalletRule.warnings;
    const atEthereum = { path: 'network_id', message: 'the wallet is on ethereum, but the network is on bitcoin' };
    expect(ofGraphql).toEqual([atEthereum, EXPECTED]);
    expect((await tool({ rule_id: id })).structuredContent.warnings).toEqual(ofGraphql);
  });

  it('has the warning before it is stored, and considers the wallet that it is for', async () => {
    const { network_id: networkId, network_currency_id: networkCurrencyId, auto_transfer_rule: own, ...more } = rule;
    const { rule_logic: ruleLogic, target_wallet_id: targetWalletId, ...transferred } = own as Record<string, unknown>;
    const input = {
      ...more,
      networkId,
      networkCurrencyId,
      autoTransferRule: { ...transferred, ruleLogic, targetWalletId },
    };
    for (const [walletId, expected] of [
      [undefined, [EXPECTED]],
      [bitcoin.wallet_id, [EXPECTED]],
      [p.demo.wallet_id, [expect.objectContaining({ path: 'network_id' }), EXPECTED]],
      [p.demo.other_node.wallet_id, [EXPECTED]],
    ] as const) {
      expect((await graphql({ rule: input, walletId })).data.previewWalletRule.warnings).toEqual(expected);
      const { structuredContent } = await tool({ rule, wallet_id: walletId });
      expect(structuredContent.warnings).toEqual(expected);
    }
  });
});

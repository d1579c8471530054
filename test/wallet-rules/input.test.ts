import { describe, expect, it } from 'vitest';
import { camelInput } from '../../src/api/graphql/kit/builder.ts';
import { walletRuleInput, walletRuleTextInput } from '../../src/features/wallet-rules/wallet-rule.input.ts';
import { ExactNumber } from '../../src/lib/json.ts';
import { issuesOf } from '../../src/platform/errors.ts';
import { autoTransfer, leaf, limit, nested } from '../support/wallet-rules/rules.ts';

type Members = Record<string, unknown>;

function faultsOf(body: unknown): string[] {
  const parsed = walletRuleInput.safeParse(body);
  return parsed.success ? [] : issuesOf(parsed.error, body).map(({ path }) => path);
}

const auto = (own: Members) => autoTransfer({}, own);
const approval = (sign_and_approve_rule: unknown) => limit({ sign_and_approve_rule });
const logic = (rule_logic: unknown) => auto({ rule_logic });

const LOGIC = 'auto_transfer_rule.rule_logic';
const LIMIT = 'permissionless_transfer_limit_rule';

/** A clause, what is wrong, the body, and the path that is told. */
const invalid: [string, string, unknown, string][] = [
  ['2.6-01', 'no name', limit({ name: undefined }), 'name'],
  ['2.6-01', 'a name that is null', limit({ name: null }), 'name'],
  ['2.6-01', 'a name that is a number', limit({ name: 1 }), 'name'],
  ['2.6-02', 'no type', limit({ type: undefined }), 'type'],
  ['2.6-02', 'another type', limit({ type: 'sign_and_approve' }), 'type'],
  ['2.6-02', 'a type in another case', limit({ type: 'Auto_Transfer' }), 'type'],
  ['2.6-03', 'no network', limit({ network_id: undefined }), 'network_id'],
  ['2.6-03 D5-06', 'a network that is no UUID', limit({ network_id: 'eth' }), 'network_id'],
  ['2.6-04', 'no currency', limit({ network_currency_id: undefined }), 'network_currency_id'],
  ['2.6-04 D5-06', 'a currency that is no UUID', limit({ network_currency_id: 'eurc' }), 'network_currency_id'],
  ['2.6-05', 'a priority of 0', limit({ priority: 0 }), 'priority'],
  ['2.6-05', 'a priority of 101', limit({ priority: 101 }), 'priority'],
  ['2.6-05', 'a priority with a fraction', limit({ priority: 1.5 }), 'priority'],
  ['2.6-05', 'a priority that is a text', limit({ priority: '5' }), 'priority'],
  ['2.6-06', 'no automatic transfer', autoTransfer({ auto_transfer_rule: undefined }), 'auto_transfer_rule'],
  [
    '2.6-06 D2-18',
    'an automatic transfer that is null',
    autoTransfer({ auto_transfer_rule: null }),
    'auto_transfer_rule',
  ],
  ['2.6-06', 'the object of the other type alone', { ...limit(), type: 'auto_transfer' }, 'auto_transfer_rule'],
  ['2.6-07', 'no limit', limit({ [LIMIT]: undefined }), LIMIT],
  ['2.6-07', 'the object of the other type alone', { ...autoTransfer(), type: 'permissionless_transfer_limit' }, LIMIT],
  ['2.6-08', 'no kind of transfer', auto({ type: undefined }), 'auto_transfer_rule.type'],
  ['2.6-08', 'another kind of transfer', auto({ type: 'manual' }), 'auto_transfer_rule.type'],
  ['2.6-09', 'no conditions', logic(undefined), LOGIC],
  ['2.6-09', 'conditions that are a list', logic([leaf()]), LOGIC],
  ['2.6-09', 'conditions that are a text', logic('balance < 5'), LOGIC],
  ['2.6-09', 'no field', logic(leaf({ field: undefined })), `${LOGIC}.field`],
  ['2.6-09', 'a field that is a number', logic(leaf({ field: 5 })), `${LOGIC}.field`],
  ['2.6-09', 'no operator', logic(leaf({ op: undefined })), `${LOGIC}.op`],
  ['2.6-09 D5-02', 'an unknown operator', logic(leaf({ op: 'like' })), `${LOGIC}.op`],
  ['2.6-09', 'an operator that is a list', logic(leaf({ op: ['lt'] })), `${LOGIC}.op`],
  ['2.6-09', 'no value', logic(leaf({ value: undefined })), `${LOGIC}.value`],
  ['2.6-09', 'a value that is a text', logic(leaf({ value: '5' })), `${LOGIC}.value`],
  ['2.6-09 D5-03', 'a value beyond the limits', logic(leaf({ value: 1e79 })), `${LOGIC}.value`],
  ['2.6-09', 'no currency', logic(leaf({ network_currency_id: undefined })), `${LOGIC}.network_currency_id`],
  [
    '2.6-09 D5-06',
    'a currency that is no UUID',
    logic(leaf({ network_currency_id: 'x' })),
    `${LOGIC}.network_currency_id`,
  ],
  ['D5-02', 'a group of nothing', logic({ and: [] }), `${LOGIC}.and`],
  ['D5-02', 'a group that is no list', logic({ or: leaf() }), `${LOGIC}.or`],
  ['D5-02', 'a negation that is a list', logic({ not: [leaf()] }), `${LOGIC}.not`],
  ['D5-02', 'two groups in one', logic({ and: [leaf()], or: [leaf()] }), LOGIC],
  ['D5-02', 'a group and a condition in one', logic({ and: [leaf()], field: 'x' }), LOGIC],
  [
    'D5-02',
    'a fault deep inside',
    logic({ and: [leaf(), { or: [{ not: leaf({ op: 1 }) }] }] }),
    `${LOGIC}.and[1].or[0].not.op`,
  ],
  ['D5-02', 'a null in a group', logic({ and: [leaf(), null] }), `${LOGIC}.and[1]`],
  ['D5-02', 'nine levels', logic(nested(9)), `${LOGIC}${'.not'.repeat(8)}`],
  ['D5-02', '65 conditions', logic({ and: Array.from({ length: 65 }, () => leaf()) }), LOGIC],
  ['2.6-10', 'no amount', auto({ amount: undefined }), 'auto_transfer_rule.amount'],
  ['2.6-10', 'an amount of 0', auto({ amount: 0 }), 'auto_transfer_rule.amount'],
  ['2.6-10', 'a negative amount', auto({ amount: -0.001 }), 'auto_transfer_rule.amount'],
  ['2.6-10', 'an amount that is a text', auto({ amount: '5' }), 'auto_transfer_rule.amount'],
  [
    '2.6-10 D5-03',
    'an amount beyond the limits',
    auto({ amount: new ExactNumber('1e999') }),
    'auto_transfer_rule.amount',
  ],
  ['2.6-11', 'no target', auto({ target_wallet_id: undefined }), 'auto_transfer_rule.target_wallet_id'],
  ['2.6-11 D5-06', 'a target that is no UUID', auto({ target_wallet_id: 'x' }), 'auto_transfer_rule.target_wallet_id'],
  ['2.6-12', 'an approval that is false', approval(false), 'sign_and_approve_rule'],
  ['2.6-12', 'an approval that is a list', approval([]), 'sign_and_approve_rule'],
  [
    '2.6-13 D5-06',
    'a user who is no UUID',
    approval({ mandatory_user_id: 'ada' }),
    'sign_and_approve_rule.mandatory_user_id',
  ],
  ['2.6-14', 'a least priority of 0', approval({ min_priority: 0 }), 'sign_and_approve_rule.min_priority'],
  ['2.6-14', 'a highest priority of 101', approval({ max_priority: 101 }), 'sign_and_approve_rule.max_priority'],
  ['2.6-15', 'no approver', approval({ min_user_count: 0 }), 'sign_and_approve_rule.min_user_count'],
  ['2.6-15', 'half an approver', approval({ min_user_count: 0.5 }), 'sign_and_approve_rule.min_user_count'],
  ['2.6-16', 'no most', limit({}, { max_amount: undefined }), `${LIMIT}.max_amount`],
  ['2.6-16', 'a most of 0', limit({}, { max_amount: 0 }), `${LIMIT}.max_amount`],
  ['2.6-16', 'a most with a fraction', limit({}, { max_amount: 1.5 }), `${LIMIT}.max_amount`],
  ['2.6-16', 'a most that is a text', limit({}, { max_amount: '1000' }), `${LIMIT}.max_amount`],
  ['2.6-16', 'a most that is true', limit({}, { max_amount: true }), `${LIMIT}.max_amount`],
  ['2.6-16', 'a most of -0', limit({}, { max_amount: -0 }), `${LIMIT}.max_amount`],
  ['2.6-16', 'a most of 79 digits', limit({}, { max_amount: new ExactNumber('9'.repeat(79)) }), `${LIMIT}.max_amount`],
  ['2.6-17', 'no period', limit({}, { time_period: undefined }), `${LIMIT}.time_period`],
  ['2.6-17', 'another period', limit({}, { time_period: 'minute' }), `${LIMIT}.time_period`],
  ['2.6-18', 'no number of periods', limit({}, { time_period_value: undefined }), `${LIMIT}.time_period_value`],
  ['2.6-18', 'no periods', limit({}, { time_period_value: 0 }), `${LIMIT}.time_period_value`],
  ['2.6-18', 'periods beyond an integer', limit({}, { time_period_value: 2 ** 31 }), `${LIMIT}.time_period_value`],
  ['2.6-18', 'periods that are a text', limit({}, { time_period_value: '1' }), `${LIMIT}.time_period_value`],
  ['2.6-18', 'half a period', limit({}, { time_period_value: 0.5 }), `${LIMIT}.time_period_value`],
  [
    'D5-04',
    'the other object, at fault',
    limit({ auto_transfer_rule: auto({ rule_logic: 1 }).auto_transfer_rule }),
    LOGIC,
  ],
  ['2.6-01 D7-13', 'a name of 1,025 characters', limit({ name: '💶'.repeat(1_025) }), 'name'],
  ['D7-13', 'a field of 1,025 characters', logic(leaf({ field: 'f'.repeat(1_025) })), `${LOGIC}.field`],
  ['D2-22', 'a name with U+0000', limit({ name: 'a\0b' }), 'name'],
  ['D2-22', 'a name with a lone surrogate', limit({ name: '\ud800' }), 'name'],
  ['D2-22', 'a field with U+0000', logic(leaf({ field: '\0' })), `${LOGIC}.field`],
];

const valid: [string, string, unknown][] = [
  ['2.6-01', 'an empty name', limit({ name: '' })],
  ['2.6-01', 'a long name', limit({ name: '💶'.repeat(1_024) })],
  ['2.6-05', 'the least priority', limit({ priority: 1 })],
  ['2.6-05', 'the highest priority', limit({ priority: 100 })],
  ['2.6-08', 'a transfer that waits for an approval', auto({ type: 'auto_with_approve' })],
  ['2.6-09', 'a value below 0', logic(leaf({ value: -5.5 }))],
  ['D5-02', 'eight levels', logic(nested(8))],
  ['D5-02', '64 conditions', logic({ and: Array.from({ length: 64 }, () => leaf()) })],
  ['D5-04', 'unknown members at any place', { ...logic(leaf({ note: 'x' })), extra: { deep: [1] } }],
  ['2.6-10', 'a small amount', auto({ amount: 1e-78 })],
  ['2.6-16', 'a large most', limit({}, { max_amount: new ExactNumber('9'.repeat(78)) })],
  ['2.6-16', 'a most of 1.0e3', limit({}, { max_amount: new ExactNumber('1.0e3') })],
  ...['hour', 'day', 'week', 'month', 'year'].map((time_period): [string, string, unknown] => [
    '2.6-17',
    time_period,
    limit({}, { time_period }),
  ]),
  [
    'D2-18',
    'null for what is optional',
    limit({ priority: null, sign_and_approve_rule: null, auto_transfer_rule: null }),
  ],
  ['D2-18', 'null in a condition and an approval', approval({ mandatory_user_id: null, min_priority: null })],
  ['D2-18', 'null for the groups of a condition', logic(leaf({ and: null, or: null, not: null }))],
];

describe('the input of a wallet rule', () => {
  it.each(invalid)('%s: %s is rejected, with the path of the member', (_clauses, _what, body, path) => {
    expect(faultsOf(body)).toEqual([path]);
  });

  it.each(valid)('%s: %s is accepted', (_clauses, _what, body) => {
    expect(faultsOf(body)).toEqual([]);
  });

  it('D2-13: all errors are reported at once', () => {
    expect(faultsOf({ type: 'auto_transfer', priority: 0, sign_and_approve_rule: { min_user_count: 0 } })).toEqual([
      'name',
      'network_id',
      'network_currency_id',
      'priority',
      'sign_and_approve_rule.min_user_count',
      'auto_transfer_rule',
    ]);
  });

  it('D5-02: a very deep or wide tree causes one error', () => {
    const broad = { and: Array.from({ length: 100_000 }, () => ({ or: [] })) };
    let deep: unknown = 1;
    for (let level = 0; level < 100_000; level += 1) deep = { not: deep };
    for (const tree of [broad, deep, { or: [deep, broad] }]) expect(faultsOf(logic(tree))).toHaveLength(1);
  });
});

describe('the input of a wallet rule in GraphQL', () => {
  const input = camelInput(walletRuleTextInput);
  const good = {
    name: '',
    type: 'auto_transfer',
    networkId: 'AAAAAAAA-0000-4000-8000-000000000001',
    networkCurrencyId: 'aaaaaaaa-0000-4000-8000-000000000001',
    autoTransferRule: {
      type: 'auto',
      ruleLogic: leaf({ value: '0.10' }),
      amount: new ExactNumber('1.0'),
      targetWalletId: 'aaaaaaaa-0000-4000-8000-000000000001',
    },
  };

  it('DG-07: accepts camelCase, and decimals in condition trees as texts too', () => {
    expect(input.parse(good)).toMatchObject({
      network_id: good.networkCurrencyId,
      auto_transfer_rule: { amount: '1.0', rule_logic: { value: '0.10', op: 'lt' } },
    });
  });

  it('DG-07: reports paths in camelCase, except inside ruleLogic, which uses the names of REST', () => {
    const ruleLogic = { and: [leaf({ network_currency_id: 'x' }), { networkCurrencyId: 'x' }] };
    const own = { ...good.autoTransferRule, ruleLogic, targetWalletId: 'x' };
    const { error } = input.safeParse({ ...good, networkCurrencyId: 'x', autoTransferRule: own });
    const inLogic = ['autoTransferRule', 'ruleLogic', 'and'];
    expect(error?.issues.map(({ path }) => path)).toEqual([
      ['networkCurrencyId'],
      [...inLogic, 0, 'network_currency_id'],
      ...['field', 'op', 'value', 'network_currency_id'].map((name) => [...inLogic, 1, name]),
      ['autoTransferRule', 'targetWalletId'],
    ]);
  });
});

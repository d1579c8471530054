import { beforeAll, describe, expect, it } from 'vitest';
import { useFixture } from '../support/graphql/fixture.ts';
import {
  CreateWalletRuleDocument,
  ReplaceWalletRuleDocument,
  SetWalletRuleStatusDocument,
  WalletRuleDocument,
  type WalletRuleInput,
} from './generated/graphql.ts';

const ID = 'aaaaaaaa-0000-4000-8000-00000000000a';
const MISSING = 'ffffffff-0000-4000-8000-00000000000f';
const FORTY = '1234567890123456789012345678901234567890';
const LEAF = { field: 'balance', op: 'less-than', value: 100, network_currency_id: ID };

const fixture = useFixture();
let wallet: string;

beforeAll(async () => {
  const [account = ''] = await fixture.addAccounts(1);
  [wallet = ''] = await fixture.addWallets(account, 1);
});

function autoTransfer(changes: Partial<WalletRuleInput> = {}, own: object = {}): WalletRuleInput {
  const autoTransferRule = { type: 'auto', ruleLogic: LEAF, amount: '50', targetWalletId: ID, ...own };
  return { name: 'Top up', type: 'auto_transfer', networkId: ID, networkCurrencyId: ID, autoTransferRule, ...changes };
}

function limit(changes: Partial<WalletRuleInput> = {}): WalletRuleInput {
  const permissionlessTransferLimitRule = { maxAmount: '1000', timePeriod: 'day', timePeriodValue: 1 };
  const type = 'permissionless_transfer_limit';
  return { name: '', type, networkId: ID, networkCurrencyId: ID, permissionlessTransferLimitRule, ...changes };
}

async function create(input: WalletRuleInput, walletId = wallet, token = fixture.token) {
  return (await fixture.run(CreateWalletRuleDocument, { walletId, input }, { token })).result;
}

async function created(input: WalletRuleInput = limit(), walletId = wallet, token = fixture.token) {
  const rule = await create(input, walletId, token);
  if (rule.__typename !== 'WalletRule') throw new Error(JSON.stringify(rule));
  return rule;
}

async function replace(
  id: string,
  input: WalletRuleInput,
  more: { walletId?: string; ifVersion?: number | null } = {},
) {
  return (await fixture.run(ReplaceWalletRuleDocument, { walletId: wallet, id, input, ...more })).result;
}

describe('createWalletRule', () => {
  it('DG-01 D5-05: returns the rule in its read shape, with unused members as null', async () => {
    const signAndApproveRule = { minPriority: 9, maxPriority: 3 };
    const rule = await created(autoTransfer({ networkId: ID.toUpperCase(), priority: 7, signAndApproveRule }));
    expect(rule).toEqual({
      __typename: 'WalletRule',
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      walletId: wallet,
      name: 'Top up',
      type: 'auto_transfer',
      networkId: ID,
      networkCurrencyId: ID,
      priority: 7,
      status: 'ACTIVE',
      version: 1,
      autoTransferRule: { type: 'auto', ruleLogic: { ...LEAF, op: 'lt' }, amount: '50', targetWalletId: ID },
      signAndApproveRule: { mandatoryUserId: null, minPriority: 9, maxPriority: 3, minUserCount: null },
      permissionlessTransferLimitRule: null,
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updatedAt: rule.createdAt,
    });
    expect((await fixture.run(WalletRuleDocument, { id: rule.id.toUpperCase() })).walletRule).toMatchObject({
      id: rule.id,
      version: 1,
    });
  });

  it.each([
    ['a variable that is a string', `"${FORTY}.${FORTY.slice(2)}"`, `${FORTY}.${FORTY.slice(2)}`],
    ['a variable that is a number', `${FORTY}.${FORTY.slice(2)}`, `${FORTY}.${FORTY.slice(2)}`],
    ['a small number', '0.1', '0.1'],
    ['a number with an exponent', '1e3', '1000'],
    ['a string with an exponent', '"25E-1"', '2.5'],
  ])('DG-07 D5-03: no digit of %s is lost', async (_what, given, text) => {
    const document = `mutation ($walletId: ID!, $input: WalletRuleInput!) {
      createWalletRule(walletId: $walletId, input: $input) {
        ... on WalletRule { autoTransferRule { amount ruleLogic } }
      }
    }`;
    const own = { amount: 'HERE', ruleLogic: { and: [{ ...LEAF, value: 'HERE' }] } };
    const variables = { walletId: wallet, input: autoTransfer({}, own) };
    const answer = await fixture.post(JSON.stringify({ query: document, variables }).replaceAll('"HERE"', given));
    expect(answer.text).toContain(`"amount":"${text}"`);
    expect(answer.text).toContain(`"value":${text},`);
  });

  it('DG-07 D5-03: no digit is lost in literals of the document, and in variables inside them', async () => {
    const { text } = await fixture.query(
      `mutation ($currency: JSON) {
        createWalletRule(walletId: "${wallet}", input: {
          name: "x", type: "auto_transfer", networkId: "${ID}", networkCurrencyId: "${ID}",
          autoTransferRule: { type: "auto", amount: ${FORTY}, targetWalletId: "${ID}", ruleLogic: {
            not: { field: "x", op: ">", value: -${FORTY}.5, network_currency_id: $currency, unknown: [null, true, A, 1.5] }
          } }
        }) { ... on WalletRule { autoTransferRule { amount ruleLogic } } ... on ValidationError { issues { path message } } }
      }`,
      { variables: { currency: ID } },
    );
    expect(text).toContain(`"amount":"${FORTY}"`);
    expect(text).toContain(`"value":-${FORTY}.5`);
    expect(text).toContain('"op":"gt"');
    expect(text).not.toContain('unknown');
  });

  it.each([
    ['an invalid Decimal', '"five"'],
    ['a Decimal with a space', '" 5"'],
    ['a Decimal that is true', 'true'],
    ['a Decimal that is a list', '[[5]]'],
    ['an Int with too many digits', `5, "priority": ${FORTY}`],
  ])('DG-07: %s is a client error, not an internal one', async (_what, given) => {
    const own = { amount: 'HERE' };
    const body = JSON.stringify({
      query: 'mutation ($w: ID!, $i: WalletRuleInput!) { createWalletRule(walletId: $w, input: $i) { __typename } }',
      variables: { w: wallet, i: autoTransfer({}, own) },
    }).replace('"HERE"', given);
    const { status, json } = await fixture.post(body);
    expect(status).toBe(400);
    expect(json.errors[0].message).toMatch(/Decimal must be a number|priority/);
    expect(fixture.faults).toEqual([]);
  });

  const DEEP = `${'{"not":'.repeat(10_000)}1${'}'.repeat(10_000)}`;

  it.each([
    ['conditions 10,000 deep', DEEP, [['autoTransferRule', 'ruleLogic', ...Array(8).fill('not')]]],
    [
      'conditions of __proto__',
      `{"__proto__":${JSON.stringify(LEAF)}}`,
      ['field', 'op', 'value', 'network_currency_id'].map((name) => ['autoTransferRule', 'ruleLogic', name]),
    ],
    ['a field with U+0000', JSON.stringify({ ...LEAF, field: '\0' }), [['autoTransferRule', 'ruleLogic', 'field']]],
    [
      'camelCase inside of ruleLogic',
      JSON.stringify({ field: 'x', op: 'lt', value: 1, networkCurrencyId: ID }),
      [['autoTransferRule', 'ruleLogic', 'network_currency_id']],
    ],
  ])('D2-22 D5-02 DG-07: %s: a ValidationError, not an internal error', async (_what, ruleLogic, paths) => {
    const body = JSON.stringify({
      query: `mutation ($w: ID!, $i: WalletRuleInput!) {
        createWalletRule(walletId: $w, input: $i) { __typename ... on ValidationError { issues { path } } }
      }`,
      variables: { w: wallet, i: autoTransfer({}, { ruleLogic: 'HERE' }) },
    }).replace('"HERE"', ruleLogic);
    const { json } = await fixture.post(body);
    const { __typename, issues } = json.data.createWalletRule;
    expect(__typename).toBe('ValidationError');
    expect(issues.map((issue: { path: string[] }) => issue.path)).toEqual(paths);
    expect(fixture.faults).toEqual([]);
  });
});

describe('replaceWalletRule', () => {
  it('D5-05: replaces in full and raises the version, and keeps the status', async () => {
    const { id, createdAt } = await created(autoTransfer({ priority: 7, signAndApproveRule: {} }));
    await fixture.run(SetWalletRuleStatusDocument, { id, status: 'DISABLED' });
    expect(await replace(id, limit())).toMatchObject({
      __typename: 'WalletRule',
      type: 'permissionless_transfer_limit',
      priority: null,
      status: 'DISABLED',
      version: 3,
      autoTransferRule: null,
      signAndApproveRule: null,
      permissionlessTransferLimitRule: { maxAmount: '1000', timePeriod: 'day', timePeriodValue: 1 },
      createdAt,
    });
  });

  it('D5-05 D2-19: with ifVersion succeeds only at that version', async () => {
    const { id } = await created();
    for (const ifVersion of [0, 2, -1]) {
      expect((await replace(id, limit(), { ifVersion })).__typename).toBe('PreconditionError');
    }
    expect(await replace(id, limit(), { ifVersion: 1 })).toMatchObject({ version: 2 });
    expect(await replace(id, limit(), { ifVersion: null })).toMatchObject({ version: 3 });
  });

  it('4.3-02: a ValidationError takes precedence over a NotFoundError', async () => {
    expect((await replace(MISSING, limit({ type: 'x' }))).__typename).toBe('ValidationError');
  });
});

describe('setWalletRuleStatus', () => {
  it('D5-05: a change raises the version, and setting the same status does not', async () => {
    const { id } = await created();
    const set = async (status: 'ACTIVE' | 'DISABLED') =>
      (await fixture.run(SetWalletRuleStatusDocument, { id, status })).result;
    expect(await set('DISABLED')).toMatchObject({ status: 'DISABLED', version: 2 });
    expect(await set('DISABLED')).toMatchObject({ status: 'DISABLED', version: 2 });
    expect(await set('ACTIVE')).toMatchObject({ status: 'ACTIVE', version: 3 });
  });

  it('D5-05: with ifVersion succeeds only at that version', async () => {
    const { id } = await created();
    const set = async (status: 'ACTIVE' | 'DISABLED', ifVersion: number | null) =>
      (await fixture.run(SetWalletRuleStatusDocument, { id, status, ifVersion })).result;
    for (const status of ['ACTIVE', 'DISABLED'] as const) {
      for (const ifVersion of [0, 2, -1]) expect((await set(status, ifVersion)).__typename).toBe('PreconditionError');
    }
    expect(await set('ACTIVE', 1)).toMatchObject({ status: 'ACTIVE', version: 1 });
    expect(await set('DISABLED', 1)).toMatchObject({ status: 'DISABLED', version: 2 });
    expect(await set('ACTIVE', null)).toMatchObject({ status: 'ACTIVE', version: 3 });
  });
});

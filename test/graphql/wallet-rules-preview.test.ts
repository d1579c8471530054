import { beforeAll, describe, expect, it } from 'vitest';
import { OTHER_NODE, until, useFixture } from '../support/graphql/fixture.ts';
import { openSocket } from '../support/graphql/sockets.ts';
import {
  CreateWalletRuleDocument,
  PreviewWalletDocument,
  PreviewWalletRuleDocument,
  type PreviewWalletRuleInput,
  SetWalletRuleStatusDocument,
  type WalletRuleInput,
} from './generated/graphql.ts';

const ID = 'aaaaaaaa-0000-4000-8000-00000000000a';
const MISSING = 'ffffffff-0000-4000-8000-00000000000f';
const AT = '2026-11-21T10:30:00Z';
const LEAF = { field: 'balance', op: '<', value: 100, network_currency_id: ID };
const LOW = [{ field: 'balance', networkCurrencyId: ID.toUpperCase(), value: '99.99' }];

const fixture = useFixture();
let wallet: string;
let foreignWallet: string;

beforeAll(async () => {
  const [account = ''] = await fixture.addAccounts(1);
  [wallet = ''] = await fixture.addWallets(account, 1);
  const [foreign = ''] = await fixture.addAccounts(1, { nodeId: OTHER_NODE });
  [foreignWallet = ''] = await fixture.addWallets(foreign, 1, OTHER_NODE);
});

function autoTransfer(ruleLogic: unknown = LEAF): WalletRuleInput {
  const autoTransferRule = { type: 'auto', ruleLogic, amount: 50, targetWalletId: ID };
  return { name: 'x', type: 'auto_transfer', networkId: ID, networkCurrencyId: ID, autoTransferRule };
}

function limit(timePeriod = 'day', timePeriodValue = 1): WalletRuleInput {
  const permissionlessTransferLimitRule = { maxAmount: 100, timePeriod, timePeriodValue };
  const type = 'permissionless_transfer_limit';
  return { name: 'x', type, networkId: ID, networkCurrencyId: ID, permissionlessTransferLimitRule };
}

function transfer(amount: string | number, at = AT) {
  return { networkCurrencyId: ID, amount, at };
}

async function preview(input: PreviewWalletRuleInput) {
  return (await fixture.run(PreviewWalletRuleDocument, { input })).previewWalletRule;
}

async function stored(input: WalletRuleInput, walletId = wallet, token = fixture.token): Promise<string> {
  const { result } = await fixture.run(CreateWalletRuleDocument, { walletId, input }, { token });
  return result.__typename === 'WalletRule' ? result.id : '';
}

const document = `query ($input: PreviewWalletRuleInput!) { previewWalletRule(input: $input) { fires } }`;

async function refused(input: unknown, token = fixture.token) {
  const { status, json } = await fixture.query(document, { variables: { input }, token });
  expect([status, json.data ?? null]).toEqual([200, null]);
  return json.errors[0];
}

describe('previewWalletRule', () => {
  it('DG-10: explains every condition, and fires if they are met', async () => {
    expect(await preview({ rule: autoTransfer(), balances: LOW })).toEqual({
      fires: true,
      explanation: [
        {
          path: 'auto_transfer_rule.rule_logic',
          field: 'balance',
          op: 'lt',
          expected: '100',
          actual: '99.99',
          result: true,
          reason: null,
        },
      ],
    });
  });

  it('DG-10: does not fire, with a reason, if a condition is unknown at any depth', async () => {
    const other = { ...LEAF, field: 'other' };
    for (const logic of [other, { not: other }, { or: [LEAF, other] }, { not: { and: [LEAF, other] } }]) {
      const { fires, explanation } = await preview({ rule: autoTransfer(logic), balances: LOW });
      expect(fires).toBe(false);
      expect(explanation.at(-1)).toMatchObject({ field: 'other', actual: null, result: false });
      expect(explanation.at(-1)?.reason).toMatch(/no balance/);
    }
  });

  it('DG-10: a limit counts the transfers of its currency in its window', async () => {
    const elsewhere = { ...transfer(500), networkCurrencyId: MISSING };
    const of = async (transfers: object[], rule = limit()) => {
      const { fires, explanation } = await preview({
        rule,
        balances: [],
        transfers: transfers as PreviewWalletRuleInput['transfers'],
        at: AT,
      });
      return [fires, explanation[0]?.actual];
    };
    expect(await of([transfer(60), transfer('40'), elsewhere])).toEqual([true, '100']);
    expect(await of([transfer(60), transfer('40.000000000000000000000000000000000001')])).toEqual([
      false,
      '100.000000000000000000000000000000000001',
    ]);
    const month = [transfer(60, '2026-10-21T12:30:00+02:00'), transfer(50, '2026-10-21T10:30:00.001Z'), transfer(1)];
    expect(await of(month, limit('month'))).toEqual([true, '51']);
  });

  it('DG-10: without `at` it is evaluated as of now', async () => {
    const ago = (ms: number) => new Date(Date.now() - ms).toISOString();
    const transfers = [transfer(100, ago(60_000)), transfer(500, ago(2 * 3_600_000)), transfer(500, ago(-3_600_000))];
    const { fires, explanation } = await preview({ rule: limit('hour'), balances: [], transfers });
    expect([fires, explanation[0]?.actual]).toEqual([true, '100']);
  });

  it('DG-10: evaluates a stored rule, only of its own node', async () => {
    const ruleId = await stored(autoTransfer());
    expect(await preview({ ruleId: ruleId.toUpperCase(), balances: LOW })).toMatchObject({ fires: true });
    await fixture.run(SetWalletRuleStatusDocument, { id: ruleId, status: 'DISABLED' });
    const { fires, explanation } = await preview({ ruleId, balances: LOW });
    expect(fires).toBe(false);
    expect(explanation.map(({ path, reason }) => [path, reason])).toEqual([
      ['auto_transfer_rule.rule_logic', null],
      ['status', 'the rule is disabled'],
    ]);
    const foreign = await stored(limit(), foreignWallet, fixture.newToken({ nodeId: OTHER_NODE }));
    expect(foreign).not.toBe('');
    const [one, other] = [
      await refused({ ruleId: MISSING, balances: [] }),
      await refused({ ruleId: foreign, balances: [] }),
    ];
    expect(one.extensions).toEqual({ code: 'NOT_FOUND' });
    expect(other).toEqual(one);
  });

  it.each<[string, unknown, string[][]]>([
    ['neither a rule nor an id', { balances: [] }, [['rule']]],
    ['nulls for both', { rule: null, ruleId: null, balances: [] }, [['rule']]],
    ['both', { rule: limit(), ruleId: MISSING, balances: [] }, [['rule']]],
    ['an id that is not a UUID', { ruleId: 'x', balances: [] }, [['ruleId']]],
    [
      'an invalid rule',
      { rule: autoTransfer({ ...LEAF, op: 'x' }), balances: [] },
      [['rule', 'autoTransferRule', 'ruleLogic', 'op']],
    ],
    [
      'an invalid balance',
      { rule: limit(), balances: [{ ...LOW[0], networkCurrencyId: 'x', value: '1e99' }] },
      [
        ['balances', '0', 'networkCurrencyId'],
        ['balances', '0', 'value'],
      ],
    ],
    [
      'a negative transfer',
      { rule: limit(), balances: [], transfers: [transfer(1), transfer(-1)] },
      [['transfers', '1', 'amount']],
    ],
    ['a field with U+0000', { rule: limit(), balances: [{ ...LOW[0], field: '\0' }] }, [['balances', '0', 'field']]],
    ['1,001 balances', { rule: limit(), balances: Array.from({ length: 1_001 }, () => LOW[0]) }, [['balances']]],
  ])('DG-10: %s gets BAD_USER_INPUT with its path', async (_what, input, paths) => {
    const { extensions } = await refused(input);
    expect(extensions.code).toBe('BAD_USER_INPUT');
    expect(extensions.issues.map((issue: { path: string[] }) => issue.path)).toEqual(paths);
    expect(fixture.faults).toEqual([]);
  });
});

describe('previewWallet', () => {
  const verdicts = async (walletId: string, facts = { balances: LOW, transfers: [transfer(101)], at: AT }) => {
    const { rules } = (await fixture.run(PreviewWalletDocument, { walletId, facts })).previewWallet;
    return rules.map(({ name, fires, unmet }) => [name, fires, unmet?.path ?? null]);
  };

  it('DG-16: evaluates active rules with the same facts, by priority and then age, those without priority last', async () => {
    const [account = ''] = await fixture.addAccounts(1);
    const [id = ''] = await fixture.addWallets(account, 1);
    const other = { ...LEAF, field: 'other' };
    const rules: [name: string, priority: number | null, input: WalletRuleInput][] = [
      ['none, first', null, autoTransfer()],
      ['5, first', 5, autoTransfer({ and: [LEAF, { not: LEAF }, other] })],
      ['100', 100, limit()],
      ['5, second', 5, autoTransfer({ or: [LEAF, other] })],
      ['disabled', 7, autoTransfer()],
      ['none, second', null, { ...autoTransfer(), signAndApproveRule: { minPriority: 2, maxPriority: 1 } }],
    ];
    for (const [name, priority, input] of rules) {
      const ruleId = await stored({ ...input, name, priority }, id);
      if (name === 'disabled') await fixture.run(SetWalletRuleStatusDocument, { id: ruleId, status: 'DISABLED' });
    }
    const logic = 'auto_transfer_rule.rule_logic';
    expect(await verdicts(id.toUpperCase())).toEqual([
      ['100', false, 'permissionless_transfer_limit_rule'],
      ['5, first', false, `${logic}.and[1].not`],
      ['5, second', false, `${logic}.or[1]`],
      ['none, first', true, null],
      ['none, second', false, 'sign_and_approve_rule'],
    ]);
    const unknown = await fixture.run(PreviewWalletDocument, { walletId: id, facts: { balances: [] } });
    expect(unknown.previewWallet.rules.map(({ fires, unmet }) => [fires, unmet?.reason !== null])).toEqual(
      Array(5).fill([false, true]),
    );
  });

  it('DG-16: a wallet without rules has no results; an unknown one and one of another node get the same NOT_FOUND', async () => {
    const [account = ''] = await fixture.addAccounts(1);
    const [empty = ''] = await fixture.addWallets(account, 1);
    expect(await verdicts(empty)).toEqual([]);
    const walletPreview = `query ($walletId: ID!, $facts: PreviewFacts!) {
      previewWallet(walletId: $walletId, facts: $facts) { rules { name } }
    }`;
    const texts = [MISSING, foreignWallet, 'wallet'].map(async (walletId) => {
      return (await fixture.query(walletPreview, { variables: { walletId, facts: { balances: [] } } })).text;
    });
    expect(new Set(await Promise.all(texts)).size).toBe(1);
    expect(await texts[0]).toContain('"code":"NOT_FOUND"');
  });

  it('DG-16: a wallet with more than 500 active rules is rejected', async () => {
    const [account = ''] = await fixture.addAccounts(1);
    const [full = ''] = await fixture.addWallets(account, 1);
    const first = await stored(limit(), full);
    await fixture.database.db.unscoped('a test sets its rows').raw(
      (sql) => sql`insert into wallet_rules (id, node_id, wallet_id, name, type, network_id, network_currency_id,
          permissionless_transfer_limit_rule, created_at, updated_at)
        select gen_random_uuid(), node_id, wallet_id, name, type, network_id, network_currency_id,
          permissionless_transfer_limit_rule, now(), now()
        from wallet_rules cross join generate_series(1, 500) where id = ${first}`,
    );
    const tooMany = await fixture.query(
      `{ previewWallet(walletId: "${full}", facts: {balances: []}) { rules { name } } }`,
    );
    expect(tooMany.json.errors[0].extensions.code).toBe('PAGE_TOO_LARGE');
    await fixture.run(SetWalletRuleStatusDocument, { id: first, status: 'DISABLED' });
    expect(await verdicts(full)).toHaveLength(500);
  });
});

describe('the cost of a preview', () => {
  const balances = (count: number) => Array.from({ length: count }, (_, at) => ({ ...LOW[0], field: `balance ${at}` }));

  async function costOf(previews: number, facts: object, form = '$facts') {
    const previewed = (_: unknown, at: number) =>
      `a${at}: previewWallet(walletId: $id, facts: ${form}) { rules { name } }`;
    const declared = form === '$facts' ? '$facts: PreviewFacts!' : '$balances: [BalanceInput!]!';
    const query = `query ($id: ID!, ${declared}) { ${Array.from({ length: previews }, previewed).join(' ')} }`;
    const { json } = await fixture.query(query, { variables: { id: wallet, ...facts } });
    return json.errors?.[0];
  }

  it('D6-26: one preview of a wallet with 1,000 balances is allowed, and 18 of them are too many', async () => {
    const facts = { balances: balances(1_000) };
    expect(await costOf(1, { facts })).toBeUndefined();
    const error = await costOf(18, { facts });
    expect(error.extensions.code).toBe('LIMIT_EXCEEDED');
    expect(error.message).toMatch(
      /^the cost is \d+; at most 5000 is allowed, of which previews cost 7200: preview fewer/,
    );
  });

  it('D6-26: the maximum facts of one preview are allowed, and the cost counts facts in any form', async () => {
    const transfers = Array.from({ length: 10_000 }, () => transfer('1'));
    expect(await costOf(1, { facts: { balances: balances(1_000), transfers } })).toBeUndefined();
    expect((await costOf(2, { facts: { balances: [], transfers } })).message).toMatch(/preview fewer/);
    expect(await costOf(18, { balances: balances(10) }, '{ balances: $balances }')).toBeUndefined();
    expect((await costOf(18, { balances: balances(1_000) }, '{ balances: $balances }')).message).toMatch(/7200/);
  });
});

describe('the digits of numbers in variables', () => {
  const FORTY = '1234567890123456789012345678901234567890';
  const query =
    'query ($input: PreviewWalletRuleInput!) { previewWalletRule(input: $input) { explanation { expected actual } } }';
  /** With numbers in the JSON text for which a double has no place. */
  const variables = JSON.stringify({
    input: {
      rule: autoTransfer({ ...LEAF, value: 'EXPECTED' }),
      balances: [{ field: 'balance', networkCurrencyId: ID, value: 'ACTUAL' }],
    },
  })
    .replace('"EXPECTED"', `${FORTY}.5`)
    .replace('"ACTUAL"', `-0.${FORTY}`);
  const exact = { previewWalletRule: { explanation: [{ expected: `${FORTY}.5`, actual: `-0.${FORTY}` }] } };

  it('DG-07 D5-03: are all kept in a GET request', async () => {
    const parameters = new URLSearchParams({ query, variables });
    const { json } = await fixture.fetch({ headers: { authorization: `Bearer ${fixture.token}` } }, `?${parameters}`);
    expect(json).toEqual({ data: exact });
  });

  it('DG-07 D5-03: are all kept in an operation on a socket', async () => {
    using opened = await openSocket(fixture, fixture.token);
    opened.socket.send(
      `{"type":"subscribe","id":"1","payload":{"query":${JSON.stringify(query)},"variables":${variables}}}`,
    );
    await until(() => opened.received.length > 0);
    expect(opened.received[0]).toEqual({ type: 'next', id: '1', payload: { data: exact } });
  });
});

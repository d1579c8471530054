import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Draft, draftOf, type Logic } from '../../console/views/rule-draft.ts';
import { ordered, weakenings } from '../../console/views/rule-strength.ts';
import { evaluateRule, type RuleLogic } from '../support/wallet-rules/evaluated.ts';

const CURRENCIES = ['aaaaaaaa-0000-4000-8000-00000000000a', 'bbbbbbbb-0000-4000-8000-00000000000b'] as const;
const TARGETS = ['cccccccc-0000-4000-8000-00000000000c', 'dddddddd-0000-4000-8000-00000000000d'] as const;
const USER = 'eeeeeeee-0000-4000-8000-00000000000e';
const [CURRENCY] = CURRENCIES;
const FIELDS = ['source.balance', 'target.balance'] as const;

const leaf = (op: string, value: string, field: string = FIELDS[0], currency: string = CURRENCY): Logic => ({
  ...{ field, op, value },
  network_currency_id: currency,
});

/** A transfer of 100 at once, if the balance is below 10, unless told otherwise. */
function transfer(fields: Record<string, string> = {}, { logic = leaf('lt', '10'), isApproved = false } = {}): Draft {
  const part = 'autoTransferRule';
  const own = { [`${part}.type`]: 'auto', [`${part}.amount`]: '100', [`${part}.targetWalletId`]: TARGETS[0] };
  const parts = [part, ...(isApproved ? (['signAndApproveRule'] as const) : [])] as const;
  const base = { ...draftOf().fields, type: 'auto_transfer', networkCurrencyId: CURRENCY };
  return { fields: { ...base, ...own, ...fields }, logic, parts };
}

function limit(maxAmount: string, count: string, period: string): Draft {
  const part = 'permissionlessTransferLimitRule';
  const own = { [`${part}.maxAmount`]: maxAmount, [`${part}.timePeriodValue`]: count, [`${part}.timePeriod`]: period };
  const base = { ...draftOf().fields, type: 'permissionless_transfer_limit', networkCurrencyId: CURRENCY };
  return { fields: { ...base, ...own }, logic: leaf('lt', '1'), parts: [part] };
}

const approved = (fields: Record<string, string> = {}, type = 'auto_with_approve') => {
  const named = Object.entries(fields).map(([name, text]) => [`signAndApproveRule.${name}`, text]);
  return transfer({ 'autoTransferRule.type': type, ...Object.fromEntries(named) }, { isApproved: true });
};
const amount = (text: string) => transfer({ 'autoTransferRule.amount': text });
const when = (logic: Logic) => transfer({}, { logic });
const [low, other] = [leaf('lt', '10'), leaf('gte', '5', FIELDS[1])];

describe('a change of a rule weakens it', () => {
  it.each<[string, Draft, Draft, string[]]>([
    [
      'fewer approvals',
      approved({ minUserCount: '3' }),
      approved({ minUserCount: '2' }),
      ['Fewer approvals are needed: 2 instead of 3.'],
    ],
    ['no approval', approved({ minUserCount: '3' }, 'auto'), transfer(), ['No approval is needed any more.']],
    [
      'an empty count after 2',
      approved({ minUserCount: '2' }),
      approved(),
      ['Fewer approvals are needed: 1 instead of 2.'],
    ],
    [
      'at once instead of waiting',
      approved(),
      approved({}, 'auto'),
      ['It transfers at once instead of waiting for an approval.'],
    ],
    [
      'at once and by nobody',
      approved(),
      transfer(),
      ['It transfers at once instead of waiting for an approval.', 'No approval is needed any more.'],
    ],
    [
      'more priorities',
      approved({ minPriority: '5', maxPriority: '9' }),
      approved({ minPriority: '4', maxPriority: '9' }),
      ['Users of more priorities may approve.'],
    ],
    ['no bound of priorities', approved({ maxPriority: '9' }), approved(), ['Users of more priorities may approve.']],
    [
      'no particular approver',
      approved({ mandatoryUserId: USER }),
      approved(),
      ['No particular approver must sign any more.'],
    ],
    [
      'another particular approver',
      approved({ mandatoryUserId: USER }),
      approved({ mandatoryUserId: TARGETS[1] }),
      ['Another approver must sign.'],
    ],
    ['a higher amount', amount('0.1'), amount('0.1000000000000000000001'), ['The amount is higher.']],
    [
      'another target',
      transfer(),
      transfer({ 'autoTransferRule.targetWalletId': TARGETS[1] }),
      ['The target wallet is another one.'],
    ],
    ['another currency', transfer(), transfer({ networkCurrencyId: CURRENCIES[1] }), ['It is about another currency.']],
    ['a condition removed', when({ and: [low, other] }), when(low), ['A condition is removed or less strict.']],
    ['a condition that is less strict', when(low), when(leaf('lte', '10')), ['A condition is removed or less strict.']],
    ['an alternative', when(low), when({ or: [low, other] }), ['A condition is removed or less strict.']],
    [
      'any instead of all',
      when({ and: [low, other] }),
      when({ or: [low, other] }),
      ['A condition is removed or less strict.'],
    ],
    ['the opposite', when(low), when({ not: low }), ['A condition is removed or less strict.']],
    ['a higher maximum', limit('10', '1', 'day'), limit('11', '1', 'day'), ['The maximum is higher.']],
    [
      'the same maximum for a shorter time',
      limit('10', '1', 'week'),
      limit('10', '6', 'day'),
      ['The maximum applies to a shorter time.'],
    ],
    [
      'a month instead of 30 days, which may be shorter',
      limit('10', '30', 'day'),
      limit('10', '1', 'month'),
      ['The maximum applies to a shorter time.'],
    ],
    ['another type', transfer(), limit('1', '1', 'day'), ['It becomes another type of rule.']],
  ])('by %s', (_what, before, after, expected) => {
    expect(weakenings(before, after)).toEqual(expected);
  });

  it.each<[string, Draft, Draft]>([
    ['more approvals', approved(), approved({ minUserCount: '2' })],
    ['an approval', transfer(), approved()],
    ['fewer priorities', approved(), approved({ minPriority: '5', maxPriority: '9' })],
    ['a particular approver', approved(), approved({ mandatoryUserId: USER })],
    ['a lower amount, however it is written', amount('100'), amount('1e1')],
    ['the same amount, written in another way', amount('100'), amount('100.000')],
    ['a name and a priority', transfer(), transfer({ name: 'another', priority: '7' })],
    ['ids in another case', transfer(), transfer({ networkCurrencyId: CURRENCY.toUpperCase() })],
    ['one more condition', when(low), when({ and: [low, other] })],
    ['a stricter condition', when(low), when(leaf('lt', '9.999'))],
    ['an exact value instead of a range', when(low), when(leaf('eq', '9'))],
    ['an alternative less', when({ or: [low, other] }), when(low)],
    ['the same in other words', when(low), when({ not: leaf('gte', '10') })],
    ['conditions in another order', when({ and: [low, other] }), when({ and: [{ and: [other] }, low] })],
    ['a lower maximum', limit('10', '1', 'day'), limit('9', '1', 'day')],
    ['the same maximum for a longer time', limit('10', '1', 'week'), limit('10', '7', 'day')],
    ['a month instead of 28 days', limit('10', '28', 'day'), limit('10', '1', 'month')],
  ])('not by %s', (_what, before, after) => {
    expect(weakenings(before, after)).toEqual([]);
  });

  const { logic } = fc.letrec<{ logic: Logic }>((tie) => ({
    logic: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.record({
        field: fc.constantFrom(...FIELDS),
        op: fc.constantFrom('lt', 'lte', 'gt', 'gte', 'eq', 'neq'),
        value: fc.constantFrom('0', '1', '1.5', '2', '-1', '2e0'),
        network_currency_id: fc.constantFrom(...CURRENCIES),
      }),
      fc.array(tie('logic'), { minLength: 1, maxLength: 3 }).map((and) => ({ and })),
      fc.array(tie('logic'), { minLength: 1, maxLength: 3 }).map((or) => ({ or })),
      tie('logic').map((not) => ({ not })),
    ),
  }));
  const keys = FIELDS.flatMap((field) => CURRENCIES.map((currency) => ({ field, network_currency_id: currency })));
  const balances = fc
    .tuple(...keys.map(() => fc.constantFrom('-2', '-1', '0', '0.5', '1', '1.5', '1.75', '2', '3')))
    .map((values) => keys.map((key, at) => ({ ...key, value: values[at] ?? '0' })));

  it('whenever it fires with balances with which the rule before did not', () => {
    fc.assert(
      fc.property(logic, logic, balances, (before, after, facts) => {
        fc.pre(weakenings(when(before), when(after)).length === 0);
        const fires = (of: Logic) => evaluateRule(of as RuleLogic, facts);
        return !fires(after) || fires(before);
      }),
      { numRuns: 1_000 },
    );
  });

  it('never by saving it again, or by one more condition', () => {
    fc.assert(
      fc.property(logic, logic, (one, more) => {
        expect(weakenings(when(one), when(one))).toEqual([]);
        expect(weakenings(when(one), when({ and: [more, one] }))).toEqual([]);
        expect(weakenings(when({ or: [more, one] }), when(one))).toEqual([]);
      }),
    );
  });
});

it('decimals are compared with every digit; a text that is none is not compared', () => {
  const decimal = fc.tuple(fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }), fc.integer({ min: -60, max: 60 }));
  fc.assert(
    fc.property(decimal, decimal, ([a, x], [b, y]) => {
      const [left, right] = [a * 10n ** BigInt(x + 60), b * 10n ** BigInt(y + 60)];
      expect(ordered(`${a}e${x}`, `${b}e${y}`)).toBe(Number(left > right) - Number(left < right));
    }),
  );
  expect([ordered('1', '0,5'), ordered('', '1'), ordered('-0.5', '-0.25')]).toEqual([undefined, undefined, -1]);
});

import { approvalsIn, type Condition, type Draft, group, groupOf, idIn, type Logic, ownPart } from './rule-draft.ts';

type Operator = 'lt' | 'lte' | 'gt' | 'gte' | 'eq' | 'neq';

const OPPOSITE: Readonly<Record<string, Operator>> = { lt: 'gte', lte: 'gt', gt: 'lte', gte: 'lt', eq: 'neq', neq: 'eq' };
const HOLDS: Readonly<Record<Operator, (order: number) => boolean>> = {
  lt: (order) => order < 0,
  lte: (order) => order <= 0,
  gt: (order) => order > 0,
  gte: (order) => order >= 0,
  eq: (order) => order === 0,
  neq: (order) => order !== 0,
};

/** By the operators of two conditions on one balance: how their values must compare so that the first implies the second. */
const IMPLIED: Readonly<Record<string, Readonly<Record<string, Operator>>>> = {
  lt: { lt: 'lte', lte: 'lte', neq: 'lte' },
  lte: { lt: 'lt', lte: 'lte', neq: 'lt' },
  gt: { gt: 'gte', gte: 'gte', neq: 'gte' },
  gte: { gt: 'gt', gte: 'gte', neq: 'gt' },
  eq: { lt: 'lt', lte: 'lte', gt: 'gt', gte: 'gte', eq: 'eq', neq: 'neq' },
  neq: { neq: 'eq' },
};

const DECIMAL = /^(-?\d+)(?:\.(\d+))?(?:e([+-]?\d{1,3}))?$/i;

/** Returns the order of two decimals: negative, zero or positive; undefined unless both are numbers. */
export function ordered(one: string, other: string): number | undefined {
  const [a, b] = [one, other].map((text) => DECIMAL.exec(text.trim()));
  if (!a || !b) return undefined;
  const exponents = [a, b].map(([, , fraction = '', power = '0']) => Number(power) - fraction.length);
  const least = Math.min(...exponents);
  const [x = 0n, y = 0n] = [a, b].map(([, whole, fraction = ''], at) => BigInt(`${whole}${fraction}`) * 10n ** BigInt((exponents[at] ?? 0) - least));
  return Number(x > y) - Number(x < y);
}

/** Returns a condition tree that means the same, in which nothing is negated. */
function positive(logic: Logic, isNegated = false): Logic {
  if ('field' in logic) return isNegated ? { ...logic, op: OPPOSITE[logic.op] ?? logic.op } : logic;
  const { kind, children } = groupOf(logic);
  const [first] = children;
  if (kind === 'not' && first) return positive(first, !isNegated);
  return group(
    (kind === 'and') === isNegated ? 'or' : 'and',
    children.map((child) => positive(child, isNegated)),
  );
}

const membersOf = (logic: Logic, of: 'and' | 'or'): readonly Logic[] | undefined => {
  if ('field' in logic) return undefined;
  const { kind, children } = groupOf(logic);
  return kind === of ? children : undefined;
};

function conditionImplies(one: Condition, other: Condition): boolean {
  const isComparable = one.field === other.field && idIn(one.network_currency_id) === idIn(other.network_currency_id);
  const needed = IMPLIED[one.op]?.[other.op];
  const order = ordered(one.value, other.value);
  return isComparable && needed !== undefined && order !== undefined && HOLDS[needed](order);
}

/** Whether a tree without negations is true only where another one is, as far as their form shows it. */
function implies(one: Logic, other: Logic): boolean {
  const alternatives = membersOf(one, 'or');
  if (alternatives) return alternatives.every((each) => implies(each, other));
  const needed = membersOf(other, 'and');
  if (needed) return needed.every((each) => implies(one, each));
  if ('field' in one && 'field' in other) return conditionImplies(one, other);
  return (membersOf(one, 'and') ?? []).some((each) => implies(each, other)) || (membersOf(other, 'or') ?? []).some((each) => implies(one, each));
}

const APPROVALS = 'signAndApproveRule';
const HOURS: Readonly<Record<string, readonly [shortest: number, longest: number]>> = {
  hour: [1, 1],
  day: [24, 24],
  week: [168, 168],
  month: [672, 744],
  year: [8_760, 8_784],
};

/** Returns what the change of a rule takes from its protection, in sentences; none if it is as strict as before. What cannot be compared counts as less. */
export function weakenings(before: Draft, after: Draft): string[] {
  const at = ({ fields }: Draft, part: string, name: string) => fields[`${part}.${name}`]?.trim() ?? '';
  const both = (part: string, name: string) => [at(before, part, name), at(after, part, name)] as const;
  const isHigher = (part: string, name: string) => (ordered(...both(part, name)) ?? 0) < 0;
  const own = ownPart(after);
  const isOtherType = ownPart(before) !== own;
  const isTransfer = !isOtherType && own === 'autoTransferRule';
  const isLimit = !isOtherType && own === 'permissionlessTransferLimitRule';
  const [needed, left] = [approvalsIn(before), approvalsIn(after)];
  const isStillApproved = needed > 0 && left > 0;
  const [lowest, highest] = [both(APPROVALS, 'minPriority'), both(APPROVALS, 'maxPriority')];
  const isWider = Number(lowest[1] || 1) < Number(lowest[0] || 1) || Number(highest[1] || 100) > Number(highest[0] || 100);
  const [signer, nextSigner] = both(APPROVALS, 'mandatoryUserId').map(idIn);
  const [unit, nextUnit] = both(own, 'timePeriod');
  const [count, nextCount] = both(own, 'timePeriodValue').map(Number);
  const [[shortest = 0, longest = 0], [next = 0]] = [HOURS[unit] ?? [], HOURS[nextUnit] ?? []];
  const isShorter = next * (nextCount ?? 0) < (unit === nextUnit ? shortest : longest) * (count ?? 0);
  const [currency, nextCurrency] = [before, after].map(({ fields }) => idIn(fields.networkCurrencyId ?? ''));
  const [target, nextTarget] = both(own, 'targetWalletId').map(idIn);
  const points: [boolean, string][] = [
    [isOtherType, 'It becomes another type of rule.'],
    [isTransfer && at(before, own, 'type') !== 'auto' && at(after, own, 'type') === 'auto', 'It transfers at once instead of waiting for an approval.'],
    [left < needed, left === 0 ? 'No approval is needed any more.' : `Fewer approvals are needed: ${left} instead of ${needed}.`],
    [isStillApproved && isWider, 'Users of more priorities may approve.'],
    [isStillApproved && signer !== '' && signer !== nextSigner, nextSigner ? 'Another approver must sign.' : 'No particular approver must sign any more.'],
    [!isOtherType && currency !== nextCurrency, 'It is about another currency.'],
    [isTransfer && isHigher(own, 'amount'), 'The amount is higher.'],
    [isTransfer && target !== nextTarget, 'The target wallet is another one.'],
    [isTransfer && !implies(positive(after.logic), positive(before.logic)), 'A condition is removed or less strict.'],
    [isLimit && isHigher(own, 'maxAmount'), 'The maximum is higher.'],
    [isLimit && isShorter, 'The maximum applies to a shorter time.'],
  ];
  return points.flatMap(([isGiven, text]) => (isGiven ? text : []));
}

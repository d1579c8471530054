import type { RulePartsFragment as Rule, WalletRuleInput } from '../generated/graphql.ts';

/** A condition of a rule; its value is text, so that no digit is lost. */
export type Condition = Record<'field' | 'op' | 'value' | 'network_currency_id', string>;

/** A condition, or a group of them, as the API has it. */
export type Logic = Condition | { and: Logic[] } | { or: Logic[] } | { not: Logic };
export type GroupKind = 'and' | 'or' | 'not';

export const LOGIC = 'autoTransferRule.ruleLogic';

/** The operators of conditions: the sign, its meaning, and how a sentence says it. */
export const OPERATORS: Readonly<Record<string, readonly [sign: string, meaning: string, said: string]>> = {
  lt: ['<', 'less than', 'falls below'],
  lte: ['≤', 'at most', 'is at most'],
  gt: ['>', 'more than', 'rises above'],
  gte: ['≥', 'at least', 'is at least'],
  eq: ['=', 'equal to', 'is exactly'],
  neq: ['≠', 'not equal', 'is not'],
};

/** The fields that conditions usually compare, in words. */
export const FIELDS: Readonly<Record<string, string>> = {
  'target.balance': 'balance of the target wallet',
  'source.balance': 'balance of this wallet',
  'balance.available': 'available balance of this wallet',
};

export const fieldName = (field: string) => FIELDS[field] ?? field.replaceAll('_', ' ');
export const signOf = (op: string) => OPERATORS[op]?.[0] ?? op;

export function groupOf(logic: Exclude<Logic, Condition>): { kind: GroupKind; children: readonly Logic[] } {
  if ('and' in logic) return { kind: 'and', children: logic.and };
  return 'or' in logic ? { kind: 'or', children: logic.or } : { kind: 'not', children: [logic.not] };
}

/** Makes a group; `not` has one child. */
export function group(kind: GroupKind, children: readonly Logic[]): Logic {
  return { [kind]: kind === 'not' ? children[0] : children } as Logic;
}

/** Returns the tree with another node at a place; removing the last node of a group removes the group. */
export function changed(logic: Logic, [index, ...deeper]: readonly number[], by: (node: Logic) => Logic | undefined): Logic | undefined {
  if (index === undefined || 'field' in logic) return by(logic);
  const { kind, children } = groupOf(logic);
  const left = children.flatMap((child, at) => (at === index ? (changed(child, deeper, by) ?? []) : child));
  return left.length === 0 ? undefined : group(kind, left);
}

/** Returns the conditions of a tree with their paths, as issues have them. */
export function conditionsOf(logic: Logic, path = LOGIC): [path: string, condition: Condition][] {
  if ('field' in logic) return [[path, logic]];
  const { kind, children } = groupOf(logic);
  return children.flatMap((child, index) => conditionsOf(child, pathIn(path, kind, index)));
}

export const pathIn = (path: string, kind: GroupKind, index: number) => (kind === 'not' ? `${path}.not` : `${path}.${kind}.${index}`);

const PARTS = ['autoTransferRule', 'permissionlessTransferLimitRule', 'signAndApproveRule'] as const;
type Part = (typeof PARTS)[number];

/** A rule as it is being typed: texts by their paths in the input, the conditions, and the parts that it has. */
export type Draft = { fields: Readonly<Record<string, string>>; logic: Logic; parts: readonly Part[] };

type Text = { label: string; hint?: string; options?: readonly (readonly [value: string, text: string])[]; initial?: string; attributes?: object };

export const RULE_TYPES: Readonly<Record<string, string>> = {
  auto_transfer: 'Automatic transfer',
  permissionless_transfer_limit: 'Limit of transfers without approval',
};
const TIMINGS = { auto: 'Transfer at once', auto_with_approve: 'Wait for an approval' };
const WHOLE_INPUT = { inputmode: 'numeric' };
const APPROVER = { hint: '1 to 100, or empty', attributes: WHOLE_INPUT };
const PERIODS = ['hour', 'day', 'week', 'month', 'year'].map((name) => [name, `${name}s`] as const);

/** The texts of a rule by their paths in its input, in the order in which they are shown. */
export const TEXTS: Readonly<Record<string, Text>> = {
  name: { label: 'Name' },
  type: { label: 'Type', options: Object.entries(RULE_TYPES), initial: 'auto_transfer' },
  networkId: { label: 'Network' },
  networkCurrencyId: { label: 'Currency of the rule' },
  priority: { label: 'Priority', ...APPROVER },
  'autoTransferRule.type': { label: 'Timing', options: Object.entries(TIMINGS), initial: 'auto' },
  'autoTransferRule.amount': { label: 'Amount', attributes: { inputmode: 'decimal' } },
  'autoTransferRule.targetWalletId': { label: 'Target wallet' },
  'permissionlessTransferLimitRule.maxAmount': { label: 'Maximum', hint: 'a whole number', attributes: WHOLE_INPUT },
  'permissionlessTransferLimitRule.timePeriodValue': { label: 'Within', initial: '1', attributes: WHOLE_INPUT },
  'permissionlessTransferLimitRule.timePeriod': { label: 'Unit of time', options: PERIODS, initial: 'day' },
  'signAndApproveRule.mandatoryUserId': { label: 'Approver who must sign', hint: 'may be empty' },
  'signAndApproveRule.minPriority': { label: 'Lowest priority of an approver', ...APPROVER },
  'signAndApproveRule.maxPriority': { label: 'Highest priority of an approver', ...APPROVER },
  'signAndApproveRule.minUserCount': { label: 'Approvals required', hint: 'at least 1, or empty', attributes: WHOLE_INPUT },
};

export const OPTIONAL = /^priority$|^signAndApproveRule\./;
const WHOLE = /[pP]riority$|minUserCount$|timePeriodValue$/;

/** Returns the member of a rule, or of its input, at a path. */
export function memberAt(of: unknown, path: readonly string[]): unknown {
  return path.reduce((value: unknown, name) => (value as Record<string, unknown> | null | undefined)?.[name], of);
}

/** Returns a rule as it is to be typed on; an empty one for none, on a network. */
export function draftOf(rule?: Rule, networkId = ''): Draft {
  const at = (path: string) => memberAt(rule, path.split('.'));
  const fields = Object.fromEntries(Object.entries(TEXTS).map(([path, { initial = '' }]) => [path, String(at(path) ?? initial)]));
  const logic = rule?.autoTransferRule ? eachCondition(rule.autoTransferRule.ruleLogic as Logic, (one) => ({ ...one, value: String(one.value) })) : blank('');
  return { fields: rule ? fields : { ...fields, networkId }, logic, parts: PARTS.filter((part) => rule?.[part]) };
}

export const blank = (currencyId: string): Condition => ({ field: 'target.balance', op: 'lt', value: '', network_currency_id: currencyId });

/** Returns the tree with another condition for each of its conditions. */
export function eachCondition(logic: Logic, by: (condition: Condition) => Condition): Logic {
  if ('field' in logic) return by(logic);
  const { kind, children } = groupOf(logic);
  const others = children.map((child) => eachCondition(child, by));
  return group(kind, others);
}

/** Returns the part that a rule of this type is evaluated by. */
export const ownPart = ({ fields }: Draft) => (fields.type === 'auto_transfer' ? 'autoTransferRule' : 'permissionlessTransferLimitRule');

/** Returns the body to send for a draft. Invalid values are sent unchanged, so that the server reports them. */
export function ruleInput(draft: Draft): WalletRuleInput {
  const input: Record<string, unknown> = {};
  for (const [path, typed] of Object.entries(draft.fields)) {
    const [first, member] = path.split('.') as [Part, string?];
    if (member !== undefined && first !== ownPart(draft) && !draft.parts.includes(first)) continue;
    const text = path === 'name' ? typed : typed.trim();
    const isLeftOut = text === '' && OPTIONAL.test(path);
    const value = isLeftOut ? null : WHOLE.test(path) && /^\d{1,9}$/.test(text) ? Number(text) : text;
    if (member === undefined) input[first] = value;
    else input[first] = { ...(input[first] as object | undefined), [member]: value };
  }
  if (input.autoTransferRule) input.autoTransferRule = { ...input.autoTransferRule, ruleLogic: draft.logic };
  return input as unknown as WalletRuleInput;
}

/** Returns the members of two rules side by side, undefined where one does not have them. */
export function sideBySide(before: unknown, after: unknown) {
  const [old, fresh] = [new Map(textsIn(before)), new Map(textsIn(after))];
  return [...new Set([...old.keys(), ...fresh.keys()])].map((name) => ({ name, before: old.get(name), after: fresh.get(name) }));
}

function textsIn(value: unknown, path: readonly string[] = []): [name: string, text: string][] {
  if (value === null || value === undefined) return [];
  if (typeof value !== 'object') return [[nameOf(path), String(value)]];
  if (!('op' in value)) return Object.entries(value).flatMap(([name, member]) => textsIn(member, [...path, name]));
  const { field, op, value: than, network_currency_id: currency } = value as Condition;
  return [[nameOf(path), `${fieldName(field)} ${signOf(op)} ${than} ${currency}`]];
}

/** Returns a path of the API or of REST in words: `autoTransferRule.ruleLogic.and.0` as `Conditions, and 1`. */
export function nameOf(path: readonly string[]): string {
  const words = path.map((part) => (/^\d+$/.test(part) ? String(Number(part) + 1) : part.replace(/[A-Z]/g, ' $&').replaceAll('_', ' ').toLowerCase()));
  const [first = '', second, ...rest] = words;
  if (second === 'rule logic') return rest.length === 0 ? 'conditions' : `conditions: ${rest.join(' ')}`;
  return second === undefined ? first : `${first.replace(/ rule$/, '')}: ${[second, ...rest].join(' ')}`;
}

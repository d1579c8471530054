import type { RulePartsFragment as Rule, WalletRuleInput } from '../generated/graphql.ts';

export type { Rule };

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

/** Returns an id as texts have it in whatever case and with spaces around it. */
export const idIn = (text: string) => text.trim().toLowerCase();

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

/** Returns what is wrong with a text, in words; undefined if nothing. */
type Check = (text: string) => string | undefined;
type Text = {
  label: string;
  hint?: string;
  options?: readonly (readonly [value: string, text: string])[];
  initial?: string;
  attributes?: object;
  check?: Check;
};

const DECIMAL = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i;
const ID = /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/i;

/** Returns what is wrong with a decimal as it is typed. */
export function decimalFault(text: string): string | undefined {
  if (DECIMAL.test(text)) return undefined;
  const pointed = text.replace(',', '.');
  return DECIMAL.test(pointed) ? `Use a point: ${pointed}` : 'Enter a number, such as 1000 or 0.5';
}
const positive: Check = (text) => decimalFault(text) ?? (Number(text) > 0 || /^[^e-]*[1-9]/i.test(text) ? undefined : 'Enter a number above 0');
const whole = (most = Number.POSITIVE_INFINITY): Check => {
  const range = most === Number.POSITIVE_INFINITY ? 'of at least 1' : `from 1 to ${most}`;
  return (text) => (/^\d+(?:\.0+)?$/.test(text) && Number(text) >= 1 && Number(text) <= most ? undefined : `Enter a whole number ${range}`);
};
const chosen =
  (what: string): Check =>
  (text) =>
    ID.test(text) ? undefined : `Choose ${what}`;

export const RULE_TYPES: Readonly<Record<string, string>> = {
  auto_transfer: 'Automatic transfer',
  permissionless_transfer_limit: 'Limit of transfers without approval',
};
const TIMINGS = { auto: 'Transfer at once', auto_with_approve: 'Wait for an approval' };
const MAX_COUNT = 2_147_483_647;
const WHOLE_INPUT = { inputmode: 'numeric' };
const APPROVER = { hint: '1 to 100, or empty', attributes: WHOLE_INPUT, check: whole(100) };
const PERIODS = ['hour', 'day', 'week', 'month', 'year'].map((name) => [name, `${name}s`] as const);

/** The texts of a rule by their paths in its input, in the order in which they are shown. */
export const TEXTS: Readonly<Record<string, Text>> = {
  name: { label: 'Name' },
  type: { label: 'Type', options: Object.entries(RULE_TYPES), initial: 'auto_transfer' },
  networkId: { label: 'Network', check: chosen('a network') },
  networkCurrencyId: { label: 'Currency of the rule', check: chosen('a currency') },
  priority: { label: 'Priority', ...APPROVER },
  'autoTransferRule.type': { label: 'Timing', options: Object.entries(TIMINGS), initial: 'auto' },
  'autoTransferRule.amount': { label: 'Amount', hint: 'the same sum each time', attributes: { inputmode: 'decimal' }, check: positive },
  'autoTransferRule.targetWalletId': { label: 'Target wallet', check: chosen('a target wallet') },
  'permissionlessTransferLimitRule.maxAmount': { label: 'Maximum', hint: 'a whole number', attributes: WHOLE_INPUT, check: whole() },
  'permissionlessTransferLimitRule.timePeriodValue': { label: 'Within', initial: '1', attributes: WHOLE_INPUT, check: whole(MAX_COUNT) },
  'permissionlessTransferLimitRule.timePeriod': { label: 'Unit of time', options: PERIODS, initial: 'day' },
  'signAndApproveRule.mandatoryUserId': { label: 'Approver who must sign', hint: 'may be empty', check: chosen('a user') },
  'signAndApproveRule.minPriority': { label: 'Lowest priority of an approver', ...APPROVER },
  'signAndApproveRule.maxPriority': { label: 'Highest priority of an approver', ...APPROVER },
  'signAndApproveRule.minUserCount': { label: 'Approvals required', hint: 'at least 1, or empty', attributes: WHOLE_INPUT, check: whole(MAX_COUNT) },
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

/** Returns the content of a version, which is a body of REST, as it is to be typed on. */
export const draftOfVersion = ({ rule }: { rule: unknown }) => draftOf(inCamelCase(rule) as Rule);

function inCamelCase(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const renamed = ([name, member]: [string, unknown]) => [
    name.replace(/_./g, ([, letter = '']) => letter.toUpperCase()),
    name === 'rule_logic' ? member : inCamelCase(member),
  ];
  return Object.fromEntries(Object.entries(value).map(renamed));
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
  for (const path of pathsOf(draft)) {
    const [first = '', member] = path.split('.');
    const typed = draft.fields[path] ?? '';
    const text = path === 'name' ? typed : typed.trim();
    const isLeftOut = text === '' && OPTIONAL.test(path);
    const value = isLeftOut ? null : WHOLE.test(path) && /^\d{1,9}$/.test(text) ? Number(text) : text;
    if (member === undefined) input[first] = value;
    else input[first] = { ...(input[first] as object | undefined), [member]: value };
  }
  if (input.autoTransferRule) input.autoTransferRule = { ...input.autoTransferRule, ruleLogic: draft.logic };
  return input as unknown as WalletRuleInput;
}

/** How many approvals a rule requires. */
export const approvalsIn = ({ parts, fields }: Draft) => (parts.includes('signAndApproveRule') ? Number(fields['signAndApproveRule.minUserCount']) || 1 : 0);

/** Returns the paths of the texts that a draft sends. */
function pathsOf(draft: Draft): string[] {
  return Object.keys(TEXTS).filter((path) => {
    const [first, member] = path.split('.') as [Part, string?];
    return member === undefined || first === ownPart(draft) || draft.parts.includes(first);
  });
}

/** Returns what is wrong with a draft, by the paths that the API would name. */
export function faultsOf(draft: Draft): { path: string[]; message: string }[] {
  const ofTexts = pathsOf(draft).map((path) => {
    const text = draft.fields[path]?.trim() ?? '';
    return { path: path.split('.'), message: text === '' && OPTIONAL.test(path) ? undefined : TEXTS[path]?.check?.(text) };
  });
  const leaves = ownPart(draft) === 'autoTransferRule' ? conditionsOf(draft.logic) : [];
  const ofConditions = leaves.flatMap(([path, { field, value, network_currency_id: currencyId }]) => [
    { path: [...path.split('.'), 'field'], message: field === '' ? 'Enter the name of the field' : undefined },
    { path: [...path.split('.'), 'value'], message: decimalFault(value.trim()) },
    { path: [...path.split('.'), 'network_currency_id'], message: chosen('a currency')(currencyId.trim()) },
  ]);
  return [...ofTexts, ...ofConditions].flatMap(({ path, message }) => (message === undefined ? [] : { path, message }));
}

/** A member of two rules side by side, in words; undefined where one does not have it. Conditions are compared as a whole. */
export type Compared = { path: string; name: string; before: string | undefined; after: string | undefined };

export function sideBySide(before: Draft, after: Draft): Compared[] {
  const [old, fresh] = [textsOf(before), textsOf(after)];
  const paths = [...Object.keys(TEXTS), LOGIC].filter((path) => old.has(path) || fresh.has(path));
  return paths.map((path) => ({ path, name: TEXTS[path]?.label ?? 'Conditions', before: old.get(path), after: fresh.get(path) }));
}

export const differing = (before: Draft, after: Draft) => sideBySide(before, after).filter((row) => row.before !== row.after);

function textsOf(draft: Draft): Map<string, string> {
  const texts = pathsOf(draft).map((path): [string, string] => {
    const typed = draft.fields[path]?.trim() ?? '';
    const text = path === 'signAndApproveRule.minUserCount' ? String(approvalsIn(draft)) : typed;
    return [path, TEXTS[path]?.options?.find(([value]) => value === text)?.[1] ?? (ID.test(text) ? idIn(text) : text)];
  });
  const logic: [string, string][] = ownPart(draft) === 'autoTransferRule' ? [[LOGIC, JSON.stringify(draft.logic)]] : [];
  return new Map([...texts.filter(([, text]) => text !== ''), ...logic]);
}

const MEMBERS: Readonly<Record<string, string>> = { field: 'field', op: 'operator', value: 'value', network_currency_id: 'currency' };

/** Returns a path of the API in the words of the form: `autoTransferRule.ruleLogic.and.0.value` as `Condition 1, value`. */
export function nameOf(path: readonly string[]): string {
  const label = TEXTS[path.join('.')]?.label;
  if (label !== undefined) return label;
  const numbers = path.flatMap((part) => (part === 'not' ? 1 : /^\d+$/.test(part) ? Number(part) + 1 : []));
  const member = MEMBERS[path.at(-1) ?? ''];
  return `${path[0] === 'balances' ? 'Balance' : 'Condition'} ${numbers.join('.')}`.trim() + (member ? `, ${member}` : '');
}

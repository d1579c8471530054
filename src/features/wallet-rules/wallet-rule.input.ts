import { z } from 'zod';
import { isJsonNumber, literalOf, MAX_DIGITS, readDecimal } from '../../lib/decimal.ts';
import { boundedTextInput, objectInput, readAs, sameName, uuidInput, wholeNumberInput } from '../../lib/input.ts';
import { ExactNumber, repeatedIn } from '../../lib/json.ts';
import { MAX_LENGTHS } from '../../tables/text-lengths.ts';
import {
  AUTO_TRANSFER_TYPES,
  OPERATORS,
  RULE_TYPES,
  type RuleLogic,
  TIME_PERIODS,
  type WalletRuleContent,
} from '../../tables/wallet-rule-content.ts';
import { operatorOf, spellingsOf } from './evaluate.rules.ts';

/** The most levels of a condition tree. */
export const MAX_DEPTH = 8;
/** The most conditions of a condition tree. */
export const MAX_LEAVES = 64;
/** The greatest length of a condition's field, in characters. */
export const MAX_FIELD_LENGTH = 1_024;
/** The schema of the reason for a change of a rule. */
export const reasonInput = boundedTextInput(MAX_LENGTHS.wallet_rule_versions.reason);
const GROUPS = ['and', 'or', 'not'] as const;
const LEAF_MEMBERS = ['field', 'op', 'value', 'network_currency_id'] as const;

type LeafSchema = z.ZodType<Extract<RuleLogic, { field: string }>>;
type Members = Readonly<Record<string, unknown>>;

/**
 * Parses a condition tree and reports every issue with its path, such as `and[1].op`. Parsing stops at the limits of
 * depth and number of conditions, so oversized trees cost no more.
 */
class LogicReader {
  readonly issues: { path: PropertyKey[]; message: string }[] = [];
  readonly #leaf: LeafSchema;
  #leaves = 0;

  constructor(leaf: LeafSchema) {
    this.#leaf = leaf;
  }

  get isTooBroad(): boolean {
    return this.#leaves > MAX_LEAVES;
  }

  read(value: unknown, path: PropertyKey[], depth: number): RuleLogic | undefined {
    if (depth > MAX_DEPTH) return this.#end(path, `must be at most ${MAX_DEPTH} levels deep`);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return this.#end(path, 'must be an object: a condition, or one of and, or, not');
    }
    const repeated = GROUPS.find((name) => repeatedIn(value)?.has(name));
    if (repeated !== undefined) return this.#end([...path, repeated], 'must be given once');
    const members: Members = Object.fromEntries(Object.entries(value));
    const [group, ...otherGroups] = GROUPS.filter((name) => isPresent(members, name));
    if (group === undefined) return this.#condition(value, path);
    if (otherGroups.length > 0 || LEAF_MEMBERS.some((name) => isPresent(members, name))) {
      return this.#end(path, 'must be either a condition or one of and, or, not');
    }
    const inside = [...path, group];
    if (group === 'not') {
      const not = this.read(members.not, inside, depth + 1);
      return not && { not };
    }
    const children = this.#children(members[group], inside, depth + 1);
    if (children === undefined) return undefined;
    return group === 'and' ? { and: children } : { or: children };
  }

  #children(value: unknown, path: PropertyKey[], depth: number): RuleLogic[] | undefined {
    if (!Array.isArray(value) || value.length === 0) return this.#end(path, 'must be a list of at least one condition');
    const children: (RuleLogic | undefined)[] = [];
    for (const [index, child] of value.entries()) {
      children.push(this.read(child, [...path, index], depth));
      if (this.isTooBroad) return undefined;
    }
    return children.every((child) => child !== undefined) ? children : undefined;
  }

  #condition(value: object, path: PropertyKey[]): RuleLogic | undefined {
    this.#leaves += 1;
    const result = this.#leaf.safeParse(value);
    if (result.success) return result.data;
    const group = GROUPS.find((name) => sameName(name, Object.keys(value)) !== undefined);
    if (group !== undefined) return this.#end([...path, group], 'must be a group of conditions');
    for (const issue of result.error.issues)
      this.issues.push({ path: [...path, ...issue.path], message: issue.message });
    return undefined;
  }

  /** Records an issue and ends the branch, which counts as a condition. */
  #end(path: PropertyKey[], message: string): undefined {
    this.#leaves += 1;
    this.issues.push({ path, message });
  }
}

function isPresent(members: Members, name: string): boolean {
  return members[name] !== undefined && members[name] !== null;
}

/** The greatest version of a rule, and of its other whole numbers. */
export const MAX_INT32 = 2_147_483_647;
const WHOLE_NUMBER = /^(-?\d+)(?:\.0+)?$/;

/** The smallest number that is too large for `readDecimal`. */
const BEYOND = 10 ** (MAX_DIGITS + 1);

const jsonNumber = z.custom<number | ExactNumber>(isJsonNumber, 'must be a number').meta({ type: 'number' });

/** The schema of a JSON number, parsed into an exact decimal text of plain digits (docs/contract.md, D5-03). */
const decimalInput = jsonNumber
  .transform(decimalOf)
  .meta({ type: 'number', exclusiveMinimum: -BEYOND, exclusiveMaximum: BEYOND });

const positiveDecimal = decimalInput.refine(isPositive, 'must be greater than 0').meta({
  type: 'number',
  exclusiveMinimum: 0,
  exclusiveMaximum: BEYOND,
});

const positiveWhole = jsonNumber
  .transform((value, context) => {
    const decimal = decimalOf(value, context);
    const [, wholeDigits] = WHOLE_NUMBER.exec(decimal) ?? [];
    if (wholeDigits !== undefined || decimal === z.NEVER) return wholeDigits ?? decimal;
    context.addIssue({ code: 'custom', message: 'must be a whole number' });
    return z.NEVER;
  })
  .refine(isPositive, 'must be greater than 0')
  .meta({ type: 'integer', minimum: 1, exclusiveMaximum: BEYOND });

const priority = wholeNumberInput(1, 100).optional();

const operator = z
  .string('must be a string')
  .transform(readAs(operatorOf, `must be one of ${OPERATORS.join(', ')}`))
  .meta({ type: 'string', enum: OPERATORS.flatMap(spellingsOf) });

const signAndApproveRule = objectInput({
  mandatory_user_id: uuidInput().optional(),
  min_priority: priority,
  max_priority: priority,
  min_user_count: wholeNumberInput(1, MAX_INT32).optional(),
});

/** The schema of a condition in a REST body. */
export const conditionInput = leafInput(decimalInput);
/** The schema of a condition tree in a REST body. */
export const ruleLogicInput = logicInput(conditionInput);

/** The schema of a wallet rule in a REST body after `parseJson` (docs/contract.md, 2.6). */
export const walletRuleInput = ruleInput({
  rule_logic: ruleLogicInput,
  amount: positiveDecimal,
  max_amount: positiveWhole,
});

/** The schema of a decimal given as a number or a string. */
export const decimalTextInput = orText(decimalInput);
/** The schema of a condition tree whose decimals are given as numbers or strings. */
export const ruleLogicTextInput = logicInput(leafInput(decimalTextInput));

/** The schema of a wallet rule in GraphQL and in MCP tools, where every amount may also be a string. */
export const walletRuleTextInput = ruleInput({
  rule_logic: ruleLogicTextInput,
  amount: orText(positiveDecimal),
  max_amount: orText(positiveWhole),
});

/** Builds the schema of a condition from the schema of its value. */
function leafInput<Value extends z.ZodType<string>>(value: Value) {
  return objectInput({
    field: boundedTextInput(MAX_FIELD_LENGTH),
    op: operator,
    value,
    network_currency_id: uuidInput(),
  });
}

/** Builds the schema of a condition tree from the schema of a condition. */
function logicInput(leaf: ReturnType<typeof leafInput>): z.ZodType<RuleLogic> {
  return z
    .unknown()
    .transform((value, context): RuleLogic => {
      const reader = new LogicReader(leaf);
      const logic = reader.read(value, [], 1);
      const tooBroad = { path: [], message: `must have at most ${MAX_LEAVES} conditions` };
      const issues = reader.isTooBroad ? [tooBroad] : reader.issues;
      for (const { path, message } of issues) context.addIssue({ code: 'custom', path, message });
      return issues.length === 0 && logic ? logic : z.NEVER;
    })
    .meta({ type: 'object' });
}

/** Builds the schema of a wallet rule from the schemas of its numbers. */
function ruleInput({
  rule_logic,
  amount,
  max_amount,
}: {
  rule_logic: z.ZodType<RuleLogic>;
  amount: z.ZodType<string>;
  max_amount: z.ZodType<string>;
}) {
  const autoTransferRule = objectInput({
    type: z.enum(AUTO_TRANSFER_TYPES, `must be one of ${AUTO_TRANSFER_TYPES.join(', ')}`),
    rule_logic,
    amount,
    target_wallet_id: uuidInput(),
  });
  const permissionlessTransferLimitRule = objectInput({
    max_amount,
    time_period: z.enum(TIME_PERIODS, `must be one of ${TIME_PERIODS.join(', ')}`),
    time_period_value: wholeNumberInput(1, MAX_INT32),
  });
  const members = objectInput({
    name: boundedTextInput(MAX_LENGTHS.wallet_rules.name),
    type: z.enum(RULE_TYPES, `must be one of ${RULE_TYPES.join(', ')}`),
    network_id: uuidInput(),
    network_currency_id: uuidInput(),
    priority,
    auto_transfer_rule: autoTransferRule.optional(),
    sign_and_approve_rule: signAndApproveRule.optional(),
    permissionless_transfer_limit_rule: permissionlessTransferLimitRule.optional(),
  });
  return members
    .refine(hasOwnObject('auto_transfer'), missing('auto_transfer'))
    .refine(hasOwnObject('permissionless_transfer_limit'), missing('permissionless_transfer_limit'));
}

function hasOwnObject(type: WalletRuleContent['type']) {
  return (rule: Partial<WalletRuleContent>) => rule.type !== type || rule[`${type}_rule`] !== undefined;
}

/** Returns the issue for the missing object of a rule type. It is reported even when other members have issues. */
function missing(type: WalletRuleContent['type']) {
  return {
    path: [`${type}_rule`],
    message: `is required if type is ${type}`,
    when: ({ value }: { value: unknown }) => typeof value === 'object' && value !== null && !Array.isArray(value),
  };
}

function decimalOf(value: number | ExactNumber, context: z.core.$RefinementCtx<unknown>): string {
  const reading = readDecimal(literalOf(value));
  if ('text' in reading) return reading.text;
  context.addIssue({ code: 'custom', message: reading.fault });
  return z.NEVER;
}

function isPositive(decimal: string): boolean {
  return decimal !== '0' && !decimal.startsWith('-');
}

/**
 * Builds a schema that accepts the same number also as a string. It is documented as a string, which no JSON parser
 * rounds.
 */
function orText(number: z.ZodType<string>): z.ZodType<string> {
  const numberOfText = (value: unknown) => (typeof value === 'string' ? new ExactNumber(value) : value);
  return z.preprocess(numberOfText, number).meta({ type: 'string' });
}

import type { z } from 'zod';
import type { RuleLogic } from './wallet-rule.ts';

const MAX_DEPTH = 8;
const MAX_LEAVES = 64;
const GROUPS = ['and', 'or', 'not'] as const;
const LEAF_MEMBERS = ['field', 'op', 'value', 'network_currency_id'] as const;

/** What is wrong with a place in a condition tree. */
export interface LogicIssue {
  path: PropertyKey[];
  message: string;
}

type LeafSchema = z.ZodType<Extract<RuleLogic, { field: string }>>;
type Members = Readonly<Record<string, unknown>>;

/**
 * Reads a condition tree, and tells of every fault in it by its place, such as `and[1].op`. Neither depth nor breadth
 * costs more than the limits allow: reading ends where they are passed.
 */
export function readRuleLogic(
  given: unknown,
  leaf: LeafSchema,
): { logic: RuleLogic | undefined; issues: LogicIssue[] } {
  const reader = new LogicReader(leaf);
  const logic = reader.read(given, [], 1);
  if (!reader.isTooBroad) return { logic, issues: reader.issues };
  return { logic: undefined, issues: [{ path: [], message: `must have at most ${MAX_LEAVES} conditions` }] };
}

class LogicReader {
  readonly issues: LogicIssue[] = [];
  readonly #leaf: LeafSchema;
  #leaves = 0;

  constructor(leaf: LeafSchema) {
    this.#leaf = leaf;
  }

  get isTooBroad(): boolean {
    return this.#leaves > MAX_LEAVES;
  }

  read(given: unknown, path: PropertyKey[], depth: number): RuleLogic | undefined {
    if (depth > MAX_DEPTH) return this.#end(path, `must be at most ${MAX_DEPTH} deep`);
    if (typeof given !== 'object' || given === null || Array.isArray(given)) {
      return this.#end(path, 'must be an object: a condition, or one of and, or, not');
    }
    const members: Members = Object.fromEntries(Object.entries(given));
    const [group, ...others] = GROUPS.filter((name) => isGiven(members, name));
    if (group === undefined) return this.#condition(given, path);
    if (others.length > 0 || LEAF_MEMBERS.some((name) => isGiven(members, name))) {
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

  #children(given: unknown, path: PropertyKey[], depth: number): RuleLogic[] | undefined {
    if (!Array.isArray(given) || given.length === 0) return this.#end(path, 'must be a list of at least one condition');
    const children: (RuleLogic | undefined)[] = [];
    for (const [index, child] of given.entries()) {
      children.push(this.read(child, [...path, index], depth));
      if (this.isTooBroad) return undefined;
    }
    return children.every((child) => child !== undefined) ? children : undefined;
  }

  #condition(given: object, path: PropertyKey[]): RuleLogic | undefined {
    this.#leaves += 1;
    const parsed = this.#leaf.safeParse(given);
    if (parsed.success) return parsed.data;
    for (const issue of parsed.error.issues)
      this.issues.push({ path: [...path, ...issue.path], message: issue.message });
    return undefined;
  }

  /** A branch that goes no further counts as a leaf. */
  #end(path: PropertyKey[], message: string): undefined {
    this.#leaves += 1;
    this.issues.push({ path, message });
  }
}

function isGiven(members: Members, name: string): boolean {
  return members[name] !== undefined && members[name] !== null;
}

import { MASK } from './mask-keys.ts';

/**
 * What is hidden of a JSON value beside the values of secret keys. Lists are looked through: a rule holds for each of
 * their items.
 */
export type JsonRule =
  /** The whole value. */
  | { kind: 'hidden' }
  /** Every string, at any depth, becomes what `mask` makes of its decoded text; one that is cut becomes `***`. */
  | { kind: 'text'; mask: (text: string) => string }
  /** The members of an object, each by its own rule; `others` holds for those without one. */
  | { kind: 'members'; members: ReadonlyMap<string, JsonRule>; others?: JsonRule };

/** Hides a whole value. */
export const HIDDEN: JsonRule = { kind: 'hidden' };

/** Hides every string, and keeps the form, the names, numbers and literals. */
export const EVERY_STRING: JsonRule = { kind: 'text', mask: () => MASK };

/** The rule of members by name. */
export function membersRule(members: Readonly<Record<string, JsonRule | undefined>>, others?: JsonRule): JsonRule {
  const given = Object.entries(members).flatMap(([name, rule]) => (rule === undefined ? [] : [[name, rule] as const]));
  return { kind: 'members', members: new Map(given), ...(others && { others }) };
}

/** The rule for a member of an object that has a rule itself. */
export function ruleOfMember(rule: JsonRule | undefined, name: string): JsonRule | undefined {
  switch (rule?.kind) {
    case undefined:
      return undefined;
    case 'members':
      return rule.members.get(name) ?? rule.others;
    case 'hidden':
    case 'text':
      return rule;
    default:
      return rule satisfies never;
  }
}

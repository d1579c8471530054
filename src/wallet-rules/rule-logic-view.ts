import { ExactNumber } from '../lib/json.ts';
import type { RuleLogic } from './wallet-rule.ts';

/** A condition tree in the shape of REST: its values are JSON numbers, which lose no digit when they are written. */
export function shownLogic(logic: RuleLogic): unknown {
  if ('field' in logic) return { ...logic, value: new ExactNumber(logic.value) };
  if ('not' in logic) return { not: shownLogic(logic.not) };
  return 'and' in logic ? { and: logic.and.map(shownLogic) } : { or: logic.or.map(shownLogic) };
}

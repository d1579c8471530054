import { type Balance, evaluateRule as evaluate } from '../../../src/features/wallet-rules/evaluate.rules.ts';
import { readDecimal } from '../../../src/lib/decimal.ts';
import type { RuleLogic } from '../../../src/tables/wallet-rule-content.ts';

export type { RuleLogic } from '../../../src/tables/wallet-rule-content.ts';

const ID = 'aaaaaaaa-0000-4000-8000-00000000000a';

function read(logic: RuleLogic): RuleLogic {
  if ('and' in logic) return { and: logic.and.map(read) };
  if ('or' in logic) return { or: logic.or.map(read) };
  if ('not' in logic) return { not: read(logic.not) };
  const reading = readDecimal(logic.value);
  return { ...logic, value: 'text' in reading ? reading.text : logic.value };
}

/** Whether the service makes a transfer on these conditions with these balances. */
export function evaluateRule(logic: RuleLogic, balances: readonly Balance[]): boolean {
  const own = { type: 'auto' as const, rule_logic: read(logic), amount: '1', target_wallet_id: ID };
  const rule = { name: '', type: 'auto_transfer' as const, network_id: ID, network_currency_id: ID };
  return evaluate({ ...rule, auto_transfer_rule: own }, { balances, transfers: [], at: { seconds: 0n, nanos: 0 } })
    .fires;
}

import { notFoundRefusal } from '../errors/refusal.ts';
import type { Instant } from '../lib/iso-instant.ts';
import { type Evaluation, evaluateRule } from './evaluate.rules.ts';
import type { PreviewInput } from './preview.input.ts';
import type { WalletRulePages, WalletRuleRow } from './wallet-rule-pages.service.ts';

interface WalletRulePreviewsParts {
  pages: Pick<WalletRulePages, 'find'>;
  nowMs(): number;
}

/** Tells whether a rule would fire, and why. Nothing is changed. */
export class WalletRulePreviews {
  readonly #parts: WalletRulePreviewsParts;

  constructor(parts: WalletRulePreviewsParts) {
    this.#parts = parts;
  }

  /**
   * Judges a rule by the facts that are given with it; without a time, as of now.
   * @throws RefusalError `not_found` for an id that is not of a rule of the node.
   */
  async preview(nodeId: string, { rule, rule_id: ruleId, balances, transfers, at }: PreviewInput): Promise<Evaluation> {
    const judged = rule ?? (await this.#stored(nodeId, ruleId ?? ''));
    return evaluateRule(judged, { balances, transfers, at: at ?? instantOf(this.#parts.nowMs()) });
  }

  async #stored(nodeId: string, id: string) {
    const row = await this.#parts.pages.find(nodeId, id);
    if (!row) throw notFoundRefusal();
    return ruleOf(row);
  }
}

function ruleOf(row: WalletRuleRow) {
  const { auto_transfer_rule, sign_and_approve_rule, permissionless_transfer_limit_rule } = row;
  return {
    name: row.name,
    type: row.type,
    network_id: row.network_id,
    network_currency_id: row.network_currency_id,
    priority: row.priority ?? undefined,
    auto_transfer_rule: auto_transfer_rule ?? undefined,
    sign_and_approve_rule: sign_and_approve_rule ?? undefined,
    permissionless_transfer_limit_rule: permissionless_transfer_limit_rule ?? undefined,
    status: row.status,
  };
}

function instantOf(ms: number): Instant {
  return { seconds: BigInt(Math.floor(ms / 1_000)), nanos: (((ms % 1_000) + 1_000) % 1_000) * 1_000_000 };
}

import { z } from 'zod';
import { objectInput, readAs, textInput, uuidInput } from '../../lib/input.ts';
import { type Instant, instantOfMs, parseInstant } from '../../lib/instants.ts';
import { KeyedMutex } from '../../lib/semaphore.ts';
import { runCooperatively } from '../../lib/yielding.ts';
import { notFound, orNotFound, Refusal, serviceUnavailable } from '../../platform/errors.ts';
import { heldMemory, requestSignal } from '../../platform/held-memory.ts';
import type { WalletRuleContent } from '../../tables/wallet-rule-content.ts';
import type { Networks } from '../networks/networks.service.ts';
import type { WalletPages } from '../wallets/wallets.service.ts';
import {
  type BalanceIndex,
  type Evaluation,
  type Explanation,
  evaluateRule,
  type Facts,
  firstUnmet,
  indexOf,
  type RuleWarning,
  warningsOf,
} from './evaluate.rules.ts';
import { decimalTextInput, MAX_LEAVES, walletRuleTextInput } from './wallet-rule.input.ts';
import { contentOf, type WalletRulePages, type WalletRuleRow } from './wallet-rules.service.ts';

const MAX_BALANCES = 1_000;
const MAX_TRANSFERS = 10_000;

const TIME = 'must be an ISO 8601 date and time';
const instant = z
  .custom<string | Instant>((value) => typeof value === 'string' || typeof Object(value).seconds === 'bigint', TIME)
  .transform(readAs((value) => (typeof value === 'string' ? parseInstant(value) : value), TIME))
  .meta({ type: 'string', format: 'date-time' });

const balance = objectInput({ field: textInput(), network_currency_id: uuidInput(), value: decimalTextInput });

const transfer = objectInput({
  network_currency_id: uuidInput(),
  amount: decimalTextInput.refine((amount) => !amount.startsWith('-'), 'must not be negative'),
  at: instant,
});

/** The schema of the facts by which to evaluate rules. */
export const previewFactsInput = objectInput({
  balances: z.array(balance, 'must be a list').max(MAX_BALANCES, `must have at most ${MAX_BALANCES} balances`),
  transfers: z
    .array(transfer, 'must be a list')
    .max(MAX_TRANSFERS, `must have at most ${MAX_TRANSFERS} transfers`)
    .optional(),
  at: instant.optional(),
});

/** The members of a preview: a rule, or the id of a stored one, and the facts. */
export const previewMembers = {
  rule: walletRuleTextInput.optional(),
  rule_id: uuidInput().optional(),
  wallet_id: uuidInput().optional(),
  ...previewFactsInput.out.shape,
};

/** The schema of a preview of one rule. */
export const previewInput = objectInput(previewMembers).refine(
  ({ rule, rule_id }) => (rule === undefined) !== (rule_id === undefined),
  { path: ['rule'], message: 'must be a rule, or the id of one, but not both' },
);

type PreviewFacts = z.output<typeof previewFactsInput>;

/** The maximum number of active rules of a wallet that is previewed. */
const MAX_RULES = 500;
const TOO_MANY_RULES = `the wallet has more than ${MAX_RULES} active rules: preview its rules one by one`;

/** How many previews of a tenant's wallets may wait for their turn. */
const MAX_WAITING = 200;

/** What every preview takes, such as reading the rules, in facts. */
const FACTS_OF_NONE = 250;
/** How many steps (a rule, a condition and a fact) cost as much as an object of a result. */
const STEPS_OF_AN_OBJECT = 100_000;

/** Returns what the preview of a wallet by so many facts costs at most, in objects of a result. */
export function priceOfWalletPreview(facts: number): number {
  return Math.ceil((MAX_RULES * MAX_LEAVES * (FACTS_OF_NONE + facts)) / STEPS_OF_AN_OBJECT);
}

/** A rule of a wallet, and whether it would fire. */
export type PreviewedRule = Pick<WalletRuleRow, 'name' | 'type' | 'priority'> & {
  rule_id: string;
  fires: boolean;
  /** The first condition that keeps the rule from firing; null if it fires. */
  unmet: Explanation | null;
};

/** A rule that was evaluated, whether it would fire, and the wallet that it is for, as far as that is known. */
export interface RulePreview extends Evaluation {
  rule: WalletRuleContent;
  walletId: string | undefined;
}

/** Previews whether rules would fire and why, without changing anything. */
export class WalletRulePreviews {
  readonly #deps;
  /** A wallet may have megabytes of rules: a tenant's are read and evaluated one wallet after another. */
  readonly #turns = new KeyedMutex({ maxWaiting: MAX_WAITING, refusal: serviceUnavailable, signalOf: requestSignal });

  constructor(deps: {
    pages: Pick<WalletRulePages, 'find' | 'active'>;
    wallets: Pick<WalletPages, 'find'>;
    networks: Pick<Networks, 'find' | 'currencies'>;
    nowMs(): number;
  }) {
    this.#deps = deps;
  }

  /**
   * Evaluates a rule by the given facts, at the time `at` or now.
   * @throws Refusal `not_found` when the tenant has no rule with this id.
   */
  async preview(
    nodeId: string,
    { rule, rule_id: ruleId, wallet_id, ...facts }: z.output<typeof previewInput>,
  ): Promise<RulePreview> {
    const row = rule ? undefined : await this.#deps.pages.find(nodeId, ruleId ?? '');
    if (!rule && !row) throw notFound();
    const content = rule ?? { ...contentOf(row as WalletRuleRow), status: row?.status };
    return { ...evaluateRule(content, this.#factsOf(facts)), rule: content, walletId: row?.wallet_id ?? wallet_id };
  }

  /** Returns the warnings about a rule that was previewed. */
  async warnings(
    nodeId: string,
    { rule, walletId = '' }: Pick<RulePreview, 'rule' | 'walletId'>,
  ): Promise<RuleWarning[]> {
    const { wallets, networks } = this.#deps;
    const [wallet, network, currency, target] = await Promise.all([
      wallets.find(nodeId, walletId),
      networks.find(nodeId, rule.network_id),
      networks.currencies.find(nodeId, rule.network_currency_id),
      wallets.find(nodeId, rule.auto_transfer_rule?.target_wallet_id ?? ''),
    ]);
    return warningsOf(rule, { wallet, network, currency, target });
  }

  /**
   * Evaluates every active rule of a wallet by the same facts, in the order of their priority.
   * @throws Refusal `not_found` when the tenant has no wallet with this id; `page_too_large` when the wallet has more
   * than `MAX_RULES` active rules.
   */
  async previewWallet(
    nodeId: string,
    walletId: string,
    previewFacts: PreviewFacts,
  ): Promise<{ rules: PreviewedRule[] }> {
    orNotFound(await this.#deps.wallets.find(nodeId, walletId));
    return this.#turns.run(nodeId, () => this.#previewRules(nodeId, walletId, previewFacts));
  }

  async #previewRules(nodeId: string, walletId: string, previewFacts: PreviewFacts) {
    const rows = await this.#deps.pages.active(nodeId, walletId, MAX_RULES + 1);
    if (rows.length > MAX_RULES) throw new Refusal('page_too_large', { message: TOO_MANY_RULES });
    const facts = this.#factsOf(previewFacts);
    const balances = indexOf(facts.balances);
    const held = heldMemory();
    const rules: PreviewedRule[] = [];
    for (const row of rows) rules.push(await runCooperatively(() => previewOf(row, facts, balances), held));
    return { rules };
  }

  #factsOf({ balances, transfers, at }: PreviewFacts): Facts {
    return { balances, transfers, at: at ?? instantOfMs(this.#deps.nowMs()) };
  }
}

function previewOf(row: WalletRuleRow, facts: Facts, balances: BalanceIndex): PreviewedRule {
  const rule = contentOf(row);
  const { fires, explanation } = evaluateRule(rule, facts, balances);
  const { id: rule_id, name, type, priority } = row;
  return { rule_id, name, type, priority, fires, unmet: firstUnmet(rule, explanation) ?? null };
}

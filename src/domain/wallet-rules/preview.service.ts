import { z } from 'zod';
import { objectInput, textInput, uuidInput } from '../../lib/input.ts';
import { type Instant, parseInstant } from '../../lib/instants.ts';
import { notFound } from '../../platform/errors.ts';
import { type Evaluation, evaluateRule } from './evaluate.rules.ts';
import { decimalTextInput, walletRuleTextInput } from './wallet-rule.input.ts';
import { contentOf, type WalletRulePages } from './wallet-rules.service.ts';

const MAX_BALANCES = 1_000;
const MAX_TRANSFERS = 10_000;

const instant = z
  .custom<string | Instant>(
    (given) => typeof given === 'string' || isInstant(given),
    'must be an ISO 8601 date and time',
  )
  .transform((given, context): Instant => {
    const read = typeof given === 'string' ? parseInstant(given) : given;
    if (read) return read;
    context.addIssue({ code: 'custom', message: 'must be an ISO 8601 date and time' });
    return z.NEVER;
  })
  .meta({ type: 'string', format: 'date-time' });

const balance = objectInput({ field: textInput(), network_currency_id: uuidInput(), value: decimalTextInput });

const transfer = objectInput({
  network_currency_id: uuidInput(),
  amount: decimalTextInput.refine((amount) => !amount.startsWith('-'), 'must not be negative'),
  at: instant,
});

/** The schema of a preview: a rule, or the id of a stored one, and the facts by which to evaluate it. */
export const previewInput = objectInput({
  rule: walletRuleTextInput.optional(),
  rule_id: uuidInput().optional(),
  balances: z.array(balance, 'must be a list').max(MAX_BALANCES, `must have at most ${MAX_BALANCES} balances`),
  transfers: z
    .array(transfer, 'must be a list')
    .max(MAX_TRANSFERS, `must have at most ${MAX_TRANSFERS} transfers`)
    .optional(),
  at: instant.optional(),
}).refine(({ rule, rule_id }) => (rule === undefined) !== (rule_id === undefined), {
  path: ['rule'],
  message: 'must be a rule, or the id of one, but not both',
});

/** A preview request as parsed by `previewInput`. */
export type PreviewInput = z.output<typeof previewInput>;

function isInstant(given: unknown): given is Instant {
  return typeof given === 'object' && given !== null && 'seconds' in given && typeof given.seconds === 'bigint';
}

interface WalletRulePreviewsDependencies {
  pages: Pick<WalletRulePages, 'find'>;
  nowMs(): number;
}

/** Previews whether a rule would fire and why, without changing anything. */
export class WalletRulePreviews {
  readonly #deps: WalletRulePreviewsDependencies;

  constructor(deps: WalletRulePreviewsDependencies) {
    this.#deps = deps;
  }

  /**
   * Evaluates a rule by the given facts, at the time `at` or now.
   * @throws Refusal `not_found` when the tenant has no rule with this id.
   */
  async preview(nodeId: string, { rule, rule_id: ruleId, balances, transfers, at }: PreviewInput): Promise<Evaluation> {
    const judged = rule ?? (await this.#stored(nodeId, ruleId ?? ''));
    return evaluateRule(judged, { balances, transfers, at: at ?? instantOf(this.#deps.nowMs()) });
  }

  async #stored(nodeId: string, id: string) {
    const row = await this.#deps.pages.find(nodeId, id);
    if (!row) throw notFound();
    return { ...contentOf(row), status: row.status };
  }
}

function instantOf(ms: number): Instant {
  return { seconds: BigInt(Math.floor(ms / 1_000)), nanos: (((ms % 1_000) + 1_000) % 1_000) * 1_000_000 };
}

import { z } from 'zod';
import { objectInput, textInput, uuidInput } from '../lib/input.ts';
import { type Instant, parseInstant } from '../lib/iso-instant.ts';
import { decimalTextInput, walletRuleTextInput } from './wallet-rule.input.ts';

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

/** What a rule is previewed with: a rule, or the id of one that is stored, and facts to judge it by. */
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
  message: 'must be given, or the id of a rule, and not both',
});

/** What `previewInput` gives. */
export type PreviewInput = z.output<typeof previewInput>;

function isInstant(given: unknown): given is Instant {
  return typeof given === 'object' && given !== null && 'seconds' in given && typeof given.seconds === 'bigint';
}

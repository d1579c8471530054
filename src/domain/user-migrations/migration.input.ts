import { z } from 'zod';
import { objectInput, textInput } from '../../lib/input.ts';
import { hasForbiddenText } from '../../lib/json.ts';
import { MAX_IDENTIFIER_LENGTH, MAX_WALLET_LENGTH, tooLong } from './migration-outcome.rules.ts';

/** How many rows a bulk request can have (specification section 8). */
export const MAX_BULK_ROWS = 500;

const text = () => z.string('must be a string');
const kycSent = z.boolean('must be a boolean').default(false);

const walletInput = text()
  .refine((wallet) => !hasForbiddenText(wallet), 'must not contain U+0000 or a lone surrogate')
  .refine((wallet) => wallet.trim() !== '', 'must not be blank')
  .transform((wallet) => wallet.trim())
  .meta({ minLength: 1, pattern: '^[^\\x00]*[^\\s\\x00][^\\x00]*$' });

const identifierInput = textInput()
  .refine(
    (identifier) => !tooLong(identifier, MAX_IDENTIFIER_LENGTH),
    `must have at most ${MAX_IDENTIFIER_LENGTH} characters`,
  )
  .meta({ maxLength: MAX_IDENTIFIER_LENGTH });

/** A user to migrate (specification section 4.6). That one of two identifiers is needed is an outcome of its own. */
export const migrateUserInput = objectInput({
  wallet_address: walletInput
    .refine((wallet) => !tooLong(wallet, MAX_WALLET_LENGTH), `must have at most ${MAX_WALLET_LENGTH} characters`)
    .meta({ maxLength: MAX_WALLET_LENGTH }),
  email: identifierInput.optional(),
  external_id: identifierInput.optional(),
  name: textInput().optional(),
  surname: textInput().optional(),
  kyc_sent: kycSent,
});

/** A row of many: what a single user would be refused for is this row's outcome, types and the wallet apart. */
const rowInput = objectInput({
  wallet_address: walletInput,
  email: text().optional(),
  external_id: text().optional(),
  name: text().optional(),
  surname: text().optional(),
  kyc_sent: kycSent,
});

/** 1 to 500 users to migrate (specification section 4.7). How many they are is judged before any of them. */
export const migrateUsersInput = objectInput({
  users: z
    .array(z.unknown(), 'must be an array')
    // Not min and max, which judge the length of a text as well.
    .refine((rows) => rows.length > 0, 'must have at least one row')
    .refine((rows) => rows.length <= MAX_BULK_ROWS, `must have at most ${MAX_BULK_ROWS} rows`)
    .meta({ minItems: 1, maxItems: MAX_BULK_ROWS })
    .pipe(z.array(rowInput)),
});

/** A user to migrate, as the request has it; the wallet's address is trimmed. */
export type MigrateUserInput = z.output<typeof rowInput>;

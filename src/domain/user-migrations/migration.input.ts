import { z } from 'zod';
import { boundedTextInput, isLonger, objectInput } from '../../lib/input.ts';
import { hasForbiddenText } from '../../lib/json.ts';
import { MAX_LENGTHS } from '../../tables/text-lengths.ts';
import { MAX_WALLET_LENGTH } from './migration-outcome.rules.ts';

/** The greatest number of rows in a bulk request (specification section 8). */
export const MAX_BULK_ROWS = 500;

const text = () => z.string('must be a string');
const kycSent = z.boolean('must be a boolean').default(false);

const walletInput = text()
  .refine((wallet) => !hasForbiddenText(wallet), 'must not contain U+0000 or a lone surrogate')
  .refine((wallet) => wallet.trim() !== '', 'must not be blank')
  .transform((wallet) => wallet.trim())
  .meta({ minLength: 1, pattern: '^[^\\x00]*[^\\s\\x00][^\\x00]*$' });

/**
 * The schema of a single user to migrate (specification section 4.6). A user without email and external id is valid
 * here; that is an outcome of its own.
 */
export const migrateUserInput = objectInput({
  wallet_address: walletInput
    .refine((wallet) => !isLonger(wallet, MAX_WALLET_LENGTH), `must have at most ${MAX_WALLET_LENGTH} characters`)
    .meta({ maxLength: MAX_WALLET_LENGTH }),
  email: boundedTextInput(MAX_LENGTHS.users.email).optional(),
  external_id: boundedTextInput(MAX_LENGTHS.users.external_id).optional(),
  name: boundedTextInput(MAX_LENGTHS.users.name).optional(),
  surname: boundedTextInput(MAX_LENGTHS.users.surname).optional(),
  kyc_sent: kycSent,
});

/**
 * The schema of one row of many. Only wrong types and an invalid wallet refuse the request; any other issue becomes the
 * outcome of the row.
 */
const rowInput = objectInput({
  wallet_address: walletInput,
  email: text().optional(),
  external_id: text().optional(),
  name: text().optional(),
  surname: text().optional(),
  kyc_sent: kycSent,
});

/** The schema of 1 to 500 users to migrate (specification section 4.7). Their number is checked before any of them. */
export const migrateUsersInput = objectInput({
  users: z
    .array(z.unknown(), 'must be an array')
    // Not `min` and `max`, which also check the length of a string.
    .refine((rows) => rows.length > 0, 'must have at least one row')
    .refine((rows) => rows.length <= MAX_BULK_ROWS, `must have at most ${MAX_BULK_ROWS} rows`)
    .meta({ minItems: 1, maxItems: MAX_BULK_ROWS })
    .pipe(z.array(rowInput)),
});

/** A user to migrate, as parsed from a request; the wallet's address is trimmed. */
export type MigrateUserInput = z.output<typeof rowInput>;

import { z } from 'zod';
import { trimmed } from '../../lib/identifier-key.ts';
import { isLonger, objectInput, textInput } from '../../lib/input.ts';
import { hasForbiddenText } from '../../lib/json.ts';
import { nfc } from '../../lib/spelling.ts';
import { MAX_LENGTHS } from '../../tables/text-lengths.ts';
import { emailOf, present } from '../users/users.rules.ts';

/** The maximum length of a wallet's address before it is lower-cased, in characters. */
export const MAX_WALLET_LENGTH = 128;

/** The greatest number of rows in a bulk request (docs/contract.md, 4.7-02). */
export const MAX_BULK_ROWS = 500;

const text = () => z.string('must be a string');
const kycSent = z.boolean('must be a boolean').default(false);

/** The schema of a wallet's address in a row of many, which is trimmed. */
export const walletInput = text()
  .refine((wallet) => !hasForbiddenText(wallet), 'must not contain U+0000 or a lone surrogate')
  .overwrite(trimmed)
  .min(1, 'must not be blank')
  .meta({ pattern: '^[^\\x00]*[^\\s\\x00\\x85][^\\x00]*$' });

/** Returns the schema of a text that stays as sent; `form` is what is stored of it, in at most `max` characters. */
function storedTextInput(max: number, form: (sent: string) => string | undefined) {
  return textInput()
    .refine((sent) => !isLonger(form(sent) ?? '', max), `must have at most ${max} characters`)
    .meta({ maxLength: max });
}

/** The schema of an email. */
export const emailInput = storedTextInput(MAX_LENGTHS.users.email, emailOf);

/**
 * The schema of a single user to migrate (docs/contract.md, 4.6). A user without email and external id is valid
 * here; that is a separate outcome.
 */
export const migrateUserInput = objectInput({
  wallet_address: walletInput
    .refine((wallet) => !isLonger(wallet, MAX_WALLET_LENGTH), `must have at most ${MAX_WALLET_LENGTH} characters`)
    .meta({ maxLength: MAX_WALLET_LENGTH }),
  email: emailInput.optional(),
  external_id: storedTextInput(MAX_LENGTHS.users.external_id, present).optional(),
  name: storedTextInput(MAX_LENGTHS.users.name, nfc).optional(),
  surname: storedTextInput(MAX_LENGTHS.users.surname, nfc).optional(),
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

/** The schema of 1 to 500 rows. Their number is checked before any of them. */
export const bulkRows = z
  .array(z.unknown(), 'must be an array')
  // Not `min` and `max`, which also check the length of a string.
  .refine((rows) => rows.length > 0, 'must have at least one row')
  .refine((rows) => rows.length <= MAX_BULK_ROWS, `must have at most ${MAX_BULK_ROWS} rows`)
  .meta({ minItems: 1, maxItems: MAX_BULK_ROWS })
  .pipe(z.array(rowInput));

/** The schema of 1 to 500 users to migrate (docs/contract.md, 4.7-02). */
export const migrateUsersInput = objectInput({ users: bulkRows });

/** A user to migrate, as parsed from a request; the wallet's address is trimmed. */
export type MigrateUserInput = z.output<typeof rowInput>;

import { z } from 'zod';
import { isRole } from '../../access/administration/administration.ts';
import { identifierKey, trimmed } from '../../lib/identifier-key.ts';
import { isLonger, objectInput, secretText, textInput } from '../../lib/input.ts';
import { nfc } from '../../lib/spelling.ts';
import { MAX_LENGTHS } from '../../tables/text-lengths.ts';

const MIN_PASSWORD = 8;
const MAX_PASSWORD = 1_024;

const password = secretText()
  .overwrite(nfc)
  .refine(
    (text) => isLonger(text, MIN_PASSWORD - 1) && !isLonger(text, MAX_PASSWORD),
    `must have ${MIN_PASSWORD} to ${MAX_PASSWORD} characters`,
  );

const role = z.string('must be a string').refine(isRole, 'must be admin, operator or viewer');

const MAX_USERNAME = MAX_LENGTHS.supervisors.username;

/** The schema of a username, which is trimmed. */
export const usernameInput = textInput()
  .overwrite(trimmed)
  .refine(
    (text) => !isLonger(text, MAX_USERNAME) && !isLonger(identifierKey(text), MAX_USERNAME),
    `must have at most ${MAX_USERNAME} characters`,
  )
  .refine((text) => identifierKey(text) !== '', 'must not be empty');

/** The schema of a supervisor to create. Passwords are in NFC, as at the token endpoint. */
export const supervisorInput = objectInput({
  username: usernameInput,
  password,
  role,
});

/** The schema of a new password. */
export const passwordInput = objectInput({ password });

/** The schema of a password to compare, of any length. */
export const currentPasswordInput = secretText().overwrite(nfc);

/** The schema of a new role. */
export const roleInput = objectInput({ role });

/** A supervisor as parsed by `supervisorInput`. */
export type SupervisorInput = z.output<typeof supervisorInput>;

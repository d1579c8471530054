import { z } from 'zod';
import { isLonger, objectInput, textInput } from '../../lib/input.ts';
import { nfc } from '../../lib/spelling.ts';
import { MAX_LENGTHS } from '../../tables/text-lengths.ts';
import { isRole } from './administration.ts';

const MIN_PASSWORD = 8;
const MAX_PASSWORD = 1_024;

const password = textInput()
  .overwrite(nfc)
  .refine(
    (text) => isLonger(text, MIN_PASSWORD - 1) && !isLonger(text, MAX_PASSWORD),
    `must have ${MIN_PASSWORD} to ${MAX_PASSWORD} characters`,
  );

const role = z.string('must be a string').refine(isRole, 'must be admin, operator or viewer');

/** The schema of a supervisor to create. Usernames and passwords are in NFC, as at the token endpoint. */
export const supervisorInput = objectInput({
  username: textInput()
    .overwrite(nfc)
    .max(MAX_LENGTHS.supervisors.username, `must have at most ${MAX_LENGTHS.supervisors.username} characters`)
    .refine((text) => text.trim() !== '', 'must not be empty'),
  password,
  role,
});

/** The schema of a new password. */
export const passwordInput = objectInput({ password });

/** The schema of a password to compare, of any length. */
export const currentPasswordInput = textInput().overwrite(nfc);

/** The schema of a new role. */
export const roleInput = objectInput({ role });

/** A supervisor as parsed by `supervisorInput`. */
export type SupervisorInput = z.output<typeof supervisorInput>;

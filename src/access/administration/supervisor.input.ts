import { z } from 'zod';
import { objectInput, textInput } from '../../lib/input.ts';
import { MAX_USERNAME_LENGTH } from '../supervisors/supervisors.service.ts';
import { isRole } from './administration.ts';

const MIN_PASSWORD = 8;
const MAX_PASSWORD = 1_024;

const password = textInput().refine((text) => {
  const { length } = [...text];
  return length >= MIN_PASSWORD && length <= MAX_PASSWORD;
}, `must have ${MIN_PASSWORD} to ${MAX_PASSWORD} characters`);

const role = z.string('must be a string').refine(isRole, 'must be admin, operator or viewer');

/** Input for creating a supervisor. */
export const supervisorInput = objectInput({
  username: textInput()
    .max(MAX_USERNAME_LENGTH, `must have at most ${MAX_USERNAME_LENGTH} characters`)
    .refine((text) => text.trim() !== '', 'must not be empty'),
  password,
  role,
});

/** Input for setting a password. */
export const passwordInput = objectInput({ password });

/** Input for changing a role. */
export const roleInput = objectInput({ role });

/** A parsed `supervisorInput`. */
export type SupervisorInput = z.output<typeof supervisorInput>;

import { z } from 'zod';
import { objectInput, textInput } from '../lib/input.ts';
import { isRole } from '../oauth/administration.rules.ts';
import { MAX_USERNAME_LENGTH } from './supervisors.service.ts';

const MIN_PASSWORD = 8;
const MAX_PASSWORD = 1_024;

const password = textInput().refine((text) => {
  const { length } = [...text];
  return length >= MIN_PASSWORD && length <= MAX_PASSWORD;
}, `must have ${MIN_PASSWORD} to ${MAX_PASSWORD} characters`);

const role = z.string('must be a string').refine(isRole, 'must be admin, operator or viewer');

/** A supervisor as one is created. */
export const supervisorInput = objectInput({
  username: textInput()
    .max(MAX_USERNAME_LENGTH, `must have at most ${MAX_USERNAME_LENGTH} characters`)
    .refine((text) => text.trim() !== '', 'must not be empty'),
  password,
  role,
});

/** A password as it is set. */
export const passwordInput = objectInput({ password });

/** A role as it is given. */
export const roleInput = objectInput({ role });

/** What a supervisor is made of. */
export type SupervisorInput = z.output<typeof supervisorInput>;

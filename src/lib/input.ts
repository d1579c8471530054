import { z } from 'zod';
import { hasForbiddenText } from './json.ts';

// Without the flag i, so that its source says the same wherever it is published.
const UUID = /^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$/;

const MAX_SEARCH_LENGTH = 1_000;

/** What a text that can be stored is made of, as a schema can say it: a lone surrogate has no name in a pattern. */
export const TEXT_PATTERN = '^[^\\x00]*$';

/** A string that can be stored. */
export function textInput(): z.ZodString {
  return z
    .string('must be a string')
    .refine((text) => !hasForbiddenText(text), 'must not contain U+0000 or a lone surrogate')
    .meta({ pattern: TEXT_PATTERN });
}

/** What is looked for in other texts, each of which costs its length. */
export function searchInput(): z.ZodString {
  return textInput().max(MAX_SEARCH_LENGTH, `must have at most ${MAX_SEARCH_LENGTH} characters`);
}

/** A UUID: any 8-4-4-4-12 hexadecimal string in either case, kept in lower case. */
export function uuidInput(): z.ZodPipe<z.ZodString, z.ZodTransform<string, string>> {
  return z
    .string('must be a UUID')
    .regex(UUID, 'must be a UUID: 8-4-4-4-12 hexadecimal digits')
    .transform((text) => text.toLowerCase())
    .meta({ format: 'uuid' });
}

/** Whether a text is a UUID in either case. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** An object whose null members count as absent. */
export function objectInput<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.preprocess(withoutNulls, z.object(shape, 'must be an object'));
}

/** A whole number in a range. */
export function wholeNumberInput(minimum: number, maximum: number): z.ZodInt32 {
  const message = `must be a whole number from ${minimum} to ${maximum}`;
  return z.int32({ error: message, abort: true }).min(minimum, message).max(maximum, message);
}

function withoutNulls(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null));
}

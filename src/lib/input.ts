import { z } from 'zod';
import { hasForbiddenText, repeatedIn } from './json.ts';
import { respelt } from './spelling.ts';

// Without the flag i, since published schemas contain the source of the expression only.
const UUID = /^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$/;

const MAX_SEARCH_LENGTH = 1_000;

/**
 * The pattern of a storable text in published JSON Schemas. A pattern cannot exclude lone surrogates, which are not
 * storable either.
 */
export const TEXT_PATTERN = '^[^\\x00]*$';

/** Returns the schema of a text that can be stored: one without U+0000 and lone surrogates. */
export function textInput(): z.ZodString {
  return z
    .string('must be a string')
    .refine((text) => !hasForbiddenText(text), 'must not contain U+0000 or a lone surrogate')
    .meta({ pattern: TEXT_PATTERN });
}

/** The schemas of secrets. Published JSON Schemas do not show it, as they would show `meta`. */
const secrets = z.registry<{ isSecret: true }>();

/** Returns the schema of a text that no record, log or trace may hold: a password, a token. */
export function secretText(): z.ZodString {
  return textInput().register(secrets, { isSecret: true });
}

/** Checks whether a schema describes a secret, or is derived from such a schema. */
export function isSecretInput(schema: z.core.$ZodType): boolean {
  return secrets.get(schema) !== undefined;
}

/**
 * Returns the schema of a text that can be stored in at most `max` characters. A character is a Unicode code point here,
 * as in PostgreSQL and in JSON Schema.
 */
export function boundedTextInput(max: number): z.ZodString {
  return textInput().max(max, `must have at most ${max} characters`);
}

/** Checks whether a text has more than `max` characters, counted as Unicode code points. */
export function isLonger(text: string, max: number): boolean {
  return text.length > max && (text.length > 2 * max || Array.from(text).length > max);
}

/** Returns a text that is cut if it has more than `max` characters. */
export function cutTo(text: string, max: number): string {
  return isLonger(text, max) ? text.slice(0, max).toWellFormed() : text;
}

/**
 * Returns the schema of a search text, which is limited to 1,000 characters because each comparison costs its length.
 */
export function searchInput(): z.ZodString {
  return boundedTextInput(MAX_SEARCH_LENGTH);
}

/**
 * Returns the schema of a UUID: 8-4-4-4-12 hexadecimal digits of any version, in upper or lower case, converted to
 * lower case.
 */
export function uuidInput(): z.ZodPipe<z.ZodString, z.ZodTransform<string, string>> {
  return z
    .string('must be a UUID')
    .regex(UUID, 'must be a UUID: 8-4-4-4-12 hexadecimal digits')
    .transform((text) => text.toLowerCase())
    .meta({ format: 'uuid' });
}

/**
 * Returns the issues of a failed parse of `input`. If a member is missing, its message says that it is required, and
 * names the member that spells its name in another way.
 */
export function issuesIn(error: z.ZodError, input: unknown): { path: PropertyKey[]; message: string }[] {
  return error.issues.map(({ path, message }) => ({ path, message: messageAt(path, message, input) }));
}

function messageAt(path: readonly PropertyKey[], message: string, input: unknown): string {
  const name = path.at(-1);
  const owner = path.slice(0, -1).reduce((value: unknown, part) => (value as Members | undefined)?.[part], input);
  if (typeof name !== 'string' || typeof owner !== 'object' || owner === null) return message;
  if (((owner as Members)[name] ?? undefined) !== undefined) return message;
  const requirement = message.replace(/^must be |^Invalid input: expected |, received undefined$/g, '');
  const required = requirement.startsWith('is required') ? requirement : `is required: ${requirement}`;
  const other = sameName(name, Object.keys(owner));
  return other === undefined ? required : `${required}; ${name} is the member's name, not ${other}`;
}

type Members = Readonly<Record<PropertyKey, unknown>>;

/** How many names are compared, and of how many characters: a body may have a hundred thousand. */
const MAX_COMPARED = 64;

/** Returns the other one of the names that spells `name` in another way; looks at the first 64. */
export function sameName(name: string, names: readonly string[]): string | undefined {
  return respelt(
    name,
    names.slice(0, MAX_COMPARED).filter((other) => other !== name && other.length <= MAX_COMPARED),
  );
}

/** Returns a transformation for a schema. A value for which `read` returns undefined is an issue with this message. */
export function readAs<Given, Value>(read: (value: Given) => Value | undefined, message: string) {
  return (input: Given, context: z.core.$RefinementCtx<Given>): Value => {
    const value = read(input);
    if (value !== undefined) return value;
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  };
}

/** Checks whether a text is a UUID, in upper or lower case. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/**
 * Returns the schema of an object in which a member that is null counts as absent, and none of the shape may have been
 * repeated.
 */
export function objectInput<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  const known = z.object(shape, 'must be an object');
  return z.preprocess((value, context) => {
    for (const name of repeatedIn(value) ?? [])
      if (Object.hasOwn(shape, name)) context.addIssue({ code: 'custom', path: [name], message: 'must be given once' });
    return withoutNulls(value);
  }, known);
}

/** Returns the schema of a whole number from `minimum` to `maximum`. */
export function wholeNumberInput(minimum: number, maximum: number): z.ZodInt32 {
  const message = `must be a whole number from ${minimum} to ${maximum}`;
  return z.int32({ error: message, abort: true }).min(minimum, message).max(maximum, message);
}

function withoutNulls(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  if (!Object.values(value).includes(null)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null));
}

import { z } from 'zod';
import { inputIssues, ValidationError } from './errors.ts';

/**
 * The GraphQL side of an input that is written once, in the REST names: takes the members in camelCase, gives what
 * `schema` gives, and tells of faults by paths in camelCase.
 */
export function camelInput<Schema extends z.ZodType>(schema: Schema): z.ZodType<z.output<Schema>> {
  return z.unknown().transform((given, context): z.output<Schema> => {
    const parsed = schema.safeParse(inRestNames(given));
    if (parsed.success) return parsed.data;
    for (const { path, message } of parsed.error.issues) {
      context.addIssue({ code: 'custom', path: path.map(camelName), message });
    }
    return z.NEVER;
  });
}

/**
 * An input as its schema gives it.
 * @throws ValidationError with every member at fault.
 */
export function parsedInput<Schema extends z.ZodType>(schema: Schema, given: object): z.output<Schema> {
  const parsed = camelInput(schema).safeParse(given);
  if (!parsed.success) throw new ValidationError(inputIssues(parsed.error));
  return parsed.data;
}

function inRestNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inRestNames);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [restName(name), inRestNames(member)]));
}

function restName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function camelName(part: PropertyKey): PropertyKey {
  return typeof part === 'string'
    ? part.replace(/_([a-z0-9])/g, (_match, letter: string) => letter.toUpperCase())
    : part;
}

import type { z } from 'zod';
import { isUuid } from '../../lib/input.ts';
import { UsageError } from './command.ts';

type Flags = Readonly<Record<string, string | boolean | undefined>>;

/** The text of a flag; undefined where it is not given. */
export function text(flags: Flags, name: string): string | undefined {
  const value = flags[name];
  return typeof value === 'string' ? value : undefined;
}

/** A UUID in lower case. `what` is how the user knows it: `--node`, `CLIENT_ID`. @throws UsageError for anything else. */
export function uuid(what: string, value: string | undefined): string {
  if (value === undefined || !isUuid(value)) {
    throw new UsageError(`${what} must be a UUID, like 0190b8a4-6a54-7c3e-9d2f-3f0c5a1b2c3d`);
  }
  return value.toLowerCase();
}

/** A flag's whole number; undefined where it is not given. @throws UsageError for anything else. */
export function wholeNumber(flags: Flags, name: string): number | undefined {
  const value = text(flags, name);
  if (value === undefined) return undefined;
  if (!/^\d{1,15}$/.test(value)) throw new UsageError(`--${name} must be a whole number, like --${name} 60`);
  return Number(value);
}

/** A flag's items between commas; undefined where it is not given. @throws UsageError that names the known ones for another. */
export function list(flags: Flags, name: string, known?: readonly string[]): string[] | undefined {
  const value = text(flags, name)?.trim();
  const items = value === '' ? [] : value?.split(',').map((item) => item.trim());
  const unknown = known && items?.find((item) => !known.includes(item));
  if (unknown === undefined) return items;
  throw new UsageError(`--${name} has ${JSON.stringify(unknown)}: write some of ${known?.join(',')}`);
}

/**
 * What the schema makes of the members that the flags give. `flagOf` says which flag a member is of.
 * @throws UsageError that names the flags at fault, and why.
 */
export function checked<Output>(
  schema: z.ZodType<Output>,
  members: object,
  flagOf: Readonly<Record<string, string>>,
): Output {
  const parsed = schema.safeParse(members);
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map(({ path, message }) => {
    const names = path.filter((part) => typeof part === 'string');
    const flag = flagOf[names.at(-1) ?? ''] ?? flagOf[names[0] ?? ''] ?? names.join('.');
    return `${flag} ${message}`;
  });
  throw new UsageError([...new Set(faults)].join('; '));
}

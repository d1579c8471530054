import type { z } from 'zod';
import { isUuid } from '../../lib/input.ts';
import { type Instant, parseInstant } from '../../lib/instants.ts';
import { UsageError } from './command.ts';

export type Flags = Readonly<Record<string, string | boolean | undefined>>;

/** Returns the text of a flag; undefined if the flag is not given. */
export function text(flags: Flags, name: string): string | undefined {
  const value = flags[name];
  return typeof value === 'string' ? value : undefined;
}

/**
 * Returns a UUID in lower case. `what` is its name in the usage, such as `--node` or `CLIENT_ID`.
 * @throws UsageError for anything but a UUID.
 */
export function uuid(what: string, value: string | undefined): string {
  if (value === undefined || !isUuid(value)) {
    throw new UsageError(`${what} must be a UUID such as 0190b8a4-6a54-7c3e-9d2f-3f0c5a1b2c3d`);
  }
  return value.toLowerCase();
}

/**
 * Returns the whole number of a flag, such as `example`; undefined if the flag is not given.
 * @throws UsageError for anything but a whole number of at most 15 digits.
 */
export function wholeNumber(flags: Flags, name: string, example: number): number | undefined {
  const value = text(flags, name);
  if (value === undefined) return undefined;
  if (!/^\d{1,15}$/.test(value)) throw new UsageError(`--${name} must be a whole number, such as --${name} ${example}`);
  return Number(value);
}

/**
 * Returns the time of a flag in ISO 8601; undefined if the flag is not given.
 * @throws UsageError for anything else.
 */
export function instant(flags: Flags, name: string): Instant | undefined {
  const value = text(flags, name);
  const time = value === undefined ? undefined : parseInstant(value);
  if (time || value === undefined) return time;
  throw new UsageError(`--${name} must be a date and time such as 2026-11-21T10:30:00Z`);
}

/**
 * Returns the time of a flag in ms since 1970, rounded up within the year 9999; undefined if the flag is not given.
 * @throws UsageError for anything but a time in ISO 8601.
 */
export function instantMs(flags: Flags, name: string): number | undefined {
  const time = instant(flags, name);
  const ms = time && Number(time.seconds) * 1_000 + Math.ceil(time.nanos / 1_000_000);
  return ms && Math.min(ms, Date.parse('9999-12-31T23:59:59.999Z'));
}

/**
 * Returns the items of a comma-separated flag; undefined if the flag is not given.
 * @throws UsageError for an item that is not among `known`.
 */
export function list(flags: Flags, name: string, known?: readonly string[]): string[] | undefined {
  const value = text(flags, name)?.trim();
  const items = value === '' ? [] : value?.split(',').map((item) => item.trim());
  const unknown = known && items?.find((item) => !known.includes(item));
  if (unknown === undefined) return items;
  throw new UsageError(`--${name} has ${JSON.stringify(unknown)}: use any of ${known?.join(',')}`);
}

/**
 * Parses the members that were given as flags. `flagOf` maps a member to what sets it, by default the flag of its name.
 * @throws UsageError that names the invalid flags and the reasons.
 */
export function checked<Output>(
  schema: z.ZodType<Output>,
  members: object,
  flagOf: Readonly<Record<string, string>> = {},
): Output {
  const result = schema.safeParse(members);
  if (result.success) return result.data;
  const faults = result.error.issues.map(({ path, message }) => {
    const names = path.filter((part) => typeof part === 'string');
    const [first = '', last = first] = [names[0], names.at(-1)];
    const flag = flagOf[last] ?? flagOf[first] ?? `--${last.replaceAll('_', '-')}`;
    return `${flag} ${message}`;
  });
  throw new UsageError([...new Set(faults)].join('; '));
}

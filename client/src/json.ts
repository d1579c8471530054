import { DECIMAL_MEMBERS } from './generated/rest.ts';

/** Not in TypeScript's libraries yet (proposal "JSON.parse source text access"). */
declare global {
  interface JSON {
    rawJSON(text: string): unknown;
  }
}

const DECIMAL = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * Writes JSON. Members that are decimals in the REST contract are texts in this package, and are written as numbers with
 * every digit.
 * @throws TypeError for a decimal that is not a JSON number.
 */
export function writeJson(value: unknown): string {
  return JSON.stringify(value, (key, member) => {
    if (typeof member !== 'string' || !DECIMAL_MEMBERS.has(key)) return member;
    if (!DECIMAL.test(member)) throw new TypeError(`${key} must be a decimal number, for example "12.50"`);
    return JSON.rawJSON(member);
  });
}

/** Parses JSON. A number that a double cannot hold exactly is returned as its text. Undefined if it is not JSON. */
export function parseJson(text: string): unknown {
  const reviver = (_key: string, value: unknown, context?: { source?: string }) =>
    typeof value === 'number' && context?.source !== undefined && String(value) !== context.source
      ? context.source
      : value;
  try {
    return JSON.parse(text, reviver);
  } catch {
    return undefined;
  }
}

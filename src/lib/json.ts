import { randomUUID } from 'node:crypto';

// ES2026; TypeScript's library does not declare it yet.
const rawJson = JSON as unknown as { rawJSON(literal: string): unknown };

/** A number of a JSON text that a double would change; `literal` is its text as received. `JSON.stringify` writes the literal back. */
export class ExactNumber {
  readonly literal: string;

  constructor(literal: string) {
    this.literal = literal;
  }

  toJSON(): unknown {
    return rawJson.rawJSON(this.literal);
  }
}

/** The bytes are not UTF-8. */
export class Utf8Error extends Error {
  override readonly name = 'Utf8Error';
}

/** Levels of lists and objects within each other that a text may have; a stack and each copy pay for every one. */
export const MAX_NESTING = 20_000;
/** Numbers that a double would change that a text may have: each is read digit by digit. No input takes more than 11,000. */
export const MAX_EXACT_NUMBERS = 20_000;

/** A text is well-formed as far as it was read, and costs more than any input may; the message says what it must not have. */
export class JsonLimitError extends SyntaxError {
  override readonly name = 'JsonLimitError';
}

const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * The text of UTF-8 bytes, without a leading byte order mark (RFC 8259 section 8.1 lets a reader ignore one).
 * Throws `Utf8Error` for bytes that are not UTF-8: nothing is replaced by U+FFFD.
 */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw new Utf8Error('not valid UTF-8', { cause });
  }
}

/** Whether a text holds U+0000, which PostgreSQL cannot store, or a lone surrogate, which UTF-8 cannot. */
export function hasForbiddenText(text: string): boolean {
  return text.includes('\0') || !text.isWellFormed();
}

/**
 * `JSON.parse`, but no number loses a digit: one that a double would change is an `ExactNumber`, every other a `number`.
 * A `number` is what the text says when read as `String(number)`; `integerOf` reads both kinds.
 * Throws SyntaxError as `JSON.parse` does, JsonLimitError beyond `MAX_NESTING` and `MAX_EXACT_NUMBERS`, and nothing else;
 * of a repeated key the last counts.
 */
export function parseJson(text: string): unknown {
  if (isNestedBeyond(text, MAX_NESTING)) {
    throw new JsonLimitError(`must not have values more than ${MAX_NESTING} levels within each other`);
  }
  const value: unknown = JSON.parse(text);
  return MAY_HOLD_INEXACT.test(text) ? parseExact(text, value) : value;
}

/** Whether lists and objects in a JSON text stand more than so many levels within each other; of other texts whatever it seems. */
export function isNestedBeyond(text: string, levels: number): boolean {
  // None of its characters opens two.
  if (text.length <= levels) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    switch (text[at]) {
      case '"':
        at = endOfText(text, at);
        break;
      case '[':
      case '{':
        depth += 1;
        if (depth > levels) return true;
        break;
      case ']':
      case '}':
        depth -= 1;
        break;
      default:
    }
  }
  return false;
}

/** The same for whoever parses a short text by itself: a reviver for `JSON.parse`, which overflows the stack on deep nesting. */
export function reviveExact(_key: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source;
  return typeof value === 'number' && source !== undefined && isInexact(source) ? new ExactNumber(source) : value;
}

/**
 * The integer that a parsed JSON number is (`1`, `1.0` and `1e3` are integers), without loss.
 * `undefined` for all else, and for an integer of more than 400 digits.
 */
export function integerOf(value: unknown): bigint | undefined {
  if (Number.isSafeInteger(value)) return BigInt(value as number);
  if (Number.isFinite(value)) return integerOfLiteral(String(value));
  return value instanceof ExactNumber ? integerOfLiteral(value.literal) : undefined;
}

// A double keeps any 15 digits; three digits of exponent may leave its range. A number inside a text seldom matches, since
// a quote precedes it, and a needless match costs time alone.
const MAY_HOLD_INEXACT = /(?:^|[\s,:[])-?(?:\d[\d.]{15}|[\d.]+[eE][+-]?\d{3})/;

// Of the numbers outside of texts those alone that may be inexact: a text of very many short ones costs no call for each.
const TEXT_OR_SUSPECT = /"[^"\\]*(?:\\.[^"\\]*)*"|-?(?:\d[\d.]{15,}(?:[eE][+-]?\d+)?|[\d.]+[eE][+-]?\d{3,})/g;

// A reviver would overflow the stack on deep nesting; texts with an unguessable tag, and a walk with its own stack, do not.
function parseExact(text: string, value: unknown): unknown {
  const tag = randomUUID();
  let count = 0;
  const tagged = text.replace(TEXT_OR_SUSPECT, (token) => {
    if (token.startsWith('"') || !isInexact(token)) return token;
    count += 1;
    if (count <= MAX_EXACT_NUMBERS) return `"${tag}${token}"`;
    throw new JsonLimitError(`must not have more than ${MAX_EXACT_NUMBERS} numbers that need more than a double`);
  });
  if (count === 0) return value;
  const root = { value: JSON.parse(tagged) as unknown };
  const open: unknown[] = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const members = node as Record<string, unknown>;
    for (const key of Object.keys(members)) {
      const member = members[key];
      if (typeof member === 'object' && member !== null) open.push(member);
      else if (typeof member === 'string' && member.startsWith(tag)) {
        members[key] = new ExactNumber(member.slice(tag.length));
      }
    }
  }
  return root.value;
}

/** Where the quote stands that ends the text which begins at `from`. */
function endOfText(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at;
}

function isInexact(literal: string): boolean {
  const double = Number(literal);
  if (!Number.isFinite(double)) return true;
  const given = decimalOf(literal);
  const kept = decimalOf(String(double));
  return given.digits !== kept.digits || given.exponent !== kept.exponent;
}

function integerOfLiteral(literal: string): bigint | undefined {
  const { negative, digits, exponent } = decimalOf(literal);
  if (exponent < 0 || digits.length + exponent > 400) return undefined;
  const magnitude = BigInt(`${digits}${'0'.repeat(exponent)}`);
  return negative ? -magnitude : magnitude;
}

/** The value is ±digits × 10^exponent, without leading or trailing zeros; zero has no digits and exponent 0. */
function decimalOf(literal: string): { negative: boolean; digits: string; exponent: number } {
  const [mantissa = '', power = '0'] = literal.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const written = `${whole}${fraction}`.replace(/^0+/, '');
  const digits = withoutTrailingZeros(written);
  const exponent = digits === '' ? 0 : Number(power) - fraction.length + (written.length - digits.length);
  return { negative: mantissa.startsWith('-'), digits, exponent };
}

// Not /0+$/, whose time is the square of the length of a run of zeros.
function withoutTrailingZeros(digits: string): string {
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  return digits.slice(0, end);
}

import { ExactNumber } from './json.ts';

/** Significant digits that a decimal may have, and how far its exponent may be from zero. */
export const MAX_DIGITS = 78;

const FORM = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** A decimal read from a text, or why there is none. */
type DecimalReading = { text: string } | { fault: string };

/** A number of parsed JSON, however long. */
export function isJsonNumber(value: unknown): value is number | ExactNumber {
  return typeof value === 'number' || value instanceof ExactNumber;
}

/** Whether a text is a number in the grammar of JSON, within the limits or not. */
export function hasDecimalForm(literal: string): boolean {
  return FORM.test(literal);
}

/** The text of a number of parsed JSON, as `parseJson` gives it. */
export function literalOf(value: number | ExactNumber): string {
  return value instanceof ExactNumber ? value.literal : String(value);
}

/**
 * Reads a decimal in the grammar of JSON's numbers (RFC 8259 section 6) without loss, as plain digits without an
 * exponent: `1.50` stays `1.50`, `1e3` is `1000`. The exponent that is limited is the one of the form d.ddd × 10^e.
 */
export function readDecimal(literal: string): DecimalReading {
  const [match, sign = '', whole = '', fraction = '', power = '0'] = FORM.exec(literal) ?? [];
  if (match === undefined) return { fault: 'must be a number' };
  const written = whole + fraction;
  const first = firstNonZero(written);
  const isZero = first === written.length;
  const exponent = isZero ? Number(power) : Number(power) + whole.length - 1 - first;
  const significant = isZero ? 0 : endOfDigits(written) - first;
  if (significant > MAX_DIGITS || Math.abs(exponent) > MAX_DIGITS) {
    return {
      fault: `must have at most ${MAX_DIGITS} significant digits and an exponent from -${MAX_DIGITS} to ${MAX_DIGITS}`,
    };
  }
  if (isZero) return { text: '0' };
  // What is cut off are zeros.
  return { text: sign + plain(written.slice(first, first + MAX_DIGITS), exponent) };
}

/** Negative, 0 or positive, as a is below, equal to or above b; both as `readDecimal` gives them. */
export function compareDecimals(a: string, b: string): number {
  const scale = Math.max(scaleOf(a), scaleOf(b));
  const difference = unitsOf(a, scale) - unitsOf(b, scale);
  return difference < 0n ? -1 : Number(difference > 0n);
}

/** The exact sum of decimals as `readDecimal` gives them, in the same form; of none it is 0. */
export function sumOfDecimals(decimals: readonly string[]): string {
  const scale = Math.max(0, ...decimals.map(scaleOf));
  const sum = decimals.reduce((total, decimal) => total + unitsOf(decimal, scale), 0n);
  const digits = String(sum < 0n ? -sum : sum).padStart(scale + 1, '0');
  const fraction = digits.slice(digits.length - scale);
  return `${sum < 0n ? '-' : ''}${digits.slice(0, digits.length - scale)}${scale === 0 ? '' : `.${fraction}`}`;
}

/** `digits` begin with the one that stands before the point of d.ddd × 10^exponent. */
function plain(digits: string, exponent: number): string {
  if (exponent < 0) return `0.${'0'.repeat(-exponent - 1)}${digits}`;
  const fraction = digits.slice(exponent + 1);
  return digits.slice(0, exponent + 1).padEnd(exponent + 1, '0') + (fraction === '' ? '' : `.${fraction}`);
}

// Loops, since the time of /0+$/ is the square of the length of a run of zeros.
function firstNonZero(digits: string): number {
  let at = 0;
  while (digits[at] === '0') at += 1;
  return at;
}

function endOfDigits(digits: string): number {
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  return end;
}

function scaleOf(decimal: string): number {
  const point = decimal.indexOf('.');
  return point < 0 ? 0 : decimal.length - point - 1;
}

function unitsOf(decimal: string, scale: number): bigint {
  return BigInt(decimal.replace('.', '') + '0'.repeat(scale - scaleOf(decimal)));
}

import { ExactNumber, endOfDigits } from './json.ts';

/** The highest number of significant digits of a decimal, and the highest absolute value of its exponent. */
export const MAX_DIGITS = 78;

const FORM = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** Checks whether a value of parsed JSON is a number, of any length. */
export function isJsonNumber(value: unknown): value is number | ExactNumber {
  return typeof value === 'number' || value instanceof ExactNumber;
}

/**
 * Checks whether a text has the form of a JSON number (RFC 8259, section 6), even one with too many digits to be read.
 */
export function hasDecimalForm(literal: string): boolean {
  return FORM.test(literal);
}

/** Returns the text of a number that `parseJson` has returned. */
export function literalOf(value: number | ExactNumber): string {
  return value instanceof ExactNumber ? value.literal : String(value);
}

/**
 * Reads a decimal in the form of a JSON number (RFC 8259, section 6) without loss of digits, and returns it without an
 * exponent: `1.50` stays `1.50`, `1e3` becomes `1000`. The limit of the exponent applies to the form d.ddd × 10^e.
 */
export function readDecimal(literal: string): { text: string } | { fault: string } {
  const [match, sign = '', integerDigits = '', fraction = '', power = '0'] = FORM.exec(literal) ?? [];
  if (match === undefined) return { fault: 'must be a number' };
  const allDigits = integerDigits + fraction;
  const first = allDigits.search(/[^0]/);
  const isZero = first === -1;
  const exponent = isZero ? Number(power) : Number(power) + integerDigits.length - 1 - first;
  const significant = isZero ? 0 : endOfDigits(allDigits) - first;
  if (significant > MAX_DIGITS || Math.abs(exponent) > MAX_DIGITS) {
    return {
      fault: `must have at most ${MAX_DIGITS} significant digits and an exponent from -${MAX_DIGITS} to ${MAX_DIGITS}`,
    };
  }
  if (isZero) return { text: '0' };
  // Only zeros are cut off.
  return { text: sign + plain(allDigits.slice(first, first + MAX_DIGITS), exponent) };
}

/**
 * Compares two decimals that `readDecimal` has returned. Returns a negative number if a is below b, 0 if they are
 * equal, and a positive number if a is above b.
 */
export function compareDecimals(a: string, b: string): number {
  const scale = Math.max(scaleOf(a), scaleOf(b));
  const difference = unitsOf(a, scale) - unitsOf(b, scale);
  return difference < 0n ? -1 : Number(difference > 0n);
}

/** Returns the exact sum of decimals that `readDecimal` has returned, in the same form; 0 for an empty list. */
export function sumOfDecimals(decimals: readonly string[]): string {
  const scale = Math.max(0, ...decimals.map(scaleOf));
  const sum = decimals.reduce((total, decimal) => total + unitsOf(decimal, scale), 0n);
  const digits = String(sum < 0n ? -sum : sum).padStart(scale + 1, '0');
  const fraction = digits.slice(digits.length - scale);
  return `${sum < 0n ? '-' : ''}${digits.slice(0, digits.length - scale)}${scale === 0 ? '' : `.${fraction}`}`;
}

/** Writes d.ddd × 10^exponent without an exponent; `digits` are its digits without the point. */
function plain(digits: string, exponent: number): string {
  if (exponent < 0) return `0.${'0'.repeat(-exponent - 1)}${digits}`;
  const fraction = digits.slice(exponent + 1);
  return digits.slice(0, exponent + 1).padEnd(exponent + 1, '0') + (fraction === '' ? '' : `.${fraction}`);
}

function scaleOf(decimal: string): number {
  const point = decimal.indexOf('.');
  return point < 0 ? 0 : decimal.length - point - 1;
}

function unitsOf(decimal: string, scale: number): bigint {
  return BigInt(decimal.replace('.', '') + '0'.repeat(scale - scaleOf(decimal)));
}

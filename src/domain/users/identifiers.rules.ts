import { nfc } from '../../lib/spelling.ts';

const BLANK = /[\p{White_Space}\ufeff]/u;

/**
 * Returns a text without the Unicode white space and byte order marks at its ends. Its time is linear, which that of an
 * expression ending in `+$` is not.
 */
export function trimmed(text: string): string {
  let [start, end] = [0, text.length];
  while (BLANK.test(text.charAt(start))) start += 1;
  while (end > start && BLANK.test(text.charAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

/** Returns an email in the form in which it is compared and stored. */
export function emailOf(text: string): string {
  return nfc(trimmed(text));
}

/** Returns an identifier as it was sent; undefined if it is blank, which counts as absent. */
export function present(text: string | undefined): string | undefined {
  return text === undefined || trimmed(text) === '' ? undefined : text;
}

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

/**
 * Returns the known word that differs from `word` at most in the case of its letters and in its hyphens and
 * underscores; undefined if there is none.
 */
export function respelt(word: string, known: readonly string[]): string | undefined {
  const letters = lettersOf(word);
  return known.find((name) => lettersOf(name) === letters);
}

function lettersOf(word: string): string {
  return word.toLowerCase().replaceAll(/[-_]/g, '');
}

/** Matches more combining marks in a row than texts have (Unicode Standard Annex #15, section 13). */
const MANY_MARKS = /(?<!\p{M})\p{M}{31}/u;

/**
 * Returns a text in NFC. One with more than 30 combining marks in a row stays as it is: `normalize` sorts them, in a time
 * that is quadratic in their number.
 */
export function nfc(text: string): string {
  return MANY_MARKS.test(text) ? text : text.normalize();
}

/** Returns the GraphQL name of a REST member, such as `networkId` for `network_id`. */
export function camelName(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_match, letter: string) => letter.toUpperCase());
}

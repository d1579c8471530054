/** Lexical tokens that a document may have. */
export const MAX_TOKENS = 1_000;

/**
 * Whether a document may have more comments than it may have tokens: the parser counts none of them, and makes a token of
 * each. A `#` within a string counts as well.
 */
export function hasManyComments(document: string): boolean {
  let count = 0;
  for (let at = document.indexOf('#'); at !== -1; at = document.indexOf('#', at + 1)) {
    count += 1;
    if (count > MAX_TOKENS) return true;
  }
  return false;
}

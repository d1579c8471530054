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

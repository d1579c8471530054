/** Of a word of three letters one may be wrong, of longer ones two. */
const LONG = 4;

/**
 * The one of `known` that was probably meant: what begins with `word`, or differs in one or two letters (left out, put in,
 * changed, or two swapped); undefined where nothing is near.
 */
export function closest(word: string, known: readonly string[]): string | undefined {
  const written = word.toLowerCase();
  if (written.length < 2) return undefined;
  const most = written.length < LONG ? 1 : 2;
  const near = known
    .map((name) => ({ name, distance: name.startsWith(written) ? 0 : distanceOf(written, name) }))
    .filter(({ distance }) => distance <= most)
    .sort((one, other) => one.distance - other.distance);
  return near[0]?.name;
}

/** The Damerau-Levenshtein distance, each pair of neighbours swapped at most once. */
function distanceOf(one: string, other: string): number {
  let before: number[] = [];
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const isSame = one[i - 1] === other[j - 1];
      const isSwapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      const changed = (row[j - 1] ?? 0) + (isSame ? 0 : 1);
      const swapped = isSwapped ? (before[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY;
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, changed, swapped));
    }
    [before, row] = [row, next];
  }
  return row[other.length] ?? 0;
}

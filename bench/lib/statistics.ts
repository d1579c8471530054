/** The value below which the share `quantile` (0 to 1) of the values lies: the nearest rank. */
export function percentile(values: readonly number[], quantile: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const rank = Math.max(1, Math.ceil(quantile * sorted.length));
  return sorted[rank - 1] ?? Number.NaN;
}

/** The middle value; the mean of the two in the middle for an even number of values. */
export function median(values: readonly number[]): number {
  const upper = values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
  return values.length % 2 === 0 ? (percentile(values, 0.5) + upper) / 2 : upper;
}

/** The arithmetic mean. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/**
 * The median of differences, and the bound that it is above with 95 % confidence: the order statistic by the binomial
 * distribution.
 */
export function boundOf(differences: readonly number[]): { median: number; lower: number } {
  const sorted = differences.toSorted((a, b) => a - b);
  // The true median is below the k-th smallest value with the probability of fewer than k heads in n tosses.
  let rank = 0;
  while (cumulative(sorted.length, rank) <= 0.05) rank++;
  return { median: median(sorted), lower: sorted[Math.max(0, rank - 1)] ?? Number.NaN };
}

/** The probability of at most `most` heads in `n` tosses of a coin. */
function cumulative(n: number, most: number): number {
  let term = 0.5 ** n;
  let sum = term;
  for (let k = 1; k <= most; k++) {
    term *= (n - k + 1) / k;
    sum += term;
  }
  return sum;
}

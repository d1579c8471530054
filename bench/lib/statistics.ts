/** The value below which the share `quantile` (0 to 1) of the values lies: the nearest rank. */
export function percentile(values: readonly number[], quantile: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const rank = Math.max(1, Math.ceil(quantile * sorted.length));
  return sorted[rank - 1] ?? Number.NaN;
}

/** The middle value; of an even number of values the lower of the two in the middle. */
export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

/** The arithmetic mean. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

const SPECIAL = /["\\]/;

/**
 * Texts as PostgreSQL writes an array of them, for a parameter that is cast to `text[]`: the driver's own way of writing
 * long arrays takes several times as long.
 */
export function textArray(values: readonly (string | null)[]): string {
  let text = '{';
  for (const value of values) {
    if (text !== '{') text += ',';
    if (value === null) text += 'NULL';
    else text += SPECIAL.test(value) ? `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"` : `"${value}"`;
  }
  return `${text}}`;
}

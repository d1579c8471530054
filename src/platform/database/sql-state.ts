/** Returns the SQLSTATE of a database error, from either driver and however it is wrapped; undefined for any other error. */
export function sqlState(error: unknown): string | undefined {
  return textOf(error, 'code', /^[0-9A-Z]{5}$/);
}

/** Tells whether the database refuses a value, or a constraint does (SQLSTATE 22 and 23): repeating it does not help. */
export function isRefusedValue(error: unknown): boolean {
  return /^2[23]/.test(sqlState(error) ?? '');
}

/** Returns the name of the constraint or unique index that a database error names, however it is wrapped. */
export function violatedConstraint(error: unknown): string | undefined {
  return textOf(error, 'constraint', /^/);
}

/** Returns the first text of this form that stands in a member of an error, or of one of its causes. */
function textOf(error: unknown, member: string, form: RegExp): string | undefined {
  for (let current = error, depth = 0; typeof current === 'object' && current !== null && depth < 5; depth++) {
    const value: unknown = Reflect.get(current, member);
    if (typeof value === 'string' && form.test(value)) return value;
    current = 'cause' in current ? current.cause : undefined;
  }
  return undefined;
}

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

/** Returns what rows have in one column as `textArray` writes it, each value as text, and none where a row has none. */
export function textColumn<Row>(rows: readonly Row[], name: keyof Row): string {
  return textArray(rows.map((row) => (row[name] === null || row[name] === undefined ? null : String(row[name]))));
}

import type { SqlTag } from './database.ts';

const SPECIAL = /["\\]/;

/**
 * Returns texts as a PostgreSQL array literal, for a parameter that is cast to `text[]`. The driver's own conversion of
 * a long array takes several times as long.
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

/** Returns what rows have in one column as `textArray` writes it, each value as text, or none if the row has none. */
export function textColumn<Row>(rows: readonly Row[], name: keyof Row): string {
  return textArray(rows.map((row) => (row[name] === null || row[name] === undefined ? null : String(row[name]))));
}

/** The columns that a statement takes of rows, by their type in PostgreSQL. */
type Columns<Row> = Readonly<Record<string, readonly (keyof Row & string)[]>>;

/**
 * Returns rows as the source `given` of a statement, in which every column is a text. Each column is a single
 * parameter, so that the statement's text does not depend on the number of rows.
 */
export function rowSource<Row>(sql: SqlTag, rows: readonly Row[], columns: Columns<Row>) {
  const names = Object.values(columns).flat();
  const values = names.map((name) => sql`${textColumn(rows, name)}::text[]`);
  return sql`unnest(${sql.join(values)}) as given (${sql.raw(names.join(', '))})`;
}

/** Returns the text of an update that sets columns to the values of `rowSource`. */
export function columnAssignments(columns: Columns<Record<string, unknown>>): string {
  const values = Object.entries(columns).flatMap(([type, names]) =>
    names.map((name) => `${name} = given.${name}::${type}`),
  );
  return values.join(', ');
}

/** Returns the statement that inserts rows into a table. */
export function insertRows<Row>(sql: SqlTag, table: string, rows: readonly Row[], columns: Columns<Row>) {
  const names = Object.values(columns).flat();
  const values = Object.entries(columns).flatMap(([type, ofType]) => ofType.map((name) => `given.${name}::${type}`));
  const into = sql.raw(`${table} (${names.join(', ')}) select ${values.join(', ')}`);
  return sql`insert into ${into} from ${rowSource(sql, rows, columns)}`;
}

import { type CommandInput, EXIT_OK } from './command.ts';

/** The rows that a command prints. */
export interface PrintedRows<Row> {
  /** What the rows are called, such as `clients`; the member of the JSON document that contains them. */
  name: string;
  rows: AsyncIterable<Row> | Iterable<Row>;
  /** The names of the columns, as a line of text. */
  head?: string;
  /** The text if there are no rows. */
  empty?: string;
  /** Whether each row is a JSON document on a line, instead of a member of one that has an end. */
  isLines?: boolean;
  /** Returns a row as it appears in the JSON document. */
  view(row: Row): object;
  /** Returns a row as a line of text. */
  line(row: Row): string;
}

/** Prints rows as they arrive, so that few are in memory, and returns the exit code 0. */
export async function printRows<Row>(
  { json, print }: Pick<CommandInput, 'json' | 'print'>,
  { name, rows, head = '', empty = `No ${name.replace('_', ' ')}.\n`, isLines = false, view, line }: PrintedRows<Row>,
): Promise<number> {
  let count = 0;
  const isDocument = json && !isLines;
  if (isDocument) print(`{"${name}":[`);
  for await (const row of rows) {
    if (isDocument) print(`${count === 0 ? '' : ','}${JSON.stringify(view(row))}`);
    else print(json ? `${JSON.stringify(view(row))}\n` : `${count === 0 ? head : ''}${line(row)}`);
    count += 1;
  }
  if (isDocument) print(']}\n');
  else if (count === 0 && !json) print(empty);
  return EXIT_OK;
}

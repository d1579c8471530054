import { type CommandInput, EXIT_OK } from './command.ts';

/** The rows that a command prints. */
export interface PrintedRows<Row> {
  /** What the rows are called, such as `clients`; the member of the JSON document that contains them. */
  name: string;
  rows: AsyncIterable<Row> | Iterable<Row>;
  /** The names of the columns, as a line of text. */
  head?: string;
  /** Returns a row as it appears in the JSON document. */
  view(row: Row): object;
  /** Returns a row as a line of text. */
  line(row: Row): string;
}

/** Prints rows as they arrive, so that few are in memory, and returns the exit code 0. */
export async function printRows<Row>(
  { json, print }: Pick<CommandInput, 'json' | 'print'>,
  { name, rows, head = '', view, line }: PrintedRows<Row>,
): Promise<number> {
  let count = 0;
  if (json) print(`{"${name}":[`);
  for await (const row of rows) {
    if (json) print(`${count === 0 ? '' : ','}${JSON.stringify(view(row))}`);
    else print(`${count === 0 ? head : ''}${line(row)}`);
    count += 1;
  }
  if (json) print(']}\n');
  else if (count === 0) print(`No ${name}.\n`);
  return EXIT_OK;
}

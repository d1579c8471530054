import { type CommandInput, EXIT_OK } from './command.ts';

interface PrintedRows<Row> {
  /** What the rows are called: the member of the document. */
  name: string;
  rows: AsyncIterable<Row>;
  /** Returns a row as the document has it. */
  view(row: Row): object;
  /** Returns a row as a line for people. */
  line(row: Row): string;
}

/** Prints rows as they come, so that few are held however many there are, and returns the exit code 0. */
export async function printRows<Row>(
  { json, print }: Pick<CommandInput, 'json' | 'print'>,
  { name, rows, view, line }: PrintedRows<Row>,
): Promise<number> {
  let count = 0;
  if (json) print(`{"${name}":[`);
  for await (const row of rows) {
    print(json ? `${count === 0 ? '' : ','}${JSON.stringify(view(row))}` : line(row));
    count += 1;
  }
  if (json) print(']}\n');
  else if (count === 0) print(`No ${name}.\n`);
  return EXIT_OK;
}

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const DOCS = join(import.meta.dirname, '../../docs');

/** A table of results, as Markdown. */
export interface Table {
  head: readonly string[];
  rows: readonly (readonly string[])[];
}

/** A table as Markdown, its columns of one width, so that it reads in a terminal too. */
export function markdown({ head, rows }: Table): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `| ${widths.map((width, column) => (cells[column] ?? '').padEnd(width)).join(' | ')} |`;
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`;
  return [line(head), rule, ...rows.map(line)].join('\n');
}

/** Prints a table. */
export function print(table: Table): void {
  process.stdout.write(`${markdown(table)}\n`);
}

/** Says on standard error what is being done. */
export function tell(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Replaces the text between the markers of `section` in docs/measured.md, or in another page of that folder. */
export function writeSection(section: string, text: string, name = 'measured.md'): void {
  const path = join(DOCS, name);
  const page = readFileSync(path, 'utf8');
  const [begin, end] = [`<!-- measured:${section} -->`, `<!-- /measured:${section} -->`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/${name} lacks ${begin} … ${end}`);
  writeFileSync(path, `${page.slice(0, from + begin.length)}\n\n${text}\n\n${page.slice(to)}`);
}

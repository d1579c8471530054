/** Returns a record of a CSV file (RFC 4180), in which no spreadsheet takes a cell for a formula; null is empty. */
export function csvRecord(cells: readonly unknown[]): string {
  return `${cells.map(cellOf).join(',')}\r\n`;
}

function cellOf(value: unknown): string {
  const text = value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);
  // Spreadsheets of some languages separate cells by semicolons or tabs.
  const harmless = text.replace(/(?<=^|[;\t])(?=[=+\-@\t\r])/g, "'");
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

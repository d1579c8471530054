/** A month of UTC; `month` is 1 to 12. */
export interface Month {
  year: number;
  month: number;
}

/** The month of a time in ms since 1970. */
export function monthOf(ms: number): Month {
  const date = new Date(ms);
  return { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1 };
}

/** The month so many months later. */
export function addMonths({ year, month }: Month, count: number): Month {
  return monthOf(Date.UTC(year, month - 1 + count));
}

/** The partition of a month: its table, and the times that it has, from the first up to but not with the second. */
export function partitionOf(month: Month): { name: string; from: string; to: string } {
  const name = `audit_records_${month.year}_${String(month.month).padStart(2, '0')}`;
  return { name, from: startOf(month), to: startOf(addMonths(month, 1)) };
}

/** The month of a partition's table; undefined for another table. */
export function monthOfPartition(name: string): Month | undefined {
  const [, year, month] = /^audit_records_(\d{4})_(\d\d)$/.exec(name) ?? [];
  return year === undefined || month === undefined ? undefined : { year: Number(year), month: Number(month) };
}

function startOf({ year, month }: Month): string {
  return new Date(Date.UTC(year, month - 1)).toISOString();
}

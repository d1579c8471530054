import { useState } from 'preact/hooks';
import { html } from '../html.ts';
import { zone } from '../remembered.ts';
import { type Column, Table } from './list.ts';

interface ChartInput {
  label: string;
  /** When each bucket begins. */
  times: readonly string[];
  /** What is counted, from the bottom of the columns to their top. */
  series: readonly { label: string; tone: 'good' | 'bad' | 'busy'; values: readonly number[] }[];
}

const total = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0);

/** Columns by time, stacked, with the numbers of the one that is pointed at; a table has the same. */
export function Chart({ label, times, series }: ChartInput) {
  const [at, setAt] = useState<number>();
  const format = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short', ...(zone.value === 'utc' && { timeZone: 'UTC' }) });
  const names = times.map((time) => format.format(new Date(time)));
  const top = Math.max(1, ...times.map((_, at) => total(series.map(({ values }) => values[at] ?? 0))));
  const columns: Column<number>[] = [
    { title: 'From', cell: (at) => names[at] },
    ...series.map(({ label, values }) => ({ title: label, isNumber: true, cell: (at: number) => values[at] })),
  ];
  return html`<figure class="chart" aria-label=${label}>
    <figcaption><b>${label}</b> ${at !== undefined && html`<span class="muted">${names[at]}</span>`}
      ${series.map(({ label, tone, values }) => html`<span><i class=${`swatch ${tone}`}></i>${label} <b>${at === undefined ? total(values) : values[at]}</b></span>`)}</figcaption>
    <div class="plot" aria-hidden="true">${top}
      <div onPointerLeave=${() => setAt(undefined)}>${times.map(
        (_, at) =>
          html`<span onPointerEnter=${() => setAt(at)}>${series.map(
            ({ tone, values }) => html`<i class=${`swatch ${tone}`} style=${{ height: `${(100 * (values[at] ?? 0)) / top}%` }}></i>`,
          )}</span>`,
      )}</div>
      <p>${names.filter((_, at) => at % Math.ceil(times.length / 4) === 0).map((name) => html`<span>${name}</span>`)}</p>
    </div>
    <details><summary>Show as a table</summary><${Table} label=${label} columns=${columns} rows=${[...times.keys()]} keyOf=${(at: number) => at} /></details>
  </figure>`;
}

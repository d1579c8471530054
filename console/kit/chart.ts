import { useState } from 'preact/hooks';
import { html } from '../html.ts';
import { zone } from '../remembered.ts';
import { Table } from './list.ts';

interface Series {
  label: string;
  tone: 'good' | 'bad' | 'busy' | '';
  values: readonly number[];
}

interface ChartInput {
  label: string;
  times: readonly string[];
  /** What is counted, from the bottom of the columns to their top. */
  series: readonly Series[];
  /** Returns where a column leads, by its number. */
  linkOf(at: number): string;
}

type Bucket = { id: number; time: string; link: string };

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6];
/** How many columns share a label. */
const LABELLED = 4;

/** Returns the marks of an axis that no column reaches beyond, from its end down to 0. */
function marksOf(max: number): number[] {
  const step = STEPS.find((one) => max / one <= 5) ?? max;
  return Array.from({ length: Math.max(Math.ceil(max / step), 1) + 1 }, (_, at) => at * step).reverse();
}

/** Columns by time, stacked, each a link to what it counts, with the numbers of the one that is pointed at; a table has the same. */
export function Chart({ label, times, series, linkOf }: ChartInput) {
  const [at, setAt] = useState<number>();
  const format = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', ...(zone.value === 'utc' && { timeZone: 'UTC' }) });
  const rows = times.map((time, id) => ({ id, time: format.format(new Date(time)), link: linkOf(id) }));
  const marks = marksOf(Math.max(...times.map((_, at) => series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0))));
  const shown = (values: readonly number[]) => (at === undefined ? values.reduce((sum, value) => sum + value, 0) : values[at]);
  const part = (value = 0, tone = '') => value > 0 && html`<i class=${`swatch ${tone}`} style=${{ height: `${(100 * value) / (marks[0] ?? 1)}%` }}></i>`;
  const column = ({ id, time, link }: Bucket) => html`<a href=${link} tabindex="-1" key=${id} onMouseEnter=${() => setAt(id)}>
    ${series.toReversed().map(({ tone, values }) => part(values[id], tone))}${id % LABELLED === 0 && html`<small>${time}</small>`}</a>`;
  return html`<figure class="chart" aria-label=${label}>
    <figcaption><b>${label}</b>
      ${series.map(({ label, tone, values }) => html`<span><i class=${`swatch ${tone}`}></i>${label} <b>${shown(values)}</b></span>`)}
      ${at !== undefined && html`<span class="muted">from ${rows[at]?.time}</span>`}</figcaption>
    <div class="plot" aria-hidden="true" onMouseLeave=${() => setAt(undefined)}><div class="marks">${marks.map((mark) => html`<i>${mark}</i>`)}</div>${rows.map(column)}</div>
    <details><summary>Show as a table</summary><${Table} label=${label} rows=${rows} columns=${[
      { title: 'From', cell: ({ time, link }: Bucket) => html`<a href=${link}>${time}</a>` },
      ...series.map(({ label, values }) => ({ title: label, isNumber: true, cell: ({ id }: Bucket) => values[id] })),
    ]} /></details>
  </figure>`;
}

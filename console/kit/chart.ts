import { useEffect, useRef, useState } from 'preact/hooks';
import type { Options } from 'uplot';
import { html } from '../html.ts';
import { theme, zone } from '../remembered.ts';
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
  /** What a click on a column leads to, by its number. */
  onChoose(at: number): void;
}

type Bucket = { id: number; time: string };

const HEIGHT = 200;

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6];

/** Returns where an axis ends that no column reaches beyond. */
function topOf(max: number): number {
  const step = STEPS.find((one) => max / one <= 5) ?? max;
  return Math.max(Math.ceil(max / step) * step, 1);
}

/** Returns the labels of times in seconds, in the zone that the person has chosen. */
function labels(seconds: readonly number[]): string[] {
  const format = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', ...(zone.value === 'utc' && { timeZone: 'UTC' }) });
  return seconds.map((at) => format.format(at * 1_000));
}

/** Columns by time, stacked, with the numbers of the one that is pointed at; a table has the same. */
export function Chart({ label, times, series, onChoose }: ChartInput) {
  const box = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<number>();
  const seconds = times.map((time) => new Date(time).getTime() / 1_000);
  const sums = series.map((_, upTo) => times.map((_, at) => series.slice(0, upTo + 1).reduce((sum, { values }) => sum + (values[at] ?? 0), 0)));
  useEffect(() => {
    const { current } = box;
    let isLeft = false;
    let leave = () => {};
    void import('uplot').then(({ default: Plot }) => {
      if (isLeft || !current) return;
      const colours = [...(current.parentElement?.querySelectorAll('.swatch') ?? [])].map((swatch) => getComputedStyle(swatch).backgroundColor);
      const { color, borderTopColor } = getComputedStyle(current);
      const axis = { stroke: color, font: '12px system-ui', ticks: { show: false } };
      const options: Options = {
        width: current.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { drag: { x: false, y: false }, y: false, points: { show: false } },
        scales: {
          x: { range: (_, min, max) => [min - (max - min) / times.length, max + (max - min) / times.length] },
          y: { range: (_, _min, max) => [0, topOf(max)] },
        },
        axes: [
          { ...axis, grid: { show: false }, values: (_, splits) => labels(splits) },
          { ...axis, grid: { stroke: borderTopColor, width: 1 }, incrs: STEPS },
        ],
        // The sums are drawn from the greatest down: each covers the lower part of the one before.
        series: [
          {},
          ...sums.map((_, below) => ({
            fill: colours[sums.length - 1 - below] ?? color,
            width: 0,
            paths: Plot.paths.bars?.({ size: [0.7, 40] }),
            points: { show: false },
          })),
        ] as Options['series'],
        hooks: { setCursor: [({ cursor }) => setAt(cursor.idx ?? undefined)] },
      };
      const plot = new Plot(options, [seconds, ...sums.toReversed()], current);
      const fit = new ResizeObserver(() => plot.setSize({ width: current.clientWidth, height: HEIGHT }));
      fit.observe(current);
      leave = () => {
        fit.disconnect();
        plot.destroy();
      };
    });
    return () => {
      isLeft = true;
      leave();
    };
  }, [JSON.stringify([times, series]), theme.value, zone.value]);
  const shown = (values: readonly number[]) => (at === undefined ? values.reduce((sum, value) => sum + value, 0) : values[at]);
  return html`<figure class="chart" aria-label=${label}>
    <figcaption><b>${label}</b> ${at !== undefined && html`<span class="muted">${labels(seconds)[at]}</span>`}
      ${series.map(({ label, tone, values }) => html`<span><i class=${`swatch ${tone}`}></i>${label} <b>${shown(values)}</b></span>`)}</figcaption>
    <div class="plot" ref=${box} aria-hidden="true" onClick=${() => at !== undefined && onChoose(at)}></div>
    <details><summary>Show as a table</summary><${Table} label=${label} rows=${labels(seconds).map((time, id) => ({ id, time }))} columns=${[
      { title: 'From', cell: ({ id, time }: Bucket) => html`<button type="button" class="plain" onClick=${() => onChoose(id)}>${time}</button>` },
      ...series.map(({ label, values }) => ({ title: label, isNumber: true, cell: ({ id }: Bucket) => values[id] })),
    ]} /></details>
  </figure>`;
}

import type { Gauge } from './gauges.ts';
import type { KindTally } from './tally.ts';
import { memoryTrend } from './verdict.rules.ts';

const KB = 1_000;

/** What is told every few seconds: all kinds at once, and how the instance is. */
export interface Progress {
  seconds: number;
  rate: number;
  unexpected: number;
  gauge: Gauge;
  /** The share of one core that the instance has used since the last time. */
  cpu: number;
  /** Those that each subscriber was told so far: the one that has most, and the one that has least. */
  told: readonly [most: number, least: number];
  /** Answers by kind since the last time. */
  rates: ReadonlyMap<string, number>;
}

/** One line of progress, and one of the rates by kind. */
export function progressLines(progress: Progress): string {
  const { seconds, rate, unexpected, gauge, cpu, told, rates } = progress;
  const fields = [
    `${clock(seconds)}`,
    `${rate.toFixed(0)}/s`,
    `${unexpected} unexpected`,
    `cpu ${(cpu * 100).toFixed(0)} %`,
    `rss ${gauge.residentMb.toFixed(0)} MB`,
    `heap ${gauge.heapMb.toFixed(0)} MB`,
    `lag ${gauge.lag}`,
    `outbox ${gauge.outbox}`,
    `spool ${(gauge.spoolBytes / KB).toFixed(0)} kB`,
    `told ${told[1]} to ${told[0]}`,
  ];
  const kinds = [...rates].map(([kind, each]) => `${kind} ${each.toFixed(1)}`);
  return `${fields.join('  ')}\n        ${kinds.join(', ')}\n`;
}

export interface Summary {
  minutes: number;
  rate: number;
  kinds: ReadonlyMap<string, KindTally>;
  gauges: readonly Gauge[];
  subscribers: number;
  logged: number;
  resumed: number;
  /** Answers and audit records of all kinds. */
  audit: readonly [answered: number, records: number];
  faults: readonly string[];
}

/** The tables of docs/measured.md, between their markers. */
export function summaryPage(summary: Summary): string {
  const { minutes, rate, kinds, gauges, subscribers, logged, resumed, audit, faults } = summary;
  const of = (name: keyof Gauge) => gauges.map((gauge) => gauge[name]);
  const trend = memoryTrend(gauges);
  const most = (name: keyof Gauge) => Math.max(0, ...of(name)).toLocaleString('en');
  const cpu = ((gauges.at(-1)?.cpuSeconds ?? 0) - (gauges[0]?.cpuSeconds ?? 0)) / (minutes * 60);
  const growth = trend === undefined ? 'too short' : `${(trend.growth * 100).toFixed(1)} %`;
  const facts = [
    ['minutes, requests a second aimed at', `${minutes}, ${rate}`],
    ['processor, of one core', `${(cpu * 100).toFixed(0)} %`],
    ['heap and resident memory without garbage, second and last quarter (medians)', mb(trend?.secondMb, trend?.lastMb)],
    ['growth (at most 10 %)', growth],
    ['consumer lag, outbox, spool at most', `${most('lag')}, ${most('outbox')}, ${most('spoolBytes')} bytes`],
    ['changes in the log, subscribers told each in order', `${logged.toLocaleString('en')}, ${subscribers}`],
    ['streams that ended and went on', `${resumed}`],
    ['answers, audit records', audit.map((count) => count.toLocaleString('en')).join(', ')],
    ['verdict', faults.length === 0 ? 'passed' : `${faults.length} faults`],
  ];
  const rows = [...kinds]
    .sort(([one], [other]) => one.localeCompare(other))
    .map(([kind, { answered, unexpected, durations }]) => [
      kind,
      answered.toLocaleString('en'),
      `${unexpected}`,
      durations.at(0.5).toFixed(1),
      durations.at(0.99).toFixed(1),
    ]);
  return [
    '<!-- measured:soak -->',
    '',
    table(['soak', ''], facts),
    '',
    table(['kind', 'answers', 'unexpected', 'p50, ms', 'p99, ms'], rows),
    '',
    '<!-- /measured:soak -->',
    '',
  ].join('\n');
}

function mb(...values: readonly (number | undefined)[]): string {
  return values.map((value) => `${value?.toFixed(0) ?? '?'} MB`).join(', ');
}

function clock(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`.padStart(6);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `| ${widths.map((width, column) => (cells[column] ?? '').padEnd(width)).join(' | ')} |`;
  return [line(head), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...rows.map(line)].join('\n');
}

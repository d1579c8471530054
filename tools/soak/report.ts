import type { KindTally } from './caller.ts';
import type { Gauge } from './gauges.ts';
import { memoryTrend, type SoakFacts } from './verdict.rules.ts';

/** How a soak stands, told every few seconds. */
export interface Progress {
  seconds: number;
  unexpected: number;
  gauge: Gauge;
  /** The share of one core that the instance has used since the last line. */
  cpu: number;
  /** The numbers of changes that each subscriber has been told so far. */
  told: readonly number[];
  /** Answers a second by kind since the last line. */
  rates: ReadonlyMap<string, number>;
}

/** Returns a line of progress, and one of the rates by kind. */
export function progressLines({ seconds, unexpected, gauge, cpu, told, rates }: Progress): string {
  const rate = [...rates.values()].reduce((sum, each) => sum + each, 0);
  const fields = [
    `${seconds.toFixed(0)} s`.padStart(6),
    `${rate.toFixed(0)}/s`,
    `${unexpected} unexpected`,
    `cpu ${(cpu * 100).toFixed(0)} %`,
    `rss ${gauge.residentMb.toFixed(0)} MB`,
    `heap ${gauge.heapMb.toFixed(0)} MB`,
    `lag ${gauge.lag}`,
    `outbox ${gauge.outbox}`,
    `spool ${(gauge.spoolBytes / 1_000).toFixed(0)} kB`,
    `told ${Math.min(...told)} to ${Math.max(...told)}`,
  ];
  const kinds = [...rates].map(([kind, each]) => `${kind} ${each.toFixed(1)}`);
  return `${fields.join('  ')}\n        ${kinds.join(', ')}\n`;
}

interface Summary {
  facts: SoakFacts;
  kinds: ReadonlyMap<string, KindTally>;
  gauges: readonly Gauge[];
  resumed: number;
  seconds: number;
}

/** Returns two tables in Markdown: the figures of the soak, and those of each kind. */
export function summaryPage({ facts, kinds, gauges, resumed, seconds }: Summary): string {
  const { paced, logged, told, audit } = facts;
  const trend = memoryTrend(gauges);
  const most = (name: keyof Gauge) => Math.max(0, ...gauges.map((gauge) => gauge[name]));
  const cpu = ((gauges.at(-1)?.cpuSeconds ?? 0) - (gauges[0]?.cpuSeconds ?? 0)) / seconds;
  const records = audit.reduce((sum, each) => sum + each.records, 0);
  const figures = [
    ['seconds; requests planned, answered', seconds.toFixed(0), paced.planned.toFixed(0), paced.answered],
    ['processor, of one core', `${(cpu * 100).toFixed(0)} %`],
    ['heap and resident memory, second and last quarter (MB)', trend?.secondMb.toFixed(0), trend?.lastMb.toFixed(0)],
    ['growth (at most 10 %)', trend && `${(trend.growth * 100).toFixed(1)} %`],
    ['consumer lag, outbox, bytes of the spool at most', most('lag'), most('outbox'), most('spoolBytes')],
    ['changes in the log; subscribers; streams that ended and went on', logged, told.length - 1, resumed],
    ['audit records', records],
  ].map(([name, ...values]) => [name, values.map((value) => value ?? '?').join(', ')]);
  const rows = [...kinds].toSorted().map(([kind, { answered, unexpected, durations }]) => {
    const ms = (percent: number) => (durations.percentile(percent) / 1_000).toFixed(1);
    return [kind, answered, unexpected, ms(50), ms(99)];
  });
  return `\n${table(['soak', ''], figures)}\n${table(['kind', 'answers', 'unexpected', 'p50, ms', 'p99, ms'], rows)}`;
}

function table(head: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const all = [head, head.map(() => '---'), ...rows];
  return all.map((cells) => `| ${cells.join(' | ')} |\n`).join('');
}

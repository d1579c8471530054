import type { Latency } from '../lib/latency.ts';
import type { Table } from '../lib/report.ts';
import { median } from '../lib/statistics.ts';

/** A contender's figure, and for each pair its ratio to the product's round next to it, or to another common base. */
export interface Measured {
  title: string;
  figure: number;
  ratios: readonly number[];
  /** The same ratios of CPU, where the figure is another. */
  cpuRatios?: readonly number[];
  /** Of those whose latencies are measured at a share of their load. */
  latency?: Latency | undefined;
}

/** A figure of the product and of others; in all of them less is better. */
export interface Question {
  /** What is measured, with its unit. */
  name: string;
  product: Measured | undefined;
  others: readonly Measured[];
}

/** A question, and the share of the machine, 0 to 1, that others used while it was measured. */
export interface Answered extends Question {
  busy: number;
}

/** What a contender does, in the order of the rows. The floor is the shortest program that keeps as much as the product. */
const KINDS = ['bare', 'peer', 'floor', 'peer with a record'] as const;

type Kind = (typeof KINDS)[number];

/** A row for each contender that the product is compared with. */
export function tableOf(answered: readonly Answered[]): Table {
  return {
    head: [
      'measured',
      'compared with',
      'kind',
      'Portcullis',
      'other',
      'floor',
      'Portcullis ÷ other',
      'of the pairs',
      'pairs',
      "others' CPU",
    ],
    rows: answered.flatMap(rowsOf),
  };
}

function rowsOf({ name, product, others, busy }: Answered): string[][] {
  const floor = others.find(({ title }) => kindOf(title) === 'floor');
  return inOrder(others).map((other) => [
    name,
    other.title,
    kindOf(other.title),
    ...[product, other, floor].map((measured) => figureText(measured?.figure)),
    ...ratioCells(product?.ratios ?? [], other.ratios),
    percentText(busy),
  ]);
}

/** A row for the product and for each other one whose latencies were measured. */
export function latencyTableOf(answered: readonly Answered[]): Table {
  return {
    head: [
      'measured',
      'program',
      'kind',
      'requests/s at full load',
      'requests/s at 70 %',
      'p50, ms',
      'p99, ms',
      'rounds',
      'CPU, Portcullis ÷ program',
      "others' CPU",
    ],
    rows: answered.flatMap(latencyRowsOf),
  };
}

function latencyRowsOf({ name, product, others, busy }: Answered): string[][] {
  return [...(product ? [product] : []), ...inOrder(others)].flatMap((measured) => {
    const { title, latency } = measured;
    if (!latency) return [];
    const { full, perSecond, p50, p99 } = latency;
    return [
      [
        name.replace(/: .*$/, ''),
        title,
        measured === product ? '–' : kindOf(title),
        spreadText(full, 0),
        Number.isNaN(perSecond) ? '–' : perSecond.toFixed(0),
        spreadText(p50, 1),
        spreadText(p99, 1),
        `${p99.length}`,
        measured === product ? '–' : (ratioCells(cpuRatiosOf(product), cpuRatiosOf(measured))[0] ?? '–'),
        percentText(busy),
      ],
    ];
  });
}

function cpuRatiosOf(measured: Measured | undefined): readonly number[] {
  return measured?.cpuRatios ?? measured?.ratios ?? [];
}

function inOrder(others: readonly Measured[]): Measured[] {
  return others.toSorted((one, other) => KINDS.indexOf(kindOf(one.title)) - KINDS.indexOf(kindOf(other.title)));
}

function kindOf(title: string): Kind {
  const isBare = /node:http|by hand|bare/.test(title);
  if (/record|as much/.test(title)) return isBare ? 'floor' : 'peer with a record';
  return isBare ? 'bare' : 'peer';
}

/** The median of the pairs' ratios, the lowest and the highest, and how many pairs; no ratio where one is to zero. */
function ratioCells(product: readonly number[], other: readonly number[]): string[] {
  const ratios = product
    .map((ratio, pair) => ratio / (other[pair] ?? Number.NaN))
    .filter((ratio) => !Number.isNaN(ratio));
  if (ratios.length === 0 || !ratios.every(Number.isFinite)) return ['–', '–', `${ratios.length}`];
  const [lowest, highest] = [Math.min(...ratios), Math.max(...ratios)];
  return [median(ratios).toFixed(2), `${lowest.toFixed(2)} to ${highest.toFixed(2)}`, `${ratios.length}`];
}

/** The median of rounds, the lowest and the highest. */
function spreadText(values: readonly number[], digits: number): string {
  if (values.length === 0) return '–';
  const [middle, lowest, highest] = [median(values), Math.min(...values), Math.max(...values)];
  return `${middle.toFixed(digits)} (${lowest.toFixed(digits)} to ${highest.toFixed(digits)})`;
}

function percentText(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}

function figureText(figure = Number.NaN): string {
  if (Number.isNaN(figure)) return '–';
  return figure.toFixed(figure < 1 ? 2 : figure < 10 ? 1 : 0);
}

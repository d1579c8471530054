import type { SyntaxNodeRef } from '@lezer/common';
import type { LRParser } from '@lezer/lr';
import { parser } from '@prometheus-io/lezer-promql';
import { familyOf, type Scrape } from './scrape.ts';

/** What an expression asks for. */
export interface Expression {
  /** The places where it is no PromQL. */
  faults: string[];
  selectors: { metric: string; labels: string[] }[];
  /** The labels that it groups by. */
  grouping: string[];
}

/** What Prometheus adds to every line. */
const ADDED = ['instance', 'job', 'le'];
/** What Prometheus makes itself. */
const OWN_METRICS = ['up'];

const promql: LRParser = parser;

/** Reads an expression by the grammar of Prometheus. */
export function readExpression(expression: string): Expression {
  const read: Expression = { faults: [], selectors: [], grouping: [] };
  const textOf = ({ from, to }: { from: number; to: number }) => expression.slice(from, to);
  promql.parse(expression).iterate({
    enter(node: SyntaxNodeRef) {
      if (node.type.isError) read.faults.push(`at ${node.from}`);
      if (node.name === 'VectorSelector') {
        const name = node.node.getChild('Identifier');
        read.selectors.push({ metric: name ? textOf(name) : '', labels: [] });
      }
      if (node.name !== 'LabelName') return;
      const isMatcher = node.node.parent?.name.endsWith('Matcher') === true;
      if (isMatcher) read.selectors.at(-1)?.labels.push(textOf(node));
      else read.grouping.push(textOf(node));
    },
  });
  return read;
}

/** The metrics and labels of an expression that a scrape does not have. */
export function strangersIn({ selectors, grouping }: Expression, scraped: Scrape): string[] {
  const labelsOf = (metric: string) => {
    const own = scraped.samples.filter(({ name }) => name === metric).flatMap(({ labels }) => Object.keys(labels));
    return new Set([...own, ...ADDED]);
  };
  const strangers = selectors.flatMap(({ metric, labels }) => {
    if (OWN_METRICS.includes(metric)) return [];
    if (!familyOf(scraped, { name: metric })) return [metric];
    const known = labelsOf(metric);
    return labels.filter((label) => !known.has(label)).map((label) => `${metric}{${label}}`);
  });
  const known = new Set(selectors.flatMap(({ metric }) => [...labelsOf(metric)]));
  return [...strangers, ...grouping.filter((label) => !known.has(label)).map((label) => `by ${label}`)];
}

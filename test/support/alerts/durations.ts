import type { Alert } from '../observability/documents.ts';

type Timed = Pick<Alert, 'expr' | 'for'>;

/** The alert with its ranges and offsets, and with how long it waits, multiplied. */
export function scaledDurations<Rule extends Timed>(rule: Rule, factor: number): Rule {
  const expr = rule.expr.replace(/(?<=\[|offset )\w+/g, (duration) => scaled(duration, factor));
  return { ...rule, expr, ...(rule.for === undefined ? {} : { for: scaled(rule.for, factor) }) };
}

const UNIT_MS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000 };

function scaled(duration: string, factor: number): string {
  const [, count, unit = ''] = /^(\d+)([smh])$/.exec(duration) ?? [];
  if (count === undefined) throw new Error(`${duration} is not a number of seconds, minutes or hours`);
  return `${Math.round(Number(count) * (UNIT_MS[unit] ?? 0) * factor)}ms`;
}

/** Metrics that tell how long something has lasted; what they are compared with is a duration as well. */
const LASTED = /(?<=\b\w+_(?:age|oldest|wrong)_seconds(?:\[\w+\])?\)* > )\d+/g;

/** The alert with all of its durations divided, those included that a time of waiting is compared with. */
export function faster(rule: Alert, factor: number): Alert {
  const scaled = scaledDurations(rule, 1 / factor);
  return { ...scaled, expr: scaled.expr.replace(LASTED, (seconds) => String(Number(seconds) / factor)) };
}

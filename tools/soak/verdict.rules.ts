/** Memory of the instance at one time, in megabytes (10^6 bytes). */
export interface MemorySample {
  residentMb: number;
  heapMb: number;
}

/** What a soak has seen. */
export interface SoakFacts {
  /** Requests that the pace asked for, and those that were answered. */
  paced: { planned: number; answered: number };
  /** Kinds of traffic of which not one was answered. */
  silent: readonly string[];
  /** What was still queued when all had settled. */
  left: { lag: number; outbox: number };
  /** Answers that no one expected, by what was asked; an example of each. */
  unexpected: readonly { kind: string; count: number; example: string }[];
  /** What was wrong with the order or the number of events, by subscriber. */
  events: readonly { subscriber: string; fault: string }[];
  /** Changes that the node's log has, and how many each subscriber was told. */
  logged: number;
  told: readonly { subscriber: string; count: number }[];
  /** What was acknowledged as made, and the rows that there are of it. */
  made: readonly { what: string; acknowledged: number; rows: number }[];
  /** Requests that were answered, audit records of them, and how many requests those are of, by what was asked. */
  audit: readonly { kind: string; answered: number; records: number; requests: number }[];
  /** Lines of the instance's log at the level of errors. */
  errorLines: readonly string[];
  memory: readonly MemorySample[];
}

/** Memory may grow by so much from the second quarter to the last. */
const MEMORY_LIMIT = 0.1;
/** The part of the pace that must have been kept. */
const LEAST_PACE = 0.9;
/** Fewer samples than that say nothing of a quarter. */
const LEAST_SAMPLES = 8;

/** What is wrong, in sentences; empty where the soak has passed. */
export function faultsOf(facts: SoakFacts): string[] {
  const { unexpected, events, logged, told, made, audit, errorLines, paced, silent, left } = facts;
  return [
    ...(paced.answered < paced.planned * LEAST_PACE
      ? [`${paced.answered} of ${paced.planned.toFixed(0)} requests were asked and answered`]
      : []),
    ...silent.map((kind) => `nothing of ${kind} was answered`),
    ...Object.entries(left)
      .filter(([, count]) => count > 0)
      .map(([what, count]) => `${what}: ${count} are left at the end`),
    ...unexpected.map(({ kind, count, example }) => `${count} unexpected answers to ${kind}, such as: ${example}`),
    ...events.map(({ subscriber, fault }) => `${subscriber}: ${fault}`),
    ...told
      .filter(({ count }) => count !== logged)
      .map(({ subscriber, count }) => `${subscriber} was told ${count} of ${logged} changes`),
    ...made
      .filter(({ acknowledged, rows }) => acknowledged !== rows)
      .map(({ what, acknowledged, rows }) => `${rows} ${what} are there, of ${acknowledged} acknowledged`),
    ...audit
      .filter(({ answered, records, requests }) => answered !== records || answered !== requests)
      .map(
        ({ kind, answered, records, requests }) =>
          `${records} audit records, of ${requests} requests, of ${answered} answers to ${kind}`,
      ),
    ...errorLines.map((line) => `the log has an error: ${line}`),
    ...memoryFaults(facts.memory),
  ];
}

/** How memory went: the medians of heap and resident memory together in the second and the last quarter. */
export interface MemoryTrend {
  secondMb: number;
  lastMb: number;
  /** 0.1 for a tenth more in the last quarter. */
  growth: number;
}

/** The trend; undefined where there are too few samples for quarters. The first quarter, in which code is compiled and caches fill, does not count. */
export function memoryTrend(samples: readonly MemorySample[]): MemoryTrend | undefined {
  if (samples.length < LEAST_SAMPLES) return undefined;
  const sums = samples.map(({ residentMb, heapMb }) => residentMb + heapMb);
  const at = (quarter: number) => Math.floor((sums.length * quarter) / 4);
  const secondMb = median(sums.slice(at(1), at(2)));
  const lastMb = median(sums.slice(at(3)));
  return { secondMb, lastMb, growth: lastMb / secondMb - 1 };
}

function memoryFaults(samples: readonly MemorySample[]): string[] {
  const trend = memoryTrend(samples);
  if (!trend) return [`${samples.length} samples of memory are too few`];
  const { secondMb, lastMb, growth } = trend;
  if (growth <= MEMORY_LIMIT) return [];
  const [before, after] = [secondMb, lastMb].map((mb) => mb.toFixed(0));
  return [`memory grew by ${(growth * 100).toFixed(1)} %: ${before} MB in the second quarter, ${after} in the last`];
}

/** The middle value; of an even number the mean of the middle two. 0 for none. */
function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2;
}

/** What is wrong with a cursor that comes after another one: the log of a node is numbered without a gap. */
export function cursorFault(before: bigint, cursor: string): string | undefined {
  if (!/^\d+$/.test(cursor)) return `${JSON.stringify(cursor)} is no cursor`;
  const expected = before + 1n;
  if (BigInt(cursor) === expected) return undefined;
  return BigInt(cursor) < expected
    ? `${cursor} came again, or late, after ${before}`
    : `${cursor} came after ${before}`;
}

/** How a subscription ended, as its client saw it. */
export type StreamEnd =
  | { by: 'close'; code: number }
  /** Of an event stream: the end of the answer, and an event that says that there is no more to tell. */
  | { by: 'end' }
  | { by: 'complete' }
  | { by: 'errors'; codes: readonly unknown[] }
  | { by: 'failure'; reason: string };

/** At a stop; with a token that has ended, at the connection and later. */
const RETURNING_CLOSES: readonly unknown[] = [1012, 4401, 4403];
/** To a slow reader. */
const RETURNING_ERRORS: readonly unknown[] = ['SLOW_CONSUMER'];

/** What is wrong with an end after which a client is not told to come back (docs/quickstart/dashboard.md, "When it ends"). */
export function endFault(end: StreamEnd): string | undefined {
  switch (end.by) {
    case 'close':
      return RETURNING_CLOSES.includes(end.code) ? undefined : `the socket was closed with ${end.code}`;
    case 'end':
      return undefined;
    case 'complete':
      return 'the stream was complete';
    case 'errors':
      return end.codes.length > 0 && end.codes.every((code) => RETURNING_ERRORS.includes(code))
        ? undefined
        : `the stream ended with the errors ${JSON.stringify(end.codes)}`;
    case 'failure':
      return `the stream failed: ${end.reason}`;
    default:
      return end satisfies never;
  }
}

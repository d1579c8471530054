import type { Latency, LatencyEffort } from './latency.ts';
import { tell } from './report.ts';
import type { Round } from './round.ts';
import { median, percentile } from './statistics.ts';

export interface Effort {
  pairs: number;
  requests: number;
  warmUp: number;
  /** How latencies at a share of the full load are measured; they are not where this is missing. */
  latency?: LatencyEffort | undefined;
}

/** Which contender is the base of the pairs, the usual one unless it is named, and which contenders are measured. */
export interface Selection {
  base?: RegExp;
  without?: RegExp | undefined;
  only?: RegExp | undefined;
}

/** A round, and the base's beside it. */
export type PairedRound<Ran extends Round = Round> = Ran & {
  base: Ran;
  /** Microseconds of CPU a request of the base's round. */
  baseUs: number;
};

/** A contender's medians over its rounds, and the ratios to the base's rounds beside them. */
export interface Summary {
  cpuUs: number;
  /** Of each pair: this contender's CPU by the base's. */
  ratios: number[];
  /** Milliseconds. */
  p50: number;
  p99: number;
  perSecond: number;
  latency?: Latency | undefined;
}

interface Pairing<Contender, Ran extends Round> {
  /** One that fails is named and takes no further part. */
  contenders: readonly Contender[];
  /** What the others are measured against. */
  base: Contender;
  effort: Effort;
  run(contender: NoInfer<Contender>, requests: number): Promise<Ran>;
}

/** After a warm-up of all, each contender's round stands before one of the base's; pairs go round in turn. */
export async function pairRounds<Contender extends { title: string }, Ran extends Round>({
  contenders,
  base,
  effort: { pairs, requests, warmUp },
  run,
}: Pairing<Contender, Ran>): Promise<Map<Contender, PairedRound<Ran>[]>> {
  const results = new Map<Contender, PairedRound<Ran>[]>([...contenders, base].map((contender) => [contender, []]));
  await run(base, warmUp);
  let left = await runEach(contenders, (contender) => run(contender, warmUp));
  for (let pair = 1; pair <= pairs; pair++) {
    tell(`round ${pair} of ${pairs} …`);
    left = await runEach(left, async (contender) => {
      const round = await run(contender, requests);
      const beside = await run(base, requests);
      results.get(contender)?.push({ ...round, base: beside, baseUs: beside.cpuUs });
      results.get(base)?.push({ ...beside, base: beside, baseUs: beside.cpuUs });
    });
  }
  return results;
}

/** Of all contenders those that are selected: the base, and the others. */
export function basedOn<Contender extends { title: string }>(
  all: readonly Contender[],
  usual: Contender,
  { base: named, without, only }: Selection = {},
): { base: Contender; contenders: Contender[] } {
  const selected = all.filter(({ title }) => !without?.test(title) && (only?.test(title) ?? true));
  const base = selected.find(({ title }) => named?.test(title)) ?? usual;
  return { base, contenders: selected.filter((contender) => contender !== base) };
}

/** Runs each in turn; names those that fail and returns the others. */
export async function runEach<Contender extends { title: string }>(
  contenders: readonly Contender[],
  run: (contender: Contender) => Promise<unknown>,
): Promise<Contender[]> {
  const left: Contender[] = [];
  for (const contender of contenders) {
    try {
      await run(contender);
      left.push(contender);
    } catch (error) {
      tell(`${contender.title} takes no further part: ${error}`);
    }
  }
  return left;
}

/** What a contender's rounds come to. */
export function summaryOf(rounds: readonly PairedRound[], latency?: Latency): Summary {
  return {
    cpuUs: median(rounds.map(({ cpuUs }) => cpuUs)),
    ratios: rounds.map(({ cpuUs, baseUs }) => cpuUs / baseUs),
    p50: median(rounds.map(({ latencies }) => percentile(latencies, 0.5))),
    p99: median(rounds.map(({ latencies }) => percentile(latencies, 0.99))),
    perSecond: median(rounds.map(({ perSecond }) => perSecond)),
    latency,
  };
}

/** The cells of a summary: CPU in µs, its ratio to the base, of which pairs, p50 and p99 in ms; dashes without a pair. */
export function cellsOf({ cpuUs, ratios, p50, p99 }: Summary): string[] {
  if (ratios.length === 0) return ['–', '–', '–', '–', '–'];
  return [
    cpuUs.toFixed(0),
    median(ratios).toFixed(2),
    `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`,
    p50.toFixed(1),
    p99.toFixed(1),
  ];
}

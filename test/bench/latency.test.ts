import { beforeEach, describe, expect, it, vi } from 'vitest';
import { latenciesOf, paceOf } from '../../bench/lib/latency.ts';
import { basedOn, type PairedRound } from '../../bench/lib/pairs.ts';
import type { Round } from '../../bench/lib/round.ts';
import { type Answered, latencyTableOf, tableOf } from '../../bench/peers/rows.ts';

const EFFORT = { of: /^Portcullis|record/, rounds: 3, requests: 5_000, seconds: 5, mostSeconds: 20 };

beforeEach(() => {
  vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  return () => vi.restoreAllMocks();
});

function roundOf(perSecond: number, latencies: number[] = []): Round {
  return { cpuUs: 100, latencies, perSecond };
}

/** What contenders have reached at full load, by title. */
function fullLoads(speeds: Record<string, number[]>) {
  const rounds = new Map<{ title: string }, PairedRound[]>();
  for (const [title, perSecond] of Object.entries(speeds))
    rounds.set(
      { title },
      perSecond.map((speed) => ({ ...roundOf(speed), base: roundOf(speed), baseUs: 100 })),
    );
  return rounds;
}

async function latencies(
  speeds: Record<string, number[]>,
  run: (title: string, perSecond: number) => number[] = () => [1],
  effort = EFFORT,
) {
  const asked: { title: string; requests: number; perSecond: number }[] = [];
  const measured = await latenciesOf(fullLoads(speeds), effort, async ({ title }, requests, perSecond) => {
    asked.push({ title, requests, perSecond: Math.round(perSecond) });
    return roundOf(perSecond, run(title, perSecond));
  });
  return { asked, of: Object.fromEntries([...measured].map(([{ title }, latency]) => [title, latency])) };
}

describe('latencies at a share of the load', () => {
  it('are measured in turn, in the opposite order in each other round', async () => {
    const { asked } = await latencies({ 'a record': [1_000], 'b record': [1_000], Portcullis: [1_000] });
    const titles = asked.map(({ title }) => title[0]).join('');
    expect(titles).toBe('abPPbaabP');
  });

  it('are at 70 % of the median of the full load, for the seconds, the requests or the longest time of a round', async () => {
    const { asked, of } = await latencies(
      { Portcullis: [900, 2_000, 4_000], 'a record': [500], 'b record': [100] },
      undefined,
      { ...EFFORT, rounds: 1 },
    );
    expect(asked).toEqual([
      { title: 'Portcullis', requests: 7_000, perSecond: 1_400 },
      { title: 'a record', requests: 5_000, perSecond: 350 },
      { title: 'b record', requests: 1_400, perSecond: 70 },
    ]);
    expect(of.Portcullis).toEqual({ full: [900, 2_000, 4_000], perSecond: 1_400, p50: [1], p99: [1] });
  });

  it('have the percentiles of each round', async () => {
    const hundred = Array.from({ length: 100 }, (_, index) => index + 1);
    const { of } = await latencies({ Portcullis: [1_000] }, () => hundred);
    expect(of.Portcullis).toMatchObject({ p50: [50, 50, 50], p99: [99, 99, 99] });
  });

  it('leave out a program that fails, and keep the rounds that it had', async () => {
    let rounds = 0;
    const { of } = await latencies({ 'a record': [1_000], Portcullis: [1_000], 'b record': [] }, (title) => {
      if (title === 'a record' && ++rounds === 2) throw new Error('answered 503');
      return [2];
    });
    expect(of).toMatchObject({
      'a record': { p99: [2] },
      Portcullis: { p99: [2, 2, 2] },
      'b record': { full: [], p99: [] },
    });
  });

  it('are of the programs that are named, and of none without an effort', async () => {
    expect(Object.keys((await latencies({ bare: [1_000], Portcullis: [1_000] })).of)).toEqual(['Portcullis']);
    const run = vi.fn();
    expect(await latenciesOf(fullLoads({ Portcullis: [1_000] }), undefined, run)).toEqual(new Map());
    expect(run).not.toHaveBeenCalled();
  });

  it('are sent over more connections than the full load', () => {
    expect(paceOf(16, undefined)).toEqual({ connections: 16 });
    expect(paceOf(16, 700)).toEqual({ connections: 256, perSecond: 700 });
  });
});

describe('the programs of a question', () => {
  const all = ['bare', 'a record', 'Portcullis in production', 'Portcullis in the process'].map((title) => ({ title }));
  const [usual = { title: '' }] = all;
  const titles = (selection?: Parameters<typeof basedOn>[2]) => {
    const { base, contenders } = basedOn(all, usual, selection);
    return [base.title, ...contenders.map(({ title }) => title)];
  };

  it('are all, beside the usual base, or those that are selected, beside the one that is named', () => {
    expect(titles()).toEqual(['bare', 'a record', 'Portcullis in production', 'Portcullis in the process']);
    const selection = { base: /^Portcullis/, without: /process$/ };
    expect(titles(selection)).toEqual(['Portcullis in production', 'bare', 'a record']);
    expect(titles({ ...selection, only: /^Portcullis|record/ })).toEqual(['Portcullis in production', 'a record']);
  });
});

describe('the table of latencies', () => {
  const latency = { full: [1_000, 1_200, 1_100], perSecond: 770, p50: [1, 3, 2], p99: [10, 30, 20.04] };
  const none = { full: [], perSecond: Number.NaN, p50: [], p99: [] };
  const answered: Answered = {
    name: 'token, client credentials: µs of CPU',
    product: { title: 'Portcullis', figure: 300, ratios: [1, 1, 1], latency },
    others: [
      { title: 'peer, with a record of each request', figure: 300, ratios: [], latency: none },
      { title: 'bare node:http, with a record of each request', figure: 150, ratios: [0.5, 0.5, 0.4], latency },
      { title: 'bare node:http', figure: 75, ratios: [0.25, 0.25, 0.25] },
    ],
    busy: 0.02,
  };

  it('has the product, then the floor, then peers, each with its ratio of CPU', () => {
    const { head, rows } = latencyTableOf([answered]);
    const figures = ['1100 (1000 to 1200)', '770', '2.0 (1.0 to 3.0)', '20.0 (10.0 to 30.0)', '3'];
    expect(rows).toEqual([
      ['token, client credentials', 'Portcullis', '–', ...figures, '–', '2 %'],
      [
        'token, client credentials',
        'bare node:http, with a record of each request',
        'floor',
        ...figures,
        '2.00',
        '2 %',
      ],
      [
        'token, client credentials',
        'peer, with a record of each request',
        'peer with a record',
        ...['–', '–', '–', '–', '0', '–', '2 %'],
      ],
    ]);
    expect(rows.every((row) => row.length === head.length)).toBe(true);
    const floor = tableOf([answered]).rows.find(([, title]) => title === rows[1]?.[1]);
    expect(floor?.[6]).toBe('2.00');
  });

  it('has the ratio of CPU where the main table has another', () => {
    const [floor] = answered.others.slice(1);
    const others = floor ? [{ ...floor, ratios: [9, 9, 9], cpuRatios: [0.25, 0.25, 0.25] }] : [];
    expect(latencyTableOf([{ ...answered, others }]).rows[1]?.at(-2)).toBe('4.00');
  });

  it('is empty for a question without latencies', () => {
    expect(latencyTableOf([{ ...answered, product: undefined, others: [] }]).rows).toEqual([]);
  });
});

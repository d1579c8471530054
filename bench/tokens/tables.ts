import { cellsOf } from '../lib/pairs.ts';
import type { Table } from '../lib/report.ts';
import { median } from '../lib/statistics.ts';
import { type Stores, titleOf } from '../lib/world.ts';
import type { Result } from './measure.ts';

const OF_BARE: Record<Stores, string> = { embedded: 'at most 2', servers: 'at most 2.3' };

/** What each contender's token costs, and what the product is held to. */
export function tablesOf(results: readonly Result[]): Table[] {
  const oidc = results.find(({ contender }) => contender.kind === 'oidc-provider');
  if (!oidc) throw new Error('oidc-provider is one of the contenders');
  return [costs(results), aims(results, oidc)];
}

function costs(results: readonly Result[]): Table {
  return {
    head: [
      'client_credentials, 16 connections',
      'CPU, µs',
      '× bare',
      'of the pairs',
      'p50, ms',
      'p99, ms',
      'tokens signed',
    ],
    rows: results.map(({ contender, refreshes, ...summary }) => [
      contender.title,
      ...cellsOf(summary),
      refreshes ? 'access, refresh' : 'access',
    ]),
  };
}

function aims(results: readonly Result[], oidc: Result): Table {
  const rows = results.flatMap(({ contender: { kind }, ratios, rounds, p99 }) => {
    if (kind !== 'embedded' && kind !== 'servers') return [];
    const ahead = median(rounds.map((cpuUs, index) => (oidc.rounds[index] ?? Number.NaN) / cpuUs));
    const tail = `${p99.toFixed(1)} / ${oidc.p99.toFixed(1)}`;
    return [
      [titleOf(kind), median(ratios).toFixed(2), OF_BARE[kind], ahead.toFixed(2), 'at least 1.4', tail, 'below it'],
    ];
  });
  return {
    head: ['Portcullis', '× bare', 'aim', 'oidc-provider ÷ it', 'aim', "p99, ms / oidc-provider's", 'aim'],
    rows,
  };
}

import { afterAll, expect } from 'vitest';
import type { Cluster } from './cluster.ts';
import { type Fault, type FaultReport, underFault } from './faults.ts';
import { NOTHING_AMISS } from './findings.ts';

/** Returns a function that does a fault and expects nothing to be amiss; the file's faults are printed in a table at its end. */
export function faultTable() {
  const reports: FaultReport[] = [];
  afterAll(() => void (reports.length > 0 && process.stdout.write(`\n${tableOf(reports)}\n`)));
  return async (cluster: Cluster, fault: Fault, pace?: Parameters<typeof underFault>[2]): Promise<void> => {
    const report = await underFault(cluster, fault, pace);
    reports.push(report);
    expect(report.amiss).toEqual(NOTHING_AMISS);
  };
}

/** What faults did, as a table in Markdown. */
export function tableOf(all: readonly FaultReport[]): string {
  const rows = all.map(({ name, acknowledged, users, delivered, returns, healthyMs, answers, amiss }) => {
    const { 200: _told, 201: _made, ...failed } = answers;
    const others = Object.entries(failed).map(([answer, count]) => `${count} × ${answer}`);
    const { lost, doubled, usersLost, usersWithoutEvent, missed, repeated } = amiss;
    const sum = (counts: number[]) => counts.reduce((total, count) => total + count, 0);
    const wrong = [
      lost.length,
      doubled.length,
      usersLost.length + usersWithoutEvent.length,
      sum(missed),
      sum(repeated),
    ];
    const seen = [acknowledged, users, delivered, others.join(', ') || '–', returns, (healthyMs / 1_000).toFixed(1)];
    return `| ${[name, ...seen, ...wrong].join(' | ')} |`;
  });
  const head = [
    'fault',
    'acknowledged',
    'users',
    'events delivered',
    'other answers',
    'readers came back',
    'healthy after, s',
  ];
  const wrong = ['lost', 'doubled', 'users lost', 'missed', 'repeated'];
  return [`| ${[...head, ...wrong].join(' | ')} |`, `|${'---|'.repeat(head.length + wrong.length)}`, ...rows].join(
    '\n',
  );
}

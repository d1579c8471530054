import type { FaultReport } from './faults.ts';

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

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findingsOf, type StatusFacts } from '../../src/features/status/status.rules.ts';
import { ROOT } from '../support/start/process.ts';

const NOW = Date.parse('2026-11-28T12:00:00Z');
const HOUR = 3_600;
const ID = '0190b8a4-6a54-7c3e-9d2f-3f0c5a1b2c3d';

const spool = { records: 0, bytes: 0, share: 0.01 };
const about = { id: ID, host: 'a', version: '1.0.0', since: '2026-11-28T11:00:00Z', seen_seconds: 3, accounts_near: 0 };
const GOOD: StatusFacts = {
  parts: Object.fromEntries(
    ['database', 'cache', 'bus', 'audit'].map((part) => [part, { state: 'ok', since: '2026-11-28T11:00:00Z' }]),
  ),
  lag: [{ group: 'g', topic: 'transactions.admin', messages: 3, oldest_seconds: 2 }],
  dead_letters: [{ topic: 'transactions.admin', messages: 0, oldest_seconds: 0 }],
  parked: { messages: 1, oldest_seconds: 60, transactions: 1, ids: ['t-1'] },
  outbox: { messages: 2, oldest_seconds: 1 },
  audit: { checkpoint_at: '2026-11-28T11:59:30Z', verified: { at: '2026-11-28T03:00:00Z', seal: 9, problems: 0 } },
  migrations: { running: [], failed: [], stuck_since: null },
  quotas: [],
  differing_secrets: [],
  processes: [{ ...about, role: 'all', spool }],
};

/** What makes a person act, and what the finding says. */
const TABLE: [name: string, change: Partial<StatusFacts>, what: string | undefined, since?: string | null][] = [
  ['nothing', {}, undefined],
  [
    'a worker and a gateway',
    {
      processes: [
        { ...about, role: 'worker', spool },
        { ...about, role: 'gateway', spool },
      ],
    },
    undefined,
  ],
  [
    'nothing that can be read',
    {
      parts: {},
      lag: null,
      dead_letters: null,
      parked: null,
      outbox: null,
      audit: null,
      migrations: null,
      quotas: null,
      differing_secrets: null,
      processes: null,
    },
    undefined,
  ],
  ['a client at its limit, which is its own matter', { quotas: [{ client_id: ID, used: 10, limit: 10 }] }, undefined],
  ...['database', 'cache', 'bus'].map((part): (typeof TABLE)[number] => [
    `the ${part} that is down`,
    { parts: { ...GOOD.parts, [part]: { state: 'down', since: '2026-11-28T11:58:00Z' } } },
    `${part} is down`,
    '2026-11-28T11:58:00Z',
  ]),
  [
    'a database with the code of its error',
    { parts: { ...GOOD.parts, database: { state: 'down', since: null, code: '28P01' } } },
    'database is down (28P01)',
  ],
  ['a full spool', { parts: { ...GOOD.parts, audit: { state: 'full', since: null } } }, 'audit is full', null],
  ['no process', { processes: [] }, 'no worker has reported within the last minute', null],
  [
    'no worker',
    { processes: [{ ...about, role: 'gateway', spool }] },
    'no worker has reported within the last minute',
    null,
  ],
  [
    'no gateway',
    { processes: [{ ...about, role: 'worker', spool }] },
    'no gateway has reported within the last minute',
    null,
  ],
  [
    'gateways whose secrets differ',
    { differing_secrets: ['SECRET_PEPPER'] },
    'gateways have different values of SECRET_PEPPER',
    null,
  ],
  [
    'a spool above 80 %',
    { processes: [{ ...about, role: 'all', spool: { ...spool, share: 0.812 } }] },
    `the audit spool of ${ID} is at 81 %`,
    null,
  ],
  ['a spool of 80 %', { processes: [{ ...about, role: 'all', spool: { ...spool, share: 0.8 } }] }, undefined],
  [
    'a consumer that stands still',
    { lag: [{ group: 'g', topic: 'transactions.user', messages: 244, oldest_seconds: 300 }] },
    '244 messages of transactions.user wait for g',
    '2026-11-28T11:55:00.000Z',
  ],
  [
    'a consumer that has just fallen behind',
    { lag: [{ group: 'g', topic: 't', messages: 9_000, oldest_seconds: 299 }] },
    undefined,
  ],
  [
    'an outbox that is not relayed',
    { outbox: { messages: 4, oldest_seconds: 300 } },
    '4 events wait in the outbox',
    '2026-11-28T11:55:00.000Z',
  ],
  [
    'a dead letter of an hour',
    { dead_letters: [{ topic: 'transactions.admin', messages: 2, oldest_seconds: HOUR }] },
    '2 dead letters of transactions.admin wait for a decision',
    '2026-11-28T11:00:00.000Z',
  ],
  ['a younger dead letter', { dead_letters: [{ topic: 't', messages: 2, oldest_seconds: HOUR - 1 }] }, undefined],
  [
    'a notification that was parked an hour ago',
    { parked: { messages: 5, oldest_seconds: HOUR, transactions: 2, ids: ['t-1'] } },
    '5 notifications of 2 unregistered transactions wait',
    '2026-11-28T11:00:00.000Z',
  ],
  [
    'a verification that has failed',
    { audit: { checkpoint_at: null, verified: { at: '2026-11-28T03:00:00Z', seal: 9, problems: 2 } } },
    'the last verification of the audit found 2 problems',
    '2026-11-28T03:00:00Z',
  ],
  [
    'a migration that has failed',
    { migrations: { running: [], failed: [{ id: ID, at: '2026-11-28T10:00:00Z' }], stuck_since: null } },
    `the user migration ${ID} has failed`,
    '2026-11-28T10:00:00Z',
  ],
  [
    'migrations that no worker takes',
    { migrations: { running: [], failed: [], stuck_since: '2026-11-28T11:50:00Z' } },
    'user migrations wait, and no worker takes one',
    '2026-11-28T11:50:00Z',
  ],
  ...[
    ['service pricing', 'unreachable'],
    ['gateway.yaml', 'rejected'],
    ['webhook', 'rejecting all notifications (future)'],
  ].map(([part = '', state = '']): (typeof TABLE)[number] => [
    `${part} that is ${state}`,
    { parts: { ...GOOD.parts, [part]: { state, since: '2026-11-28T11:58:00Z' } } },
    `${part} is ${state}`,
    '2026-11-28T11:58:00Z',
  ]),
];

describe('the findings of a status', () => {
  it.each(TABLE)('D8-10: with %s', (_name, change, what, since = null) => {
    const found = findingsOf({ ...GOOD, ...change }, NOW);
    expect(found.map((finding) => ({ what: finding.what, since: finding.since })).slice(0, 1)).toEqual(
      what === undefined ? [] : [{ what, since }],
    );
  });

  it('D8-10: say who is hit, and name a page that exists with its heading, and something to type', () => {
    const all = TABLE.flatMap(([, change]) => findingsOf({ ...GOOD, ...change }, NOW));
    expect(all.length).toBeGreaterThan(10);
    for (const { page, hits, type } of all) {
      const [file = '', anchor] = page.split('#');
      expect(existsSync(join(ROOT, file)), page).toBe(true);
      const headings = readFileSync(join(ROOT, file), 'utf8').matchAll(/^#+ (.*)$/gm);
      const anchors = Array.from(headings, ([, heading = '']) =>
        heading
          .toLowerCase()
          .replace(/[^\w -]/g, '')
          .replaceAll(' ', '-'),
      );
      if (anchor !== undefined) expect(anchors).toContain(anchor);
      expect(hits.length).toBeGreaterThan(10);
      expect(type).toMatch(/\S/);
    }
  });

  it('D8-10: are all told, the part that is down first', () => {
    const found = findingsOf({ ...GOOD, processes: [], parts: { bus: { state: 'down', since: null } } }, NOW);
    expect(found.map(({ what }) => what)).toEqual([
      'bus is down',
      'no worker has reported within the last minute',
      'no gateway has reported within the last minute',
    ]);
  });
});

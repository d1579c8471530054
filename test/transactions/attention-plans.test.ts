import { expect, it } from 'vitest';
import { AttentionFinder } from '../../src/features/attention/attention.service.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { plansOf } from '../support/transactions/plans.ts';

const NODE = 'aaaaaaaa-0000-4000-8000-000000000001';
const COUNT = 30_000;
/** The number of transactions of a kind that are looked at. */
const COUNTED = 1_000;
/** The second of the first registration; one transaction follows another after ten seconds, for three days. */
const FIRST = 1_780_000_000;
const NOW = FIRST + COUNT * 10;

/** Of forty transactions one failed, four are still in progress, four wait for a receipt, and the others are done. */
const FILL = [
  `insert into nodes (id, name) values ('${NODE}', 'node')`,
  `insert into transaction_ids (id) select 't' || n from generate_series(1, ${COUNT}) n`,
  `insert into transactions (id, node_id, collection, registered_type, registered_by, type, status, error,
      updated_text, updated_seconds, updated_nanos, done_seen, error_seen, registered_at)
    select 't' || n, '${NODE}', 'token_transactions', 1, 'topic', 1,
      case when n % 40 = 4 then 4 when n % 10 = 2 then 2 when n % 10 = 5 then 5 else 3 end, 'error ' || n % 3, 'x',
      ${FIRST} + n * 10, 0, n % 10 not in (2, 5), n % 40 = 4 or n % 20 = 7, to_timestamp(${FIRST} + n * 10)
    from generate_series(1, ${COUNT}) n`,
  'vacuum analyze transactions',
];

const fixture = beforeTests(async () => {
  const database = await realDatabase();
  await withPostgres(database.url, async (client) => {
    for (const statement of FILL) await client.query(statement);
  });
  return { database, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() };
});

it('DG-02: what needs attention reads at most 1,000 transactions of a kind, however many there are', async () => {
  const finder = new AttentionFinder({
    db: fixture.database.db,
    locks: { lockedUntil: async () => new Map() },
    nowMs: () => NOW * 1_000,
  });
  const find = () => finder.find({ nodeId: NODE, permissions: new Set(['transactions:read']) });
  await withPostgres(fixture.database.url, async (client) => {
    for (const { scans, read } of await plansOf(client, find)) {
      // A bitmap heap scan names none: the scan below it does.
      for (const { 'Index Name': index = 'transactions_not_done' } of scans)
        expect(index).toMatch(/^transactions_(not_done|updated|in_conflict)$/);
      // Of a status, 36 were registered within the hour: they come before those that are stuck.
      expect(read).toBeLessThanOrEqual(COUNTED + 36);
    }
  });
  const groups = await find();
  // Groups of a kind with as many transactions have no order.
  const numbers = groups.map(({ kind, reason, count }) => [kind, reason, count].join(' ')).sort();
  expect(numbers).toEqual([
    'conflict  1000',
    'failed error 0 72',
    'failed error 1 72',
    'failed error 2 72',
    'stuck 2 1000',
    'stuck 5 1000',
  ]);
});

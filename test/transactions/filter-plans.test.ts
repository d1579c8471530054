import { expect, it } from 'vitest';
import {
  COUNTED_AT_MOST,
  type TransactionFilter,
  TransactionPages,
} from '../../src/features/transactions/transaction-pages.service.ts';
import type { PageKey, PageRequest } from '../../src/lib/keyset.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { plansOf } from '../support/transactions/plans.ts';

const NODE = 'aaaaaaaa-0000-4000-8000-000000000001';
const COUNT = 30_000;
/** The second of the first registration; one transaction follows another after five seconds. */
const FIRST = 1_780_000_000;
const secondOf = (part: number) => BigInt(FIRST + Math.floor(COUNT * part) * 5);
const instant = (part: number) => ({ seconds: secondOf(part), nanos: 0 });

/**
 * A tenant whose list is as hard as lists are: nearly all transactions are done, what is looked for is rare, and a
 * tenth of the last hundredth failed.
 */
const FILL = `
  insert into nodes (id, name) values ('${NODE}', 'node');
  insert into transaction_ids (id) select 't' || n from generate_series(1, ${COUNT}) n;
  insert into transactions (id, node_id, collection, registered_type, registered_by, type, status, status_key,
      transaction_hash, transaction_hash_key, updated_text, updated_seconds, updated_nanos, done_seen, error_seen,
      registered_at)
    select 't' || n, '${NODE}', (array['token_transactions', 'user_transactions', 'node_transactions'])[1 + n % 3], 1,
      'topic', case when n % (${COUNT} / 5) = 9 then 999 else 1 + n % 9 end,
      case when n % 3000 = 1 then 1 when n % 3000 = 2 then 2 when n % 3000 = 3 then 5
        when n > ${COUNT} * 0.99 and n % 10 = 4 then 4 else 3 end, repeat('ab', 120),
      '0x' || n, repeat('ab', 120), 'x', ${FIRST} + n * 5 + (n % 7) * 400, 0, true, n % (${COUNT} / 6) = 5,
      to_timestamp(${FIRST} + n * 5)
    from generate_series(1, ${COUNT}) n;
  update transactions set collection = 'otc_transactions' where id in ('t7', 't${COUNT - 7}');`;

const fixture = beforeTests(async () => {
  const database = await realDatabase();
  await withPostgres(database.url, async (client) => {
    for (const statement of FILL.split(';').filter((text) => text.trim() !== '')) await client.query(statement);
    await client.query('vacuum analyze transactions');
  });
  return {
    database,
    pages: new TransactionPages(database.db),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
});

const FILTERS: [name: string, filter: TransactionFilter, indexes: RegExp][] = [
  ['none', {}, /registered/],
  ['a rare status', { status: 1 }, /not_done/],
  ['a status of late', { status: 4 }, /not_done/],
  ['the usual status', { status: 3 }, /registered|updated/],
  ['a rare collection', { collection: 'otc_transactions' }, /by_type|not_done/],
  ['a rare type', { type: 999 }, /by_type|not_done/],
  ['a hash', { idOrHash: `0x${COUNT - 1}` }, /pkey|node_id_id|by_hash/],
  ['an id', { idOrHash: `t${COUNT - 1}` }, /pkey|node_id_id|by_hash/],
  ['the beginning of an id', { search: `t${COUNT / 10 - 1}` }, /pkey|node_id_id|by_hash/],
  ['the beginning of a hash', { search: `0x${COUNT / 10 - 1}` }, /pkey|node_id_id|by_hash/],
  ['conflict', { conflict: true }, /in_conflict/],
  ['flagged', { flagged: true }, /flagged/],
  ['a late time', { updatedSince: instant(0.995) }, /registered|updated/],
  ['an early time', { updatedUntil: instant(0.002) }, /registered|updated/],
  ['a short time', { updatedSince: instant(0.5), updatedUntil: instant(0.501) }, /registered|updated/],
  ['failed of late', { status: 4, updatedSince: instant(0.999) }, /not_done|updated/],
  ['stuck', { status: 2, updatedUntil: instant(0.9) }, /not_done|updated/],
];
const request = (backward: boolean): PageRequest => ({ size: 20, backward, after: undefined, before: undefined });
/** The most rows that are read for a page of twenty and do not match. */
const MOST_REMOVED = COUNT / 50;

it.each(FILTERS)(
  'DG-02: a page and the count with the filter %s use an index, and discard few rows',
  async (_name, filter, indexes) => {
    await withPostgres(fixture.database.url, async (client) => {
      for (const backward of [false, true]) {
        const plans = await plansOf(client, () => fixture.pages.page(NODE, filter, request(backward)));
        for (const { scans } of plans) {
          for (const scan of scans) expect(scan['Rows Removed by Filter'] ?? 0).toBeLessThan(MOST_REMOVED);
          for (const scan of scans.filter((one) => !/Bitmap Heap/.test(one['Node Type']))) {
            expect(scan).toMatchObject({ 'Index Name': expect.stringMatching(indexes) });
          }
        }
      }
      if (Object.keys(filter).length === 0) return;
      const counts = await plansOf(client, () => fixture.pages.count(NODE, filter));
      // A short range is read as a whole, and then sorted.
      for (const scan of counts.flatMap(({ scans }) => scans)) {
        expect(scan['Node Type']).toMatch(/Index|Bitmap/);
        expect(scan['Actual Rows']).toBeLessThanOrEqual(Math.max(COUNTED_AT_MOST + 1, MOST_REMOVED));
      }
    });
  },
);

it.each([
  ['a short range, which is sorted', { updatedSince: instant(0.5), updatedUntil: instant(0.502) }, 9],
  ['a long range, which is not', { updatedSince: instant(0.1), updatedUntil: instant(0.95) }, 4_000],
])('DG-02: the pages of %s are complete and in order, forwards and backwards', async (_name, filter, size) => {
  const walk = async (backward: boolean) => {
    const ids: string[] = [];
    let key: PageKey | undefined;
    do {
      const from = backward ? { after: undefined, before: key } : { after: key, before: undefined };
      const { rows, hasMore } = await fixture.pages.page(NODE, filter, { size, backward, ...from });
      ids.splice(backward ? 0 : ids.length, 0, ...rows.map(({ id }) => id));
      const last = rows.at(backward ? 0 : -1);
      key = hasMore && last ? fixture.pages.keyOf(last) : undefined;
    } while (key);
    return ids;
  };
  const forwards = await walk(false);
  expect(forwards).toEqual(forwards.toSorted((a, b) => Number(a.slice(1)) - Number(b.slice(1))));
  expect(forwards.length).toBe(await fixture.pages.exact.count(NODE, filter));
  expect(forwards.length).toBeGreaterThan(3 * size);
  expect(await walk(true)).toEqual(forwards);
});

it('DG-02: the total is exact up to 1,000 with a filter, and always exact without one or over MCP', async () => {
  const count = (seconds: bigint) => fixture.pages.count(NODE, { updatedSince: { seconds, nanos: 0 }, status: 3 });
  const { rows } = await withPostgres(fixture.database.url, (client) =>
    client.query('select updated_seconds s from transactions where status = 3 order by 1 desc offset 999 limit 2'),
  );
  const [first = 0n, second = 0n] = rows.map(({ s }) => BigInt(String(s)));
  expect(first).toBeGreaterThan(second);
  expect([await count(first), await count(second)]).toEqual([1_000, Number.POSITIVE_INFINITY]);
  expect(await fixture.pages.count(NODE, {})).toBe(COUNT);
  expect(await fixture.pages.exact.count(NODE, { type: 2 })).toBeGreaterThan(1_000);
});

it('DG-01: counts by hour and day read no table rows, and only the range of one index', async () => {
  const { since, until } = { since: instant(0.9), until: instant(0.95) };
  await withPostgres(fixture.database.url, async (client) => {
    for (const bucket of ['hour', 'day'] as const) {
      for (const { scans } of await plansOf(client, () => fixture.pages.stats(NODE, { since, until, bucket }))) {
        const [scan, ...more] = scans;
        expect(scan).toMatchObject({ 'Node Type': 'Index Only Scan', 'Index Name': 'transactions_updated' });
        expect(scan?.['Index Cond']).toMatch(/updated_seconds.*>=.*updated_seconds.*</);
        expect(more).toEqual([]);
      }
    }
  });
  const counted = await fixture.pages.stats(NODE, { since, until, bucket: 'hour' });
  const total = counted.reduce((sum, { count }) => sum + count, 0);
  expect(total).toBe(COUNT * 0.05);
});

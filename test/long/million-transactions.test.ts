import { expect, it } from 'vitest';
import { type TransactionFilter, TransactionPages } from '../../src/features/transactions/transaction-pages.service.ts';
import type { PageKey, PageRequest } from '../../src/lib/keyset.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { describeReal } from '../support/services/real.ts';
import { plansOf } from '../support/transactions/plans.ts';

const NODE = 'aaaaaaaa-0000-4000-8000-000000000001';
const OTHER_NODE = 'bbbbbbbb-0000-4000-8000-000000000002';
/** The transactions of both tenants, of which every fifth is of the second one. */
const ALL = 1_250_000;
const COUNT = 1_000_000;
/** The second of the first registration; one transaction follows another after four seconds, for 58 days. */
const FIRST = 1_780_000_000;
const HOUR = 3_600;
const DAY = 24 * HOUR;
const LAST = FIRST + ALL * 4;

/** Nearly all transactions are done; some failed or are stuck; one in 10,000 is of the rare collection, five are of a rare type. */
const FILL = [
  `insert into nodes (id, name) values ('${NODE}', 'node'), ('${OTHER_NODE}', 'other')`,
  `insert into transaction_ids (id) select 'transaction-' || lpad(n::text, 10, '0') from generate_series(1, ${ALL}) n`,
  `insert into transactions (id, node_id, collection, registered_type, registered_by, type, status, status_key,
      transaction_hash, transaction_hash_key, updated_text, updated_seconds, updated_nanos, done_seen, error_seen,
      registered_at)
    select 'transaction-' || lpad(n::text, 10, '0'),
      case when n % 5 = 0 then '${OTHER_NODE}'::uuid else '${NODE}' end,
      case when n % 10000 = 7 then 'otc_transactions' when n % 250000 = 9 then 'node_transactions'
        else (array['token_transactions', 'user_transactions', 'node_transactions'])[1 + n % 3] end,
      1, 'topic', case when n % 250000 = 9 then 999 else 1 + n % 9 end,
      case when n % 4000 = 6 then null when n % 4000 = 1 then 1 when n % 4000 = 2 then 2 when n % 4000 = 3 then 5
        when n > ${ALL} - 300 then 2 when n % 200 = 4 then 4 else 3 end,
      repeat('ab', 50), '0x' || lpad(to_hex(n), 64, '0'), repeat('ab', 50), 'x',
      case when n % 4000 <> 6 then ${FIRST} + n * 4 + n % 7 * 40 + case when n % 2000 = 17 then ${DAY} else 0 end end,
      0, true, n % 200000 = 11, to_timestamp(${FIRST} + n * 4)
    from generate_series(1, ${ALL}) n`,
  'vacuum (analyze) transactions',
];

const instant = (seconds: number) => ({ seconds: BigInt(seconds), nanos: 0 });
const STUCK_UNTIL = LAST - HOUR;

/** The parts of the console's list. */
const PARTS: Record<string, TransactionFilter> = {
  all: {},
  started: { status: 1 },
  'in progress': { status: 2 },
  'waiting for a receipt': { status: 5 },
  done: { status: 3 },
  failed: { status: 4 },
  'in conflict': { conflict: true },
  'of an unknown type': { flagged: true },
  stuck: { status: 2, updatedUntil: instant(STUCK_UNTIL) },
};

/** What a person looks for in a part. */
const SEARCHES: Record<string, TransactionFilter> = {
  '': {},
  'of a collection': { collection: 'user_transactions' },
  'of a rare collection': { collection: 'otc_transactions' },
  'of a type': { type: 3 },
  'of a rare type': { type: 999 },
  'of a collection and a type': { collection: 'user_transactions', type: 5 },
  'of a rare collection and a type': { collection: 'otc_transactions', type: 3 },
  'by id': { idOrHash: 'transaction-0000000006' },
  'by hash': { idOrHash: `0x${(777_777).toString(16).padStart(64, '0')}` },
  'of the last hour': { updatedSince: instant(LAST - HOUR) },
  'of the last day': { updatedSince: instant(LAST - DAY) },
  'of the last 30 days': { updatedSince: instant(LAST - 30 * DAY) },
  'of the first hours': { updatedUntil: instant(FIRST + 2 * HOUR) },
  'of an hour of the past': { updatedSince: instant(FIRST + 30 * DAY), updatedUntil: instant(FIRST + 30 * DAY + HOUR) },
  'of a day of the past': { updatedSince: instant(FIRST + 30 * DAY), updatedUntil: instant(FIRST + 31 * DAY) },
  'of a collection and the last day': { collection: 'user_transactions', updatedSince: instant(LAST - DAY) },
  'of a rare collection and the last 30 days': {
    collection: 'otc_transactions',
    updatedSince: instant(LAST - 30 * DAY),
  },
};

const CASES = Object.entries(PARTS).flatMap(([part, of]) =>
  Object.entries(SEARCHES).map(([search, by]) => {
    const filter: TransactionFilter = { ...of, ...by };
    const untils = [of, by].flatMap(({ updatedUntil }) => updatedUntil ?? []);
    const [updatedUntil] = untils.sort((a, b) => Number(a.seconds - b.seconds));
    return [`${part} ${search}`, { ...filter, updatedUntil }] as const;
  }),
);

/** What a page is read with: at an end of the list and deep inside it. */
const DEEP: PageKey = { at: new Date((FIRST + 29 * DAY) * 1_000).toISOString(), id: 'x' };
const none = { after: undefined, before: undefined };
const PAGES: PageRequest[] = [
  { size: 100, backward: false, ...none },
  { size: 50, backward: true, ...none },
  { size: 50, backward: false, ...none, after: DEEP },
  { size: 50, backward: true, ...none, before: DEEP },
];

/** Ranges with more transactions than are sorted: one index is searched in the order of the list. */
const LONG = /30 days/;
/** The most rows that are read for what only some transactions match. */
const MOST_READ = COUNT / 50;
/** The most pages of 8 kB that are read for so many rows: those of the rows, and of the indexes in which they are found. */
const mostPages = (rows: number) => 1.2 * rows + 300;

describeReal('postgres', 'the list of a tenant with a million transactions', () => {
  const fixture = beforeTests(async () => {
    const database = await realDatabase();
    await withPostgres(database.url, async (client) => {
      for (const statement of FILL) await client.query(statement);
    });
    return {
      database,
      pages: new TransactionPages(database.db),
      [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
    };
  });
  const isWhole = ([name]: (typeof CASES)[number]) => name.endsWith(' ') && name !== 'stuck ';

  it('DG-02: a page of a filtered list reads only the rows of the page, anywhere in the list', async () => {
    await withPostgres(fixture.database.url, async (client) => {
      for (const [name, filter] of CASES.filter(isWhole)) {
        for (const request of PAGES) {
          for (const { scans, read, buffers } of await plansOf(client, () =>
            fixture.pages.page(NODE, filter, request),
          )) {
            expect(scans, name).toMatchObject([{ 'Node Type': 'Index Scan' }]);
            expect(read, name).toBeLessThanOrEqual(request.size + 1);
            expect(buffers, name).toBeLessThan(1.2 * request.size + 20);
          }
        }
      }
    });
  });

  it('DG-02: the count of a filtered list reads at most 1,001 index entries', async () => {
    await withPostgres(fixture.database.url, async (client) => {
      for (const [name, filter] of CASES.filter(isWhole).filter(([name]) => name !== 'all ')) {
        for (const { scans, read, buffers } of await plansOf(client, () => fixture.pages.count(NODE, filter))) {
          expect(scans, name).toMatchObject([{ 'Node Type': expect.stringMatching(/Index/) }]);
          expect(read, name).toBeLessThanOrEqual(1_001);
          expect(buffers, name).toBeLessThan(50);
        }
      }
    });
  });

  it.each(Object.keys(PARTS))('DG-02: any search in the list filtered by %s reads few rows and pages', async (part) => {
    await withPostgres(fixture.database.url, async (client) => {
      const { rows } = await client.query("select relpages from pg_class where relname = 'transactions_registered'");
      const pagesOfIndex = Number(rows[0]?.relpages);
      for (const [name, filter] of CASES.filter(([one]) => one.startsWith(`${part} `) && one !== 'all ')) {
        const works = PAGES.map((request) => () => fixture.pages.page(NODE, filter, request));
        for (const work of [...works, () => fixture.pages.count(NODE, filter)]) {
          for (const { scans, read, buffers } of await plansOf(client, work)) {
            const [first] = scans;
            for (const scan of scans) expect(scan['Node Type'], name).not.toBe('Seq Scan');
            expect(read, name).toBeLessThanOrEqual(MOST_READ);
            const isInOrder = LONG.test(name) && first?.['Index Name'] === 'transactions_registered';
            expect(buffers, name).toBeLessThan(isInOrder ? pagesOfIndex : mostPages(read));
            if (isInOrder) expect(first?.['Rows Removed by Filter'] ?? 0, name).toBe(0);
          }
        }
      }
    });
  });

  it('DG-01: counts by hour read no table rows, and only the range of one index', async () => {
    await withPostgres(fixture.database.url, async (client) => {
      for (const days of [1, 31]) {
        const range = { since: instant(LAST - days * DAY), until: instant(LAST) };
        const counted = await fixture.pages.stats(NODE, { ...range, bucket: 'hour' });
        const total = counted.reduce((sum, { count }) => sum + count, 0);
        expect(total).toBeGreaterThan((days * DAY) / 4 / 2);
        const plans = await plansOf(client, () => fixture.pages.stats(NODE, { ...range, bucket: 'hour' }));
        expect(plans).toMatchObject([
          {
            read: total,
            scans: [{ 'Node Type': 'Index Only Scan', 'Index Name': 'transactions_updated', 'Heap Fetches': 0 }],
          },
        ]);
        expect(plans[0]?.buffers).toBeLessThan(total / 50 + 50);
      }
    });
  });
});

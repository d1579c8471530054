import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect, inject, it, onTestFinished } from 'vitest';
import { AccountPages, Accounts } from '../../src/features/accounts/accounts.service.ts';
import { type Database, openDatabase } from '../../src/platform/database/open-database.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { embeddedDatabase, type RealDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeEmbedded } from '../support/harness/in-turn.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { describeReal } from '../support/services/real.ts';

const DAY_US = 86_400_000_000n;
const FIRST_US = 1_767_225_600_000_000n;

function timeOf(us: bigint): string {
  const at = FIRST_US + us;
  return `${new Date(Number(at / 1_000n)).toISOString().slice(0, 19)}.${String(at % 1_000_000n).padStart(6, '0')}Z`;
}

function accountRow(nodeId: string, us: bigint, isDeleted = false) {
  const at = timeOf(us);
  const deleted_at = isDeleted ? at : null;
  return {
    id: randomUUID(),
    node_id: nodeId,
    name: 'A',
    type: 't',
    status: 1,
    created_at: at,
    updated_at: at,
    deleted_at,
  };
}

async function newNode({ db }: Database): Promise<string> {
  const id = randomUUID();
  await db.unscoped('test').run((k) => k.insertInto('nodes').values({ id, name: 'node' }));
  return id;
}

/** The plain list: what every page is measured against. */
async function plainList({ db }: Database, nodeId: string, includeDeleted: boolean): Promise<string[]> {
  const rows = await db.forNode(nodeId).run((k) =>
    k
      .selectFrom('accounts')
      .select('id')
      .$if(!includeDeleted, (query) => query.where('deleted_at', 'is', null))
      .orderBy('created_at')
      .orderBy('id'),
  );
  return rows.map(({ id }) => id);
}

/** Pages here and there, the first and the last among them, each as the plain list has it, with the total. */
async function expectPages(database: Database, nodeId: string, limit = 10): Promise<void> {
  const accounts = new Accounts(database.db);
  const pages = new AccountPages(database.db);
  for (const includeDeleted of [false, true]) {
    const list = await plainList(database, nodeId, includeDeleted);
    expect(await pages.count(nodeId, { includeDeleted })).toBe(list.length);
    const last = Math.max(1, Math.ceil(list.length / limit));
    const wanted = new Set([
      1,
      2,
      last - 1,
      last,
      last + 1,
      ...Array.from({ length: 12 }, (_, at) => Math.ceil((last * at) / 12)),
    ]);
    for (const page of wanted) {
      if (page < 1) continue;
      const { data, total } = await accounts.page({ nodeId, page, limit, includeDeleted });
      const expected = list.slice((page - 1) * limit, page * limit);
      expect([page, total, data.map(({ id }) => id)]).toEqual([page, list.length, expected]);
    }
  }
}

/** Each block's counts and the changes in its range are the rows of its range; none is over its size; superblocks too. */
async function expectSound({ db }: Database, nodeId: string): Promise<{ blocks: number; superblocks: number }> {
  const door = db.unscoped('test');
  const [sound] = await door.raw(
    (sql) => sql<{ blocks: number; superblocks: number; wrong: number; largest: number }>`
      with block as (
        select start_at, start_id, live, total,
          lead(start_at, 1, 'infinity') over w as end_at,
          lead(start_id, 1, 'ffffffff-ffff-ffff-ffff-ffffffffffff') over w as end_id
        from account_blocks where node_id = ${nodeId} window w as (order by start_at, start_id)
      ), counted as (
        select b.*, (select count(*) from accounts where node_id = ${nodeId} and (created_at, id) >= (b.start_at, b.start_id)
            and (created_at, id) < (b.end_at, b.end_id)) as rows,
          (select count(*) from accounts where node_id = ${nodeId} and (created_at, id) >= (b.start_at, b.start_id)
            and (created_at, id) < (b.end_at, b.end_id) and deleted_at is null) as live_rows,
          (select coalesce(sum(total), 0) from account_changes where node_id = ${nodeId}
            and (at, id) >= (b.start_at, b.start_id) and (at, id) < (b.end_at, b.end_id)) as pending,
          (select coalesce(sum(live), 0) from account_changes where node_id = ${nodeId}
            and (at, id) >= (b.start_at, b.start_id) and (at, id) < (b.end_at, b.end_id)) as live_pending
        from block b
      ), super as (
        select s.*, lead(start_at, 1, 'infinity') over w as end_at,
          lead(start_id, 1, 'ffffffff-ffff-ffff-ffff-ffffffffffff') over w as end_id
        from account_superblocks s where node_id = ${nodeId} window w as (order by start_at, start_id)
      ), super_counted as (
        select s.live, s.total, sum(b.live) as live_blocks, sum(b.total) as total_blocks
        from super s left join account_blocks b on b.node_id = ${nodeId} and (b.start_at, b.start_id) >= (s.start_at, s.start_id)
          and (b.start_at, b.start_id) < (s.end_at, s.end_id)
        group by s.start_at, s.start_id, s.live, s.total
      )
      select (select count(*) from block)::integer as blocks, (select count(*) from super)::integer as superblocks,
        (select count(*) from counted where rows <> total + pending or live_rows <> live + live_pending)::integer
          + (select count(*) from super_counted where live <> live_blocks or total <> total_blocks)::integer as wrong,
        (select coalesce(max(total), 0) from block)::integer as largest`,
  );
  expect(sound).toMatchObject({ wrong: 0 });
  expect(sound?.largest).toBeLessThanOrEqual(256);
  return { blocks: sound?.blocks ?? 0, superblocks: sound?.superblocks ?? 0 };
}

/** Inserts rows set-wise, by number: at some microsecond of the year each, as `at` says. */
async function insertMany({ db }: Database, nodeId: string, count: number, spreadUs: bigint): Promise<void> {
  await db.unscoped('test').raw(
    (sql) => sql`
      insert into accounts (id, node_id, name, type, status, created_at, updated_at, deleted_at)
      select gen_random_uuid(), ${nodeId}, 'A', 't', 1, at, at, case when n % 7 = 0 then at end
      from (select n, timestamptz '2026-01-01 00:00:00+00'
        + make_interval(secs => ((n::bigint * 7919) % ${spreadUs}::bigint)::double precision / 1000000) as at
        from generate_series(1, ${count}::integer) n) rows`,
  );
}

/** How many rows come in the last of three batches, where every page is looked at. */
const LAST = inject('isThorough') ? 2_299 : 899;
const RUNS = inject('isThorough') ? 8 : 2;
const ROUNDS = inject('isThorough') ? 12 : 5;

const SPREADS: [name: string, us: bigint][] = [
  ['at one instant', 1n],
  ['within some microseconds', 5n],
  ['spread over a year', 365n * DAY_US],
];

function countsSuite(open: () => Promise<Database>, spreads = SPREADS): void {
  const database = beforeTests(open);

  it('4.8-02 D5-01 D5-08: pages are correct for a node without accounts and for a node with one account', async () => {
    const nodeId = await newNode(database);
    await expectPages(database, nodeId);
    const { data, total } = await new Accounts(database.db).page({
      nodeId,
      page: 2 ** 40,
      limit: 100,
      includeDeleted: true,
    });
    expect([data, total]).toEqual([[], 0]);
    await database.db.unscoped('test').run((k) => k.insertInto('accounts').values(accountRow(nodeId, 0n)));
    await expectPages(database, nodeId);
  });

  it.each(spreads)(
    `4.8-02 D5-01: every page equals order by, offset and limit over ${701 + LAST} accounts %s`,
    async (_name, spread) => {
      const nodeId = await newNode(database);
      for (const count of [1, 700, LAST]) await insertMany(database, nodeId, count, spread);
      await expectPages(database, nodeId, 7);
      expect((await expectSound(database, nodeId)).blocks).toBeGreaterThan(6);
    },
  );

  it('4.8-02 D5-01: after any sequence of writes, rolled back ones included, pages equal the full ordered list', async () => {
    const operation = fc.record({
      kind: fc.constantFrom('insert', 'insert', 'insert', 'delete', 'restore', 'remove', 'move', 'upsert'),
      count: fc.integer({ min: 1, max: 400 }),
      us: fc.bigInt({ min: 0n, max: 40n }),
      isRolledBack: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 3, maxLength: 12 }), async (operations) => {
        const [nodeId, other] = [await newNode(database), await newNode(database)];
        const door = database.db.unscoped('test');
        const some = (count: number) =>
          door.raw(
            (sql) => sql<{ id: string }>`
          select id from accounts where node_id = ${nodeId} order by md5(id::text || ${count}) limit ${count}`,
          );
        for (const { kind, count, us, isRolledBack } of operations) {
          const work = async () => {
            const rows = Array.from({ length: count }, (_, at) =>
              accountRow(at % 5 === 0 ? other : nodeId, us, at % 9 === 0),
            );
            const ids = kind === 'insert' ? [] : (await some(count)).map(({ id }) => id);
            if (kind === 'insert') await door.run((k) => k.insertInto('accounts').values(rows));
            else if (kind === 'delete')
              await door.raw((sql) => sql`update accounts set deleted_at = now() where id = any(${ids}::uuid[])`);
            else if (kind === 'restore')
              await door.raw(
                (sql) => sql`update accounts set deleted_at = null, name = 'B' where id = any(${ids}::uuid[])`,
              );
            else if (kind === 'remove')
              await door.raw((sql) => sql`delete from accounts where id = any(${ids}::uuid[])`);
            else if (kind === 'move')
              await door.raw(
                (sql) => sql`update accounts set created_at = ${timeOf(us)} where id = any(${ids}::uuid[])`,
              );
            else {
              const taken = rows.map((row, at) => ({ ...row, node_id: nodeId, id: ids[at] ?? row.id }));
              await door.run((k) =>
                k
                  .insertInto('accounts')
                  .values(taken)
                  .onConflict((conflict) =>
                    conflict.column('id').doUpdateSet((eb) => ({
                      created_at: eb.ref('excluded.created_at'),
                      deleted_at: eb.ref('excluded.deleted_at'),
                    })),
                  ),
              );
            }
            if (isRolledBack) throw new RolledBack();
          };
          await database.db.transaction(work).catch((error: unknown) => {
            if (!(error instanceof RolledBack)) throw error;
          });
        }
        for (const node of [nodeId, other]) {
          await expectPages(database, node, 9);
          await expectSound(database, node);
        }
      }),
      { numRuns: RUNS },
    );
  });

  it('D5-01: superblocks are created from blocks as the number of blocks grows', async () => {
    const nodeId = await newNode(database);
    const door = database.db.unscoped('test');
    // As if the list had 600 blocks: 150,000 rows would be too many for a test of every day.
    await door.raw((sql) => sql`alter table account_blocks disable trigger account_blocks_split`);
    await door.raw(
      (sql) => sql`
      insert into account_blocks select ${nodeId}, case when n = 0 then '-infinity'::timestamptz
        else timestamptz '2020-01-01 00:00:00+00' + n * interval '1 hour' end, '00000000-0000-0000-0000-000000000000', 0, 0
      from generate_series(0, 600) n`,
    );
    await door.raw((sql) => sql`alter table account_blocks enable trigger account_blocks_split`);
    await insertMany(database, nodeId, 700, 10n);
    await expectPages(database, nodeId);
    const { superblocks, blocks } = await expectSound(database, nodeId);
    expect([superblocks, blocks]).toEqual([10, 606]);
  });
}

class RolledBack extends Error {}

describeEmbedded('the counts of accounts on the embedded database', () =>
  countsSuite(embeddedDatabase, inject('isThorough') ? SPREADS : SPREADS.slice(0, 1)),
);

describeReal('postgres', 'the counts of accounts on PostgreSQL', () => {
  countsSuite(realDatabase);

  const database = beforeTests(realDatabase);

  const insertion = (nodeId: string) => {
    const { id, created_at } = accountRow(nodeId, 5n);
    return `insert into accounts values ('${id}', '${nodeId}', 'A', 't', 1, '${created_at}', '${created_at}')`;
  };

  it('4.8-02: writers of one node do not wait for each other, and pages stay exact while they write', async () => {
    const nodeId = await newNode(database);
    await insertMany(database, nodeId, 1_000, DAY_US);
    await withPostgres(database.url, (one) =>
      withPostgres(database.url, async (two) => {
        for (const client of [one, two]) await client.query("set lock_timeout = '2s'");
        await one.query('begin');
        await one.query(insertion(nodeId));
        await two.query('begin');
        await two.query(insertion(nodeId));
        await two.query(
          `update accounts set deleted_at = now() where id = (select id from accounts where node_id = '${nodeId}' limit 1)`,
        );
        await expectPages(database, nodeId);
        await two.query('commit');
        const leftOver = 'select count(*)::integer as n from account_changes';
        expect((await two.query(leftOver)).rows).toEqual([{ n: 2 }]);
        await expectPages(database, nodeId);
        // The next writer that finds nobody else counts them too: here the one that counts anyway.
        await one.query(insertion(nodeId));
        await one.query('commit');
        expect((await two.query(leftOver)).rows).toEqual([{ n: 0 }]);
        await expectPages(database, nodeId);
        await expectSound(database, nodeId);
      }),
    );
    await expectPages(database, nodeId);
    await expectSound(database, nodeId);
  });

  it('4.8-02: rows written by a repeatable read transaction are counted, also next to a concurrent writer', async () => {
    const nodeId = await newNode(database);
    await withPostgres(database.url, async (client) => {
      await client.query('begin isolation level repeatable read');
      await client.query(insertion(nodeId));
      await database.db.unscoped('test').run((k) => k.insertInto('accounts').values(accountRow(nodeId, 9n)));
      await client.query(insertion(nodeId));
      await client.query('commit');
    });
    await expectPages(database, nodeId);
    await expectSound(database, nodeId);
  });

  it('4.8-02: eight concurrent writers, with batches large and small, leave exact pages', async () => {
    const nodeId = await newNode(database);
    const writer = async (number: number) => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const rows = Array.from({ length: 1 + ((number * 37 + round * 61) % 180) }, () =>
          accountRow(nodeId, BigInt(round % 4), round % 3 === 0),
        );
        await database.db.transaction(async () => {
          const door = database.db.unscoped('test');
          await door.run((k) => k.insertInto('accounts').values(rows));
          const ids = rows.slice(0, 20).map(({ id }) => id);
          if (round % 2 === 0)
            await door.run((k) =>
              k
                .updateTable('accounts')
                .set({ deleted_at: timeOf(9n) })
                .where('id', 'in', ids),
            );
          else await door.run((k) => k.deleteFrom('accounts').where('id', 'in', ids));
        });
      }
    };
    const reader = async () => {
      for (let round = 0; round < 20; round += 1) {
        // Total and list are of one snapshot only inside of a transaction of its own: here each must be possible.
        const { total } = await new Accounts(database.db).page({ nodeId, page: 1, limit: 1, includeDeleted: true });
        expect(total).toBeGreaterThanOrEqual(0);
      }
    };
    await Promise.all([...Array.from({ length: 8 }, (_, number) => writer(number)), reader()]);
    await expectPages(database, nodeId, 13);
    await expectSound(database, nodeId);
  });

  it('4.8-02: accounts that existed before the migration are counted after it', async () => {
    const old: RealDatabase = await realDatabase();
    onTestFinished(() => old[Symbol.asyncDispose]());
    const nodeId = await newNode(old);
    await insertMany(old, nodeId, 1_500, DAY_US);
    const door = old.db.unscoped('test');
    await door.raw((sql) => sql`drop table account_blocks, account_superblocks, account_changes`);
    for (const name of [
      'count_account_insert',
      'count_account_update',
      'count_account_delete',
      'forget_account_counts',
      'split_account_block',
    ]) {
      await door.raw((sql) => sql.raw(`drop function ${name} cascade`));
    }
    await door.raw((sql) => sql`drop function split_account_superblock`);
    const { Migration20261122AccountCounts } = await import('../../migrations/migration-20261122-account-counts.ts');
    const statements: string[] = [];
    Migration20261122AccountCounts.prototype.up.call({ addSql: (text: string) => void statements.push(text) } as never);
    await withPostgres(old.url, async (client) => {
      await client.query('begin');
      for (const statement of statements) await client.query(statement);
      await client.query('commit');
    });
    await using again = await openDatabase({ url: old.url });
    await expectPages(again, nodeId);
    expect((await expectSound(again, nodeId)).blocks).toBeGreaterThan(4);
  });
});

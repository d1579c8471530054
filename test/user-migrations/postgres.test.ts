import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import type { MigrateUserInput } from '../../src/features/user-migrations/migration.input.ts';
import { type AppliedMigration, UserMigrations } from '../../src/features/user-migrations/user-migrations.service.ts';
import { silentLog } from '../../src/lib/log.ts';
import type { Db } from '../../src/platform/database/database.ts';
import { openDatabase } from '../../src/platform/database/open-database.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';
import { steppedDb } from '../support/user-migrations/stepped-db.ts';

// Commits wait for disks, on machines that are busy with other tests.
const NODE = randomUUID();
const CALLER = { nodeId: NODE, subject: 'somebody', correlationId: 'c' };

describeReal('postgres', 'migrations on PostgreSQL', () => {
  const database = beforeTests(realDatabase);
  const replica = beforeTests(() => openDatabase({ url: database.url }));
  let logged: object[];

  beforeAll(async () => {
    const test = database.db.unscoped('test');
    await test.run((k) => k.insertInto('nodes').values({ id: NODE, name: 'Node' }));
    await test.raw(
      (sql) => sql`
        create function refuse_bad() returns trigger language plpgsql as $$
        begin
          if new.name like 'bad%' then raise exception 'secret text about %', new.email; end if;
          return new;
        end $$`,
    );
    await test.raw((sql) => sql`create trigger bad before insert on users for each row execute function refuse_bad()`);
  });

  const migrationsOn = (db: Db) => {
    logged = [];
    const log = { ...silentLog, error: (fields: object) => void logged.push(fields) };
    return new UserMigrations({ db, log, nowMs: Date.now, notify: () => undefined });
  };
  const user = (more: Partial<MigrateUserInput> = {}): MigrateUserInput => {
    const id = randomUUID();
    return { wallet_address: id, email: `${id}@x.y`, kyc_sent: false, ...more };
  };
  const statuses = ({ rows }: AppliedMigration) => rows.map(({ outcome }) => outcome.status);
  const usersOf = (rows: readonly MigrateUserInput[]) =>
    database.db.forNode(NODE).run((k) =>
      k
        .selectFrom('users')
        .select(['id', 'email'])
        .where(
          'address',
          'in',
          rows.map((row) => row.wallet_address),
        ),
    );
  const eventsOf = (ids: readonly string[]) =>
    database.db.unscoped('test').run((k) => k.selectFrom('outbox').select('key').where('key', 'in', ids));

  it('4.7-02: the number of statements is the same for 1 to 500 rows', async () => {
    const counts = [];
    for (const size of [1, 2, 100, 500]) {
      let statements = 0;
      const db = steppedDb(database.db, (what) => {
        if (what === 'statement') statements += 1;
      });
      const rows = Array.from({ length: size }, () => user());
      expect(await migrationsOn(db).migrateMany(CALLER, rows)).toMatchObject({ success: size });
      counts.push(statements);
    }
    expect(new Set(counts).size).toBe(1);
    expect(counts[0]).toBeLessThanOrEqual(7);
  });

  it('4.7-03 7.5-02: a row that the database rejects fails without its error text, and the other rows are created', async () => {
    const rows = Array.from({ length: 37 }, (_, index) => user([3, 4, 20, 36].includes(index) ? { name: 'bad' } : {}));
    const done = await migrationsOn(database.db).migrateMany(CALLER, rows);
    expect(done).toMatchObject({ total: 37, success: 33, skipped: 0, failed: 4 });
    expect(statuses(done).flatMap((status, index) => (status === 'failed' ? [index] : []))).toEqual([3, 4, 20, 36]);
    expect(done.rows[3]?.outcome).toEqual({ status: 'failed', reason: 'the row could not be stored' });
    const kept = await usersOf(rows);
    expect(kept).toHaveLength(33);
    expect(await eventsOf(kept.map(({ id }) => id))).toHaveLength(33);
    expect(logged).toHaveLength(4);
    expect(JSON.stringify(logged)).not.toMatch(/secret|@x\.y/);
    expect(logged[0]).toMatchObject({ sql_state: 'P0001', row: 4, correlation_id: 'c' });
  });

  it('D7-04: the identifiers of a failed row are free for later rows', async () => {
    const [first, second] = [user({ name: 'bad' }), user()];
    const rows = [
      first,
      user({ email: first.email, wallet_address: second.wallet_address }),
      second,
      user({ email: first.email }),
    ];
    const done = await migrationsOn(database.db).migrateMany(CALLER, rows);
    expect(done.rows.map(({ outcome }) => outcome)).toEqual([
      { status: 'failed', reason: 'the row could not be stored' },
      { status: 'created' },
      { status: 'skipped', reason: 'duplicate_wallet' },
      { status: 'skipped', reason: 'duplicate_email' },
    ]);
    expect(await usersOf(rows)).toHaveLength(1);
  });

  it('4.7-03: when the database rejects all rows, all are failed', async () => {
    const rows = Array.from({ length: 50 }, () => user({ name: 'bad' }));
    expect(await migrationsOn(database.db).migrateMany(CALLER, rows)).toMatchObject({ success: 0, failed: 50 });
  });

  it('7.4-05: a single user that the database rejects is an error, and nothing is written', async () => {
    const row = user({ name: 'bad' });
    await expect(migrationsOn(database.db).migrateOne(CALLER, row)).rejects.toThrow('secret');
    expect(await usersOf([row])).toEqual([]);
  });

  it('D7-03: a user inserted meanwhile by another process makes the row a duplicate', async () => {
    const rows = [user({ external_id: randomUUID() }), user({ external_id: randomUUID() }), user(), user()];
    const taken = [
      { email: rows[0]?.email?.toUpperCase() ?? '', external_id: null, address: randomUUID() },
      { email: '', external_id: rows[1]?.external_id ?? null, address: randomUUID() },
      { email: '', external_id: null, address: rows[2]?.wallet_address ?? '' },
    ];
    let statements = 0;
    // The ORM would join the transaction that it finds itself in.
    const outside = AsyncLocalStorage.snapshot();
    const db = steppedDb(database.db, async (what) => {
      if (what === 'statement') statements += 1;
      if (statements !== 4) return;
      const values = taken.map((row) => ({ ...row, id: randomUUID(), created_at: new Date().toISOString() }));
      await outside(() => replica.db.forNode(NODE).run((k) => k.insertInto('users').values(values)));
    });
    const done = await migrationsOn(db).migrateMany(CALLER, rows);
    expect(done.rows.map(({ outcome }) => outcome)).toEqual([
      { status: 'skipped', reason: 'duplicate_email' },
      { status: 'skipped', reason: 'duplicate_external_id' },
      { status: 'skipped', reason: 'duplicate_wallet' },
      { status: 'created' },
    ]);
  });

  it('D7-04 7.5-02: twenty concurrent requests with the same users, on two replicas, create each user once', async () => {
    const rows = Array.from({ length: 60 }, () => user());
    const replicas = [migrationsOn(database.db), migrationsOn(replica.db)];
    const requests = Array.from({ length: 20 }, (_, index) => {
      const migrations = replicas[index % 2] ?? replicas[0];
      const shuffled = rows.toSorted(() => Math.random() - 0.5);
      return migrations?.exclusively(NODE, () => migrations.migrateMany(CALLER, shuffled));
    });
    const done = (await Promise.all(requests)).filter((migration) => migration !== undefined);
    expect(done.reduce((sum, { success }) => sum + success, 0)).toBe(60);
    expect(done.reduce((sum, { skipped }) => sum + skipped, 0)).toBe(19 * 60);
    const reasons = new Set(done.flatMap((migration) => migration.rows.map(({ outcome }) => JSON.stringify(outcome))));
    expect([...reasons].sort()).toEqual(['{"status":"created"}', '{"status":"skipped","reason":"duplicate_email"}']);
    const kept = await usersOf(rows);
    expect(kept).toHaveLength(60);
    expect(await eventsOf(kept.map(({ id }) => id))).toHaveLength(60);
  });
});

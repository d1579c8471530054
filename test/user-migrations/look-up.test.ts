import { beforeAll, expect, it } from 'vitest';
import { UserStore } from '../../src/features/users/users.service.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';
import { newNode } from '../support/user-migrations/files-fixture.ts';

const USERS = 5_000;
const ROWS = 500;

describeReal('postgres', 'the look-up of duplicates', () => {
  const database = beforeTests(realDatabase);
  beforeAll(async () => {
    await database.db.unscoped('test').raw((sql) => sql`alter table users set (autovacuum_enabled = off)`);
  });

  const addUsers = async () => {
    const { nodeId } = await newNode(database.db);
    await database.db.unscoped('test').raw(
      (sql) => sql`
        insert into users (id, node_id, external_id, name, surname, email, address, created_at)
        select gen_random_uuid(), ${nodeId}::uuid, 'e-' || n, '', '', 'User-' || n || '@x.y', '0x' || n, now()
        from generate_series(1, ${USERS}::integer) n`,
    );
    return nodeId;
  };
  const analyze = () => database.db.unscoped('test').raw((sql) => sql`analyze users`);
  /** Rows of users that this transaction has read so far. */
  const read = async () => {
    const [row] = await database.db.unscoped('test').raw(
      (sql) => sql<{ read: number }>`
        select (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as read from pg_stat_xact_user_tables
        where relname = 'users'`,
    );
    return row?.read ?? 0;
  };

  it.each([
    ['that do not exist', async () => undefined, async () => undefined],
    ['older than the users of the node', async () => void (await addUsers().then(analyze)), async () => undefined],
    ['that are fresh', async () => undefined, async () => void (await analyze())],
  ])('4.7-02: reads at most three rows per input row, with statistics %s', async (_name, before, after) => {
    await before();
    const nodeId = await addUsers();
    await after();
    const store = new UserStore(database.db);
    const rows = Array.from({ length: ROWS }, (_, at) => ({
      email: `user-${at * 20}@x.y`,
      externalId: `e-${at * 30}`,
      address: `0x${at * 40}`,
    }));
    await database.db.transaction(async () => {
      await store.lock(nodeId);
      const from = await read();
      const found = await store.owners(nodeId, rows);
      const number = (name: 'email' | 'externalId' | 'address') => found.filter((row) => row[name]).length;
      expect([number('email'), number('externalId'), number('address')]).toEqual([250, 166, 125]);
      expect((await read()) - from).toBeLessThanOrEqual(3 * ROWS);
    });
  });
});

import { afterAll, beforeAll, expect, it } from 'vitest';
import { type RealDatabase, realDatabase } from '../harness/databases.ts';
import { withPostgres } from '../services/pg-client.ts';
import { describeReal, serviceAddress } from '../services/real.ts';

/** More than the pool has connections. */
const DEATHS = 12;

describeReal('postgres', 'connections that die inside of transactions', () => {
  let database: RealDatabase;
  beforeAll(async () => {
    database = await realDatabase();
  });
  afterAll(() => database[Symbol.asyncDispose]());

  it('they leave the pool, which has all of its connections for whoever comes after', async () => {
    const door = database.db.unscoped('test');
    const session = () => door.raw((sql) => sql<{ pid: number }>`select pg_backend_pid() as pid`);
    for (let death = 0; death < DEATHS; death += 1) {
      const cut = database.db.transaction(async () => {
        const [row] = await session();
        await withPostgres(serviceAddress('postgres'), (client) =>
          client.query(`select pg_terminate_backend(${row?.pid})`),
        );
        await session();
      });
      await expect(cut).rejects.toThrow();
    }
    const ids = await Promise.all(Array.from({ length: 10 }, () => database.db.transaction(session)));
    expect(ids).toHaveLength(10);
  });
});

import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';

/** More than the pool has connections. */
const DEATHS = 12;

const TERMINATE = `
  const { Client } = require('pg');
  const [url, pid] = process.argv.slice(1);
  const client = new Client({ connectionString: url });
  client.connect().then(() => client.query('select pg_terminate_backend($1, 5000)', [pid])).then(() => client.end());
`;

/** Terminates a session while this process hears of nothing: its event loop stands still. */
function terminateUnheard(pid: number): void {
  execFileSync(process.execPath, ['-e', TERMINATE, serviceAddress('postgres'), String(pid)]);
}

describeReal('postgres', 'connections that PostgreSQL terminates', () => {
  const database = beforeTests(realDatabase);

  const session = () => database.db.unscoped('test').raw((sql) => sql<{ pid: number }>`select pg_backend_pid() as pid`);

  async function expectWholePool(): Promise<void> {
    const ids = await Promise.all(Array.from({ length: 10 }, () => database.db.transaction(session)));
    expect(ids).toHaveLength(10);
  }

  it('a connection terminated inside a transaction is removed from the pool, which can then open all connections again', async () => {
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
    await expectWholePool();
  });

  it('a connection terminated unnoticed fails the next transaction, and is removed from the pool', async () => {
    for (let death = 0; death < DEATHS; death += 1) {
      const [row] = await session();
      terminateUnheard(row?.pid ?? 0);
      await expect(database.db.transaction(session)).rejects.toThrow(/terminat/);
    }
    await expectWholePool();
  });
});

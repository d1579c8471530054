import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { openDatabase } from '../../src/platform/database/open-database.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';

describeReal('postgres', 'closing a database', () => {
  const empty = beforeTests(realDatabase);

  it('D1-13: a statement whose connection is still opening is answered, and its connection is closed with the others', async () => {
    const { db, [Symbol.asyncDispose]: close } = await openDatabase({ url: empty.url });
    const begun = db.unscoped('test').raw((sql) => sql<{ one: number }>`select 1 as one`);
    // It has asked for a connection, which takes more than one turn to open.
    await turn();
    await close();
    await expect(begun).resolves.toEqual([{ one: 1 }]);
    const { rows } = await withPostgres(serviceAddress('postgres'), (client) =>
      client.query('select state, query from pg_stat_activity where datname = $1', [
        new URL(empty.url).pathname.slice(1),
      ]),
    );
    expect(rows).toEqual([]);
  });
});

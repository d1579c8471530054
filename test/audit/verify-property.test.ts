import fc from 'fast-check';
import { expect, inject, it } from 'vitest';
import { verified } from '../support/audit/chain-fixture.ts';
import { history, live, tampering } from '../support/audit/chain-history.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';

const RUNS = inject('isThorough') ? 400 : 6;

describeReal('postgres', 'audit verify', () => {
  it('reports nothing for any history, and something for each altered one', async () => {
    await using database = await realDatabase();
    const raw = (statement: string) => database.db.unscoped('test').raw((sql) => sql<object>`${sql.raw(statement)}`);
    await fc.assert(
      fc.asyncProperty(history, fc.array(tampering, { minLength: 1, maxLength: 5 }), async (steps, tamperings) => {
        await live(database, steps);
        await raw('drop table if exists kept_records, kept_seals');
        await raw('create table kept_records as select * from audit_records');
        await raw('create table kept_seals as select * from audit_seals');
        for (const { statement, n } of tamperings) {
          await raw(statement.replaceAll('$n', String(n)));
          expect((await verified(database.db)).findingCount, `${statement} ${n}`).toBeGreaterThan(0);
          await raw('truncate audit_records, audit_seals');
          await raw('insert into audit_records select * from kept_records');
          await raw('insert into audit_seals select * from kept_seals');
          expect((await verified(database.db)).findings).toEqual([]);
        }
      }),
      { numRuns: RUNS },
    );
  });
});

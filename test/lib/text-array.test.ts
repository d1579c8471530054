import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Database } from '../../src/platform/database/open-database.ts';
import { textArray } from '../../src/platform/database/row-sets.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { embeddedDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';

const texts = fc.array(
  fc.option(fc.string({ unit: fc.constantFrom('a', '"', '\\', ',', '{', '}', ' ', '\n', 'é', '😀', 'NULL', "'") })),
  { maxLength: 20 },
);

async function expectSame(database: Database): Promise<void> {
  const door = database.db.unscoped('test');
  await fc.assert(
    fc.asyncProperty(texts, async (values) => {
      const rows = await door.raw(
        (sql) => sql<{ value: string | null }>`select value from unnest(${textArray(values)}::text[]) as u (value)`,
      );
      expect(rows.map(({ value }) => value)).toEqual(values);
    }),
    { numRuns: 60 },
  );
}

it('an array of any texts passes through the embedded database unchanged', async () => {
  await using database = await embeddedDatabase();
  await expectSame(database);
});

describeReal('postgres', 'on PostgreSQL', () => {
  const database = beforeTests(realDatabase);

  it('an array of any texts passes through unchanged', () => expectSame(database));
});

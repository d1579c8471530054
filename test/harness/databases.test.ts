import { describe, expect, it } from 'vitest';
import type { Database } from '../../src/platform/database/open-database.ts';
import { pendingSchemaMigrations } from '../../src/platform/database/schema-migrations.ts';
import { embeddedDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';

async function topicsAfterWriting({ db }: Database, topic: string): Promise<string[]> {
  const door = db.unscoped('test');
  await door.raw((text) => text`insert into bus_offsets (group_id, topic, position) values ('g', ${topic}, 0)`);
  const rows = await door.raw<{ topic: string }>((text) => text`select topic from bus_offsets`);
  return rows.map((row) => row.topic);
}

async function areMigratedAndApart(create: () => Promise<Database>): Promise<void> {
  const [one, two] = await Promise.all([create(), create()]);
  try {
    expect(await pendingSchemaMigrations(one)).toEqual([]);
    expect(await topicsAfterWriting(one, 'first')).toEqual(['first']);
    expect(await topicsAfterWriting(two, 'second')).toEqual(['second']);
  } finally {
    await Promise.all([one[Symbol.asyncDispose](), two[Symbol.asyncDispose]()]);
  }
}

describe('an embedded database for tests', () => {
  it('is migrated and isolated from every other test database', () => areMigratedAndApart(embeddedDatabase));
});

describeReal('postgres', 'a real database for tests', () => {
  it('is migrated and isolated from every other test database', () => areMigratedAndApart(realDatabase));
});

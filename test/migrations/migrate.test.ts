import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { type Database, type DatabaseLocation, openDatabase } from '../../src/platform/database/open-database.ts';
import { migrate, pendingSchemaMigrations } from '../../src/platform/database/schema-migrations.ts';
import { embeddedDatabase } from '../support/harness/databases.ts';
import { freshDatabase } from '../support/services/isolation.ts';
import { describeReal } from '../support/services/real.ts';

async function open(location: DatabaseLocation): Promise<Database> {
  const database = await openDatabase(location);
  onTestFinished(() => database[Symbol.asyncDispose]());
  return database;
}

async function migratesOnce(database: Database): Promise<void> {
  const all = await pendingSchemaMigrations(database);
  expect(all.length).toBeGreaterThan(0);
  expect(await migrate(database)).toEqual(all);
  expect(await pendingSchemaMigrations(database)).toEqual([]);
  expect(await migrate(database)).toEqual([]);
}

/** In a quick run test/start/new-cluster.test.ts knows that the committed cluster is of every migration. */
describe.runIf(inject('isThorough'))('migrating the embedded database', () => {
  it('migrates an empty database to the newest schema, and then finds nothing to do', async () => {
    const database = await embeddedDatabase();
    onTestFinished(() => database[Symbol.asyncDispose]());
    const door = database.db.unscoped('test');
    await door.raw((text) => text`drop schema public cascade`);
    await door.raw((text) => text`create schema public`);
    await migratesOnce(database);
  });
});

describeReal('postgres', 'migrating PostgreSQL', () => {
  it('migrates an empty database to the newest schema, and then finds nothing to do', async () => {
    const fresh = await freshDatabase();
    onTestFinished(() => fresh.drop());
    await migratesOnce(await open(fresh));
  });

  it('of several concurrent processes one migrates, and the others find nothing to do', async () => {
    const fresh = await freshDatabase();
    onTestFinished(() => fresh.drop());
    const databases = [await open(fresh), await open(fresh), await open(fresh)];
    const [first] = databases;
    const all = first ? await pendingSchemaMigrations(first) : [];
    const told: object[] = [];
    const done = await Promise.all(
      databases.map((database) => migrate(database, { onMigration: (step) => told.push(step) })),
    );
    expect(done.toSorted((a, b) => b.length - a.length)).toEqual([all, [], []]);
    expect(told).toEqual(all.map((name, index) => ({ name, done: index, total: all.length })));
  });
});

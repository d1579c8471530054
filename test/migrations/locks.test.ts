import { randomBytes } from 'node:crypto';
import { Migrator } from '@mikro-orm/migrations';
import { expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../src/platform/database/open-database.ts';
import { migrate } from '../../src/platform/database/schema-migrations.ts';
import { freshDatabase } from '../support/services/isolation.ts';
import { connectPostgres } from '../support/services/pg-client.ts';
import { describeReal } from '../support/services/real.ts';

/** The newest migration of 0.1.0. */
const RELEASED = 'migration-20261127-outbox-traces';

/** Notes the locks on tables of 0.1.0 that a transaction has after each of its statements that change the schema. */
const NOTE_LOCKS = [
  `create table used_tables as select oid from pg_class
    where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace`,
  'create table noted_locks (at bigserial, transaction xid8, "table" regclass, mode text)',
  `create function note_locks() returns event_trigger language plpgsql as $$
    begin
      insert into public.noted_locks (transaction, "table", mode)
      select pg_current_xact_id(), relation::regclass, mode from pg_locks
      where pid = pg_backend_pid() and relation in (select oid from public.used_tables);
    end $$`,
  'create event trigger note_locks on ddl_command_end execute function note_locks()',
];

/** A lock that stops writers, and a later one for which those must end that have read, and wait for the first. */
const RAISED = `select distinct later."table"::text from noted_locks first join noted_locks later using (transaction, "table")
  where first.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock') and later.mode = 'AccessExclusiveLock'
    and not exists (
      select from noted_locks earlier where earlier.transaction = first.transaction and earlier."table" = first."table"
        and earlier.mode = later.mode and earlier.at <= first.at)`;

/** A database of the schema of 0.1.0, and a client of it. */
async function released() {
  const fresh = await freshDatabase();
  onTestFinished(() => fresh.drop());
  const database = await openDatabase(fresh);
  onTestFinished(() => database[Symbol.asyncDispose]());
  const { em } = await database.openOrm();
  const migrator = new Migrator(em);
  await migrator.up({ to: RELEASED });
  const client = await connectPostgres(fresh.url);
  onTestFinished(() => client.end());
  return { database, migrator, client };
}

describeReal('postgres', 'schema migrations since 0.1.0', () => {
  it('D1-13: none raises its lock on a table, which writers that wait for it would make a deadlock', async () => {
    const { database, client } = await released();
    for (const statement of NOTE_LOCKS) await client.query(statement);
    await migrate(database);
    const { rows } = await client.query('select count(distinct "table")::integer as tables from noted_locks');
    expect(rows[0]?.tables).toBeGreaterThan(15);
    expect((await client.query(RAISED)).rows).toEqual([]);
  });

  it('D7-11: keep a transaction whose hash is too long for an index, and build an index again whose build was interrupted', async () => {
    const { database, migrator, client } = await released();
    const hash = randomBytes(20_000).toString('hex');
    await client.query(`
      insert into nodes (id, name) values (gen_random_uuid(), 'n');
      insert into transaction_ids (id) values ('t');
      insert into transactions (id, node_id, collection, registered_type, registered_by, type, transaction_hash)
      select 't', id, 'user_transactions', 1, 'topic', 1, '${hash}' from nodes`);
    await migrator.up({ to: 'migration-20261129110000-unlocked' });
    const index = `indexrelid = 'transactions_by_hash_start'::regclass`;
    await client.query(`update pg_index set indisvalid = false where ${index}`);
    await migrate(database);
    const { rows } = await client.query(
      `select transaction_hash as hash, indisvalid as valid from transactions, pg_index where ${index}`,
    );
    expect(rows).toEqual([{ hash, valid: true }]);
  });
});

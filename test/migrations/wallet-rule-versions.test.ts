import { randomUUID } from 'node:crypto';
import { Migrator } from '@mikro-orm/migrations';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { type Database, openDatabase } from '../../src/platform/database/open-database.ts';
import { migrate, pendingSchemaMigrations } from '../../src/platform/database/schema-migrations.ts';
import { embeddedDatabase } from '../support/harness/databases.ts';
import { freshDatabase } from '../support/services/isolation.ts';
import { type PostgresClient, withPostgres } from '../support/services/pg-client.ts';
import { describeReal } from '../support/services/real.ts';
import { newestOf, versionsOf } from '../support/wallet-rules/versions.ts';

const MIGRATION = 'migration-20261127-version-0-2';
const BEFORE = 'migration-20261127-outbox-traces';
const UNKNOWN = { subject: null, client_id: null, correlation_id: null };

/** Empties a database and brings it to the schema before the migration, with a wallet; gives the id of its node. */
async function asBefore(database: Database): Promise<{ nodeId: string; walletId: string }> {
  const door = database.db.unscoped('test');
  await door.raw((sql) => sql`drop schema public cascade`);
  await door.raw((sql) => sql`create schema public`);
  const { em } = await database.openOrm();
  await new Migrator(em).up({ to: BEFORE });
  expect(await pendingSchemaMigrations(database)).toContain(MIGRATION);
  const [nodeId, walletId, accountId, chainId] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
  await door.raw((sql) => sql`insert into nodes (id, name) values (${nodeId}, 'n')`);
  await door.raw((sql) => sql`insert into chains (id, name) values (${chainId}, 'c')`);
  await door.raw(
    (sql) => sql`insert into accounts (id, node_id, name, type, status, created_at, updated_at)
      values (${accountId}, ${nodeId}, 'a', 't', 1, now(), now())`,
  );
  await door.raw(
    (sql) => sql`insert into wallets (id, node_id, account_id, chain_id, created_at, updated_at)
      values (${walletId}, ${nodeId}, ${accountId}, ${chainId}, now(), now())`,
  );
  return { nodeId, walletId };
}

/** Adds a rule as 0.1.0 does, with a version that it has come to since. */
async function addRule({ db }: Database, node: { nodeId: string; walletId: string }, version: number): Promise<string> {
  const id = randomUUID();
  const logic = JSON.stringify({
    type: 'auto',
    amount: '1.50',
    target_wallet_id: id,
    rule_logic: { not: { field: 'f' } },
  });
  await db.unscoped('test').raw(
    (
      sql,
    ) => sql`insert into wallet_rules (id, node_id, wallet_id, name, type, network_id, network_currency_id, priority,
        auto_transfer_rule, sign_and_approve_rule, status, version, created_at, updated_at)
      values (${id}, ${node.nodeId}, ${node.walletId}, 'of before', 'auto_transfer', ${id}, ${id}, 7, ${logic}::jsonb,
        '{"min_user_count": 2}', 'disabled', ${version}, '2026-01-01T00:00:00Z', '2026-02-03T04:05:06.789012Z')`,
  );
  return id;
}

async function keepsWhatIsThere(database: Database): Promise<void> {
  const node = await asBefore(database);
  const ids = [await addRule(database, node, 1), await addRule(database, node, 5)];
  await migrate(database);
  for (const [index, id] of ids.entries()) {
    const kept = await versionsOf(database, id);
    expect(kept).toEqual([{ ...(await newestOf(database, id)), ...UNKNOWN }]);
    expect(kept[0]).toMatchObject({ version: [1, 5][index], at: '2026-02-03 04:05:06.789012+00', status: 'disabled' });
  }
}

/** Resolves once something waits for a lock of the server. */
async function untilSomethingWaits(client: PostgresClient): Promise<void> {
  for (;;) {
    const { rows } = await client.query(
      `select 1 from pg_locks where not granted and relation = 'wallet_rules'::regclass`,
    );
    if (rows.length > 0) return;
  }
}

/** PGlite is PostgreSQL: in a quick run that alone migrates rows. */
describe.runIf(inject('isThorough'))('migrating the embedded database', () => {
  it('D5-09: stores the current content of each rule as its first version, with its own time and an unknown author', async () => {
    const database = await embeddedDatabase();
    onTestFinished(() => database[Symbol.asyncDispose]());
    await keepsWhatIsThere(database);
  });
});

describeReal('postgres', 'migrating PostgreSQL', () => {
  const opened = async () => {
    const fresh = await freshDatabase();
    onTestFinished(() => fresh.drop());
    const database = await openDatabase(fresh);
    onTestFinished(() => database[Symbol.asyncDispose]());
    return { database, url: fresh.url };
  };

  it('D5-09: stores the current content of each rule as its first version, with its own time and an unknown author', async () => {
    await keepsWhatIsThere((await opened()).database);
  });

  it('D5-09: waits for an open write of 0.1.0 and stores its result; later writes of 0.1.0 create versions', async () => {
    const { database, url } = await opened();
    const id = await addRule(database, await asBefore(database), 1);
    await withPostgres(url, async (old) => {
      const change = (name: string) =>
        old.query(
          `update wallet_rules set name = '${name}', version = version + 1, updated_at = now() where id = '${id}'`,
        );
      await old.query('begin');
      await change('under way');
      const migrated = migrate(database);
      await withPostgres(url, untilSomethingWaits);
      await old.query('commit');
      await migrated;
      await change('by 0.1.0');
    });
    expect(await versionsOf(database, id)).toMatchObject([
      { version: 2, name: 'under way', ...UNKNOWN },
      { version: 3, name: 'by 0.1.0', ...UNKNOWN },
    ]);
  });
});

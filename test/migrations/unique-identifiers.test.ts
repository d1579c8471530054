import { randomUUID } from 'node:crypto';
import { Migrator } from '@mikro-orm/migrations';
import { expect, it, onTestFinished } from 'vitest';
import { Supervisors } from '../../src/access/supervisors/supervisors.service.ts';
import { renameUser } from '../../src/features/users/users.service.ts';
import { type Database, openDatabase } from '../../src/platform/database/open-database.ts';
import { migrate, pendingSchemaMigrations } from '../../src/platform/database/schema-migrations.ts';
import { portcullis } from '../support/cli/in-process.ts';
import { freshDatabase } from '../support/services/isolation.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { describeReal } from '../support/services/real.ts';

const BEFORE = 'migration-20261127-version-0-2';
const INDEXES = ['supervisors_username_key', 'users_email_key'];

/** A database of the schema before the keys, with a node. */
async function before() {
  const fresh = await freshDatabase();
  onTestFinished(() => fresh.drop());
  const database = await openDatabase(fresh);
  onTestFinished(() => database[Symbol.asyncDispose]());
  const { em } = await database.openOrm();
  await new Migrator(em).up({ to: BEFORE });
  const nodeId = randomUUID();
  const door = database.db.unscoped('test');
  await door.raw((sql) => sql`insert into nodes (id, name) values (${nodeId}, 'n')`);
  return { database, nodeId, url: fresh.url };
}

async function addUser({ db }: Database, nodeId: string, email: string): Promise<string> {
  const id = randomUUID();
  await db
    .unscoped('test')
    .raw((sql) => sql`insert into users (id, node_id, email, address) values (${id}, ${nodeId}, ${email}, ${id})`);
  return id;
}

async function addSupervisor({ db }: Database, nodeId: string, username: string): Promise<string> {
  const id = randomUUID();
  await db.unscoped('test').raw(
    (sql) => sql`insert into supervisors (id, node_id, username, password_hash, role)
      values (${id}, ${nodeId}, ${username}, '', 'viewer')`,
  );
  return id;
}

function indexes({ db }: Database): Promise<{ name: string; valid: boolean }[]> {
  return db.unscoped('test').raw(
    (sql) => sql`select c.relname as name, i.indisvalid as valid from pg_index i join pg_class c on c.oid = i.indexrelid
      where c.relname = any(${INDEXES}) order by 1`,
  );
}

const BUILT = INDEXES.map((name) => ({ name, valid: true }));

describeReal('postgres', 'users and supervisors of 0.1.0 whose identifiers have the same key', () => {
  it('D7-11 D3-35: are listed before the upgrade, remain, and block new duplicates; a rename resolves them', async () => {
    const { database, nodeId, url } = await before();
    const other = await addUser(database, nodeId, 'other@x.y');
    const users = [];
    for (const email of ['ΝΊΚΟΣ@x.gr', 'νίκος@x.gr', 'νίκοσ@x.gr ']) users.push(await addUser(database, nodeId, email));
    const supervisors = [];
    for (const name of ['bob', 'bob ', '\u200bbob']) supervisors.push(await addSupervisor(database, nodeId, name));
    const listed = {
      clashes: [
        { kind: 'user', node_id: nodeId, ids: users },
        { kind: 'supervisor', node_id: nodeId, ids: supervisors },
      ],
    };
    const run = (...args: string[]) => portcullis([...args, '--json'], { DATABASE_URL: url });
    const list = async () => JSON.parse((await run('clashes')).out);
    expect(await list()).toEqual(listed);
    await migrate(database);
    expect(await indexes(database)).toEqual(BUILT);
    expect(await list()).toEqual(listed);
    // 0.1.0 inserts as `addUser` does.
    await expect(addUser(database, nodeId, 'ΝΊ\u00adΚΟΣ@x.gr')).rejects.toMatchObject({
      constraint: 'users_email_key',
    });
    await expect(addSupervisor(database, nodeId, 'BOB\u00ad')).rejects.toMatchObject({
      constraint: 'supervisors_username_key',
    });
    const find = async (name: string) =>
      (await new Supervisors(database.db).findByUsername(nodeId, name))?.supervisorId;
    expect(await Promise.all(['bob', 'bob ', '\u200bbob', 'Bob'].map(find))).toEqual([...supervisors, undefined]);

    const renamed = await run('users', 'rename', users[0] ?? '', '--email', ' Nikos@x.gr ');
    expect(JSON.parse(renamed.out)).toEqual({ id: users[0], email: 'Nikos@x.gr' });
    // The next one keeps new ones out.
    await expect(addUser(database, nodeId, 'ΝΊ\u00adΚΟΣ@x.gr')).rejects.toMatchObject({
      constraint: 'users_email_key',
    });
    await expect(renameUser(database.db, nodeId, other, 'ΝΊΚΟΣ@x.gr')).rejects.toMatchObject({ code: 'duplicate' });
    await run('users', 'rename', users[1] ?? '', '--email', 'n2@x.gr');
    await expect(addUser(database, nodeId, 'ΝΊ\u00adΚΟΣ@x.gr')).rejects.toMatchObject({
      constraint: 'users_email_key',
    });
    for (const [at, id] of supervisors.slice(0, 2).entries()) {
      const answer = await run('supervisor', 'rename', id, '--username', ` bob-${at} `);
      expect(JSON.parse(answer.out)).toMatchObject({ id, username: `bob-${at}` });
      await expect(addSupervisor(database, nodeId, 'BOB')).rejects.toMatchObject({
        constraint: 'supervisors_username_key',
      });
    }
    const taken = await run('supervisor', 'rename', supervisors[0] ?? '', '--username', 'BOB-1');
    expect(taken).toMatchObject({ code: 1, err: expect.stringContaining('the username is taken') });
    expect(await list()).toEqual({ clashes: [] });
    expect(await find('BOB')).toBe(supervisors[2]);
  });

  it('D7-11: an interrupted index build is repaired by the next migrate', async () => {
    const { database, nodeId } = await before();
    await addUser(database, nodeId, 'ς@x.y');
    const { em } = await database.openOrm();
    await new Migrator(em).up({ to: 'migration-20261128-identifier-keys' });
    await addUser(database, nodeId, 'σ@x.y');
    const build = database.db
      .unscoped('test')
      .raw((sql) => sql`create unique index concurrently users_email_key on users (node_id, identifier_key(email))`);
    await expect(build).rejects.toThrow();
    expect(await indexes(database)).toEqual([{ name: 'users_email_key', valid: false }]);
    expect((await pendingSchemaMigrations(database))[0]).toBe('migration-20261128-unique-identifiers');
    await migrate(database);
    expect(await indexes(database)).toEqual(BUILT);
  });

  it('D7-11: the index build waits for open transactions of 0.1.0, and a concurrent migrate does not deadlock with it', async () => {
    const { database, nodeId, url } = await before();
    const second = await openDatabase({ url });
    onTestFinished(() => second[Symbol.asyncDispose]());
    const { em } = await database.openOrm();
    await new Migrator(em).up({ to: 'migration-20261128-identifier-keys' });
    await addUser(database, nodeId, 'ς@x.y');
    await withPostgres(url, async (old) => {
      await old.query('begin');
      const id = randomUUID();
      await old.query(
        `insert into users (id, node_id, email, address) values ('${id}', '${nodeId}', 'σ@x.y', '${id}')`,
      );
      const both = Promise.all([migrate(database), migrate(second)]);
      await withPostgres(url, async (client) => {
        for (;;) {
          const { rows } = await client.query(`select 1 from pg_locks where not granted`);
          if (rows.length > 0) return;
        }
      });
      await old.query('commit');
      const [ran, none] = (await both).toSorted((a, b) => b.length - a.length);
      expect([ran?.[0], none]).toEqual(['migration-20261128-unique-identifiers', []]);
    });
    expect(await indexes(database)).toEqual(BUILT);
    await expect(addUser(database, nodeId, 'Σ\u00ad@x.y')).rejects.toMatchObject({ constraint: 'users_email_key' });
  });

  it('D3-17: a lockout that is active during the upgrade applies to the key of the username afterwards', async () => {
    const { database, nodeId } = await before();
    const door = database.db.unscoped('test');
    await door.raw(
      (sql) => sql`insert into login_failures (id, node_id, username, failed_at)
        select gen_random_uuid(), ${nodeId}, 'γιαννης', now() from generate_series(1, 5)`,
    );
    await migrate(database);
    expect(await door.raw((sql) => sql`select distinct username from login_failures`)).toEqual([
      { username: 'γιαννησ' },
    ]);
  });
});

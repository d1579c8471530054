import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { AuditRetention } from '../../src/audit/audit-retention.ts';
import { type Database, openDatabase } from '../../src/platform/database/database.ts';
import { sealsIn } from '../harness/audit-seals.ts';
import { migrateWith, type TwoRoles, twoRoles } from '../harness/database-roles.ts';
import { type PostgresClient, withPostgres } from '../services/pg-client.ts';
import { describeReal } from '../services/real.ts';

const DENIED = /permission denied|must be owner/;
const TABLES = [
  'audit_records',
  'audit_records_default',
  'audit_records_2026_11',
  'audit_seals',
  'mikro_orm_migrations',
];

/** What nobody may do with a table by the role of services. */
const CHANGES: Record<string, (table: string) => string> = {
  update: (table) => `update ${table} set ${COLUMN[table]} = ${COLUMN[table]}`,
  delete: (table) => `delete from ${table}`,
  'lock a row': (table) => `select 1 from ${table} for update`,
  truncate: (table) => `truncate ${table}`,
  drop: (table) => `drop table ${table}`,
  'add a column': (table) => `alter table ${table} add column more text`,
  'disable triggers': (table) => `alter table ${table} disable trigger all`,
  'add a trigger': (table) =>
    `create trigger t before insert on ${table} for each row execute function suppress_redundant_updates_trigger()`,
  'add a rule': (table) => `create rule r as on insert to ${table} do instead nothing`,
  'lock all': (table) => `begin; lock table ${table} in access exclusive mode`,
  'own it': (table) => `alter table ${table} owner to current_user`,
  comment: (table) => `comment on table ${table} is null`,
};
const COLUMN: Record<string, string> = {
  audit_records: 'path',
  audit_records_default: 'path',
  audit_records_2026_11: 'path',
  audit_seals: 'body',
  mikro_orm_migrations: 'name',
};

const STATEMENTS = [
  ...TABLES.flatMap((table) =>
    Object.entries(CHANGES).map(([what, statement]) => ({ what: `${what}: ${table}`, statement: statement(table) })),
  ),
  ...['audit_seals', 'mikro_orm_migrations', 'audit_records_2026_11'].map((table) => ({
    what: `insert: ${table}`,
    statement: `insert into ${table} select * from ${table} limit 0`,
  })),
  { what: 'detach a month', statement: 'alter table audit_records detach partition audit_records_2026_11' },
  { what: 'make a table', statement: 'create table audit_seals_2 (a int)' },
  {
    what: 'make a function',
    statement: "create function encode(bytea, text) returns text language sql as 'select null::text'",
  },
  {
    what: 'make an operator',
    statement: 'create operator = (leftarg = uuid, rightarg = uuid, function = uuid_eq)',
  },
  { what: 'make a type', statement: 'create type audit_record as (a int)' },
  {
    what: 'replace a function of the audit',
    statement: "create or replace function audit_seal(seal json) returns void language sql as 'select'",
  },
  { what: 'drop a function of the audit', statement: 'drop function audit_seal(json)' },
  { what: 'change a function of the audit', statement: 'alter function audit_seal(json) security invoker' },
  { what: 'drop the schema', statement: 'drop schema public cascade' },
  { what: 'act as the owner', statement: 'set role OWNER' },
  { what: 'be the owner', statement: 'set session authorization OWNER' },
  { what: 'join the owner', statement: 'grant OWNER to current_user' },
  { what: 'turn triggers off', statement: "set session_replication_role = 'replica'" },
  { what: 'change the settings of the database', statement: "alter database SERVICE set search_path = 'x'" },
  { what: 'change the settings of the owner', statement: "alter role OWNER set search_path = 'x'" },
];

describeReal('postgres', 'the role of services', () => {
  let roles: TwoRoles;
  let owned: Database;
  let served: Database;
  beforeAll(async () => {
    roles = await twoRoles();
    await migrateWith(roles);
    owned = await openDatabase({ url: roles.owner });
    served = await openDatabase({ url: roles.service });
    await withPostgres(roles.service, (client) => client.query("select audit_make_month('2026-11-01')"));
  });
  afterAll(async () => {
    await owned[Symbol.asyncDispose]();
    await served[Symbol.asyncDispose]();
    await roles[Symbol.asyncDispose]();
  });

  let id: string;
  beforeEach(async () => {
    id = randomUUID();
    await served.db.unscoped('test').raw((sql) => sql([record(id)] as unknown as TemplateStringsArray));
  });

  const names = (statement: string) =>
    statement.replaceAll('OWNER', roles.names.owner).replaceAll('SERVICE', roles.names.service);

  /** All records and seals and who may do what with tables, as the owner finds it. */
  async function found(): Promise<{ records: object[]; seals: object[]; rights: object[] }> {
    const door = owned.db.unscoped('test');
    return {
      records: await door.raw((sql) => sql<object>`select * from audit_records order by at, id`),
      seals: await door.raw((sql) => sql<object>`select * from audit_seals order by position`),
      rights: await door.raw(
        (sql) => sql<object>`
          select relname, relacl::text from pg_class where relnamespace = 'public'::regnamespace order by 1`,
      ),
    };
  }

  it.each(STATEMENTS)('may not $what', async ({ statement }) => {
    const before = await found();
    await withPostgres(roles.service, async (client) => {
      await expect(client.query(names(statement))).rejects.toThrow(DENIED);
    });
    expect(await found()).toEqual(before);
  });

  it.each(TABLES)('can pass on no right to change %s', async (table) => {
    const before = await found();
    await withPostgres(roles.service, async (client) => {
      // PostgreSQL takes a grant of what one does not have for none at all, where one has another right.
      await client.query(`grant update, delete, truncate on ${table} to public`).catch((error: unknown) => {
        expect(String(error)).toMatch(DENIED);
      });
    });
    expect(await found()).toEqual(before);
  });

  const next = `(select coalesce(max(position), 0) + 1 from audit_seals)`;
  const sealed = (position: string) =>
    `json_build_object('position', ${position}, 'kind', 'dropped', 'body', json_build_object('position', ${position})::text)`;
  const SEALS: Record<string, string> = {
    'no seal': 'null',
    'a null of JSON': "'null'",
    'an empty seal': "'{}'",
    'a number': "'1'",
    'a list': "'[]'",
    'a seal whose position exists': sealed('1'),
    'a seal whose position leaves a gap': sealed(`${next} + 1`),
    'a seal before the first': sealed('0'),
    'a body of another position': `json_build_object('position', ${next}, 'kind', 'dropped', 'body', '{"position":1}')`,
    'a body that is no JSON': `json_build_object('position', ${next}, 'kind', 'dropped', 'body', 'x')`,
    'no body': `json_build_object('position', ${next}, 'kind', 'dropped')`,
    'no kind': `json_build_object('position', ${next}, 'body', json_build_object('position', ${next})::text)`,
  };
  const CALLS: Record<string, (seal: string) => string> = {
    audit_seal: (seal) => `select audit_seal(${seal})`,
    audit_erase: (seal) =>
      `select audit_erase((select json_agg(json_build_object('at', at, 'id', id)) from audit_records), ${seal})`,
    audit_delete: (seal) =>
      `select audit_delete('infinity', '${'f'.repeat(8)}-ffff-ffff-ffff-${'f'.repeat(12)}', ${seal})`,
    audit_drop_month: (seal) => `select audit_drop_month('audit_records_2026_11', ${seal})`,
  };
  const PAIRS = Object.entries(CALLS).flatMap(([name, call]) =>
    Object.entries(SEALS).map(([what, seal]) => ({ name, what, statement: call(`(${seal})::json`) })),
  );

  it.each(PAIRS)('$name does nothing with $what', async ({ statement }) => {
    await addSeal();
    const before = await found();
    await withPostgres(roles.service, async (client) => {
      await expect(client.query(statement)).rejects.toThrow(
        /no seal at the position|null value|json|cannot call populate_composite/,
      );
    });
    expect(await found()).toEqual(before);
  });

  it.each([
    ['a table of another kind', "'accounts'"],
    ['the table itself', "'audit_records'"],
    ['the default partition', "'audit_records_default'"],
    ['the seals', "'audit_seals'"],
    ['a month that is not there', "'audit_records_1999_01'"],
    ['a month of a schema', "'public.audit_records_2026_11'"],
    ['more than a name', "'audit_records_2026_11; drop table accounts'"],
    ['null', 'null'],
  ])('audit_drop_month drops a month alone: %s', async (_what, name) => {
    const before = await found();
    await withPostgres(roles.service, async (client) => {
      await expect(client.query(`select audit_drop_month(${name}, ${sealed(next)})`)).rejects.toThrow(/is no month of/);
    });
    expect(await found()).toEqual(before);
  });

  it.each([...TABLES, 'audit_records_2026_12'])(
    'a temporary %s, a path of its own, and a cast or an operator of it, are not what the functions use',
    async (table) => {
      await withPostgres(roles.service, async (client) => {
        await shadow(client, table.replace(/_(?:default|\d.*)$/, ''), table);
        const { rows } = await client.query(`select position from public.audit_seals order by position desc limit 1`);
        const position = Number(rows[0]?.position ?? 0) + 1;
        const seal = JSON.stringify({ position, kind: 'erased', body: JSON.stringify({ position }) });
        const [row] = (await client.query(`select * from public.audit_records where id = '${id}'`)).rows;
        await client.query('select public.audit_erase($1, $2)', [JSON.stringify([{ ...row, path: '***' }]), seal]);
        const deleted = { position: position + 1, kind: 'dropped', body: JSON.stringify({ position: position + 1 }) };
        await client.query('select public.audit_delete($1, $2, $3)', [row?.at, row?.id, JSON.stringify(deleted)]);
        await client.query("select public.audit_make_month('2026-12-01')");
        const { records, seals } = await found();
        expect(seals.slice(-2)).toMatchObject([
          { position: `${position}`, kind: 'erased' },
          { position: `${position + 1}`, kind: 'dropped' },
        ]);
        expect(records).not.toContainEqual(expect.objectContaining({ id }));
        expect((await client.query(`select * from pg_temp.${table}`)).rows).toEqual([]);
      });
      const months = await owned.db
        .unscoped('test')
        .raw((sql) => sql`select relid::regclass::text as name from pg_partition_tree('audit_records')`);
      expect(months).toContainEqual({ name: 'audit_records_2026_12' });
    },
  );

  it('what deletes by the functions leaves a seal, whoever calls them', async () => {
    const { seals } = await found();
    const retention = new AuditRetention({
      db: served.db,
      seals: sealsIn(served.db),
      nowMs: () => Date.parse('2031-01-01T00:00:00Z'),
      retentionDays: 90,
    });
    await retention.keep();
    const after = await found();
    expect(after.records).toEqual([]);
    const added = after.seals.slice(seals.length);
    expect(added.length).toBeGreaterThan(0);
    expect(added).toEqual(added.map(() => expect.objectContaining({ kind: 'dropped' })));
    const months = await owned.db
      .unscoped('test')
      .raw(
        (sql) => sql<{ name: string }>`select relid::regclass::text as name from pg_partition_tree('audit_records')`,
      );
    expect(months.map(({ name }) => name)).not.toContain('audit_records_2026_11');
    expect(months.map(({ name }) => name)).toContain('audit_records_2031_03');
  });

  async function addSeal(): Promise<void> {
    await sealsIn(served.db).add({ kind: 'opened', chain: randomUUID() });
  }
});

function record(id: string): string {
  return `insert into audit_records (at, id, correlation_id, method, path, status_code, elapsed, headers, remote_address,
      real_ip, request_bytes, response_bytes, is_api)
    values ('2026-11-20T12:00:00Z', '${id}', 'c', 'GET', '/', 200, 1, '{}', '::1', '::1', 0, 0, false)`;
}

/** Puts temporary things of a session before those of the schema. */
async function shadow(client: PostgresClient, like: string, table: string): Promise<void> {
  await client.query(`create temporary table ${table} (like public.${like})`);
  await client.query(`create function pg_temp.uuid_eq(uuid, uuid) returns boolean language sql as 'select false'`);
  await client.query('create operator pg_temp.= (leftarg = uuid, rightarg = uuid, function = pg_temp.uuid_eq)');
  await client.query(`create function pg_temp.audit_seal(json) returns void language sql as 'select'`);
  await client.query('create type pg_temp.audit_records_row as (a int)');
  await client.query('set search_path = pg_temp, pg_catalog, public');
}

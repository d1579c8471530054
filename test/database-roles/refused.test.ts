import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { CHAIN_FORMAT } from '../../src/audit/audit-record.ts';
import { AuditRetention, setAuditRetention } from '../../src/audit/audit-retention.ts';
import { type Database, openDatabase } from '../../src/platform/database/open-database.ts';
import { eraseCall } from '../support/audit/chain-fixture.ts';
import { sealsIn } from '../support/harness/audit-seals.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { migrateWith, twoRoles } from '../support/harness/database-roles.ts';
import { connectPostgres, type PostgresClient, withPostgres } from '../support/services/pg-client.ts';
import { describeReal } from '../support/services/real.ts';

const DENIED = /permission denied|must be owner/;
const TABLES = [
  'audit_records',
  'audit_records_default',
  'audit_records_2026_11',
  'audit_seals',
  'mikro_orm_migrations',
  'wallet_rule_versions',
  'activity',
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
  wallet_rule_versions: 'subject',
  activity: 'subject',
};

const STATEMENTS = [
  ...TABLES.flatMap((table) =>
    Object.entries(CHANGES).map(([what, statement]) => ({ what: `${what}: ${table}`, statement: statement(table) })),
  ),
  ...['audit_seals', 'mikro_orm_migrations', 'audit_records_2026_11', 'wallet_rule_versions', 'activity'].map(
    (table) => ({
      what: `insert: ${table}`,
      statement: `insert into ${table} select * from ${table} limit 0`,
    }),
  ),
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

describeReal('postgres', 'the service role', () => {
  const roles = beforeTests(twoRoles);
  /** For statements that leave nothing of themselves in their session. */
  const session = beforeTests(() => connectPostgres(roles.service));
  const owner = beforeTests(() => connectPostgres(roles.owner));
  let owned: Database;
  let served: Database;
  beforeAll(async () => {
    await migrateWith(roles);
    owned = await openDatabase({ url: roles.owner });
    served = await openDatabase({ url: roles.service });
    await withPostgres(roles.service, (client) =>
      client.query("select audit_make_month('2026-11-01'), audit_make_month('2025-01-01')"),
    );
  });
  afterAll(async () => {
    await owned[Symbol.asyncDispose]();
    await served[Symbol.asyncDispose]();
  });

  let id: string;
  beforeEach(async () => {
    id = randomUUID();
    await served.db.unscoped('test').raw((sql) => sql([record(id)] as unknown as TemplateStringsArray));
  });

  /** Expects that a statement of the service fails and changes nothing. */
  async function expectRefused(statement: string, error: RegExp | string): Promise<void> {
    const before = await found();
    await expect(session.query(statement)).rejects.toThrow(error);
    await session.query('rollback');
    expect(await found()).toEqual(before);
  }

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
    await expectRefused(names(statement), DENIED);
  });

  it.each(TABLES)('cannot grant a right to change %s to others', async (table) => {
    const before = await found();
    await withPostgres(roles.service, async (client) => {
      // PostgreSQL takes a grant of what one does not have for none at all, where one has another right.
      await client.query(`grant update, delete, truncate on ${table} to public`).catch((error: unknown) => {
        expect(String(error)).toMatch(DENIED);
      });
    });
    expect(await found()).toEqual(before);
  });

  /** A body of a seal that comes next, as SQL. */
  const bodyOf = (more: object) => `(select json_build_object(
      'position', coalesce(max(position), 0) + 1, 'at', '2026-11-20T12:00:00.000Z', 'key', null,
      'previous', coalesce((select encode(sha256(convert_to(body || chr(10) || coalesce(encode(signature, 'hex'), ''), 'UTF8')), 'hex')
        from audit_seals order by position desc limit 1), repeat('0', 64)))::jsonb || '${JSON.stringify(more)}'
    from audit_seals)`;
  const sealOf = (more: object, row: object = {}) => {
    const { kind, chain } = { kind: 'dropped', chain: null, ...more } as Record<string, unknown>;
    return `(select json_build_object('position', body->'position', 'kind', '${kind}', 'chain_id', ${
      chain ? `'${chain}'` : 'null'
    }, 'body', body::text)::jsonb || '${JSON.stringify(row)}' from (select ${bodyOf({ kind, ...more })} as body) b)::json`;
  };
  const CHAIN = 'cccccccc-0000-7000-8000-000000000001';
  const CHECKPOINT = { kind: 'checkpoint', chain: CHAIN, index: 1, spooled: 1, hash: 'a'.repeat(64) };
  const DROPPED = { kind: 'dropped', before: '2026-01-01T00:00:00.000Z', ranges: [], unchained: 0 };
  const SEALS: Record<string, string> = {
    'no seal': 'null::json',
    'a JSON null': "'null'::json",
    'an empty seal': "'{}'::json",
    'a list': "'[]'::json",
    'a position that exists': sealOf({ ...DROPPED, position: 1 }, { position: 1 }),
    'a position that leaves a gap': sealOf({ ...DROPPED, position: 1e6 }, { position: 1e6 }),
    'a position before the first': sealOf({ ...DROPPED, position: 0 }, { position: 0 }),
    'a body of another position': sealOf({ ...DROPPED, position: 1e6 }),
    'a body of another kind': sealOf(DROPPED, { kind: 'closed' }),
    'a body that is not JSON': sealOf(DROPPED, { body: 'x' }),
    'no body': sealOf(DROPPED, { body: null }),
    'no kind': sealOf(DROPPED, { kind: null }),
    'an unknown kind': sealOf({ kind: 'unheard-of' }),
    'a hash other than that of the previous seal': sealOf({ ...DROPPED, previous: 'b'.repeat(64) }),
    'an invalid time': sealOf({ ...DROPPED, at: 'yesterday' }),
    'an invalid key': sealOf({ ...DROPPED, key: {} }),
  };
  const MALFORMED: Record<string, string> = {
    'a word where a number belongs': sealOf({ ...CHECKPOINT, spooled: 'many' }),
    'a fraction': sealOf({ ...CHECKPOINT, index: 1.5 }),
    'no number': sealOf({ ...CHECKPOINT, index: undefined }),
    'an invalid hash': sealOf({ ...CHECKPOINT, hash: 'x' }),
    'a chain that differs from its row': sealOf(CHECKPOINT, { chain_id: CHAIN.replace('1', '2') }),
    'no chain': sealOf({ kind: 'opened' }),
    'a gap with an unknown reason': sealOf({ kind: 'gap', chain: CHAIN, from: 1, to: 2, reason: 'why' }),
    'no user': sealOf({ kind: 'erasure', user: 5 }),
    'a drop that drops nothing': sealOf(DROPPED),
    'a very long body': sealOf({ ...CHECKPOINT, more: 'x'.repeat(1_000) }),
  };
  const CALLS: Record<string, (seal: string) => string> = {
    audit_seal: (seal) => `select audit_seal(${seal})`,
    audit_delete: (seal) => `select audit_delete('2025-01-01', '${CHAIN}', ${seal})`,
    audit_drop_month: (seal) => `select audit_drop_month('audit_records_2025_01', ${seal})`,
  };
  const PAIRS = [
    ...Object.entries(CALLS).flatMap(([name, call]) =>
      Object.entries(SEALS).map(([what, seal]) => ({ name, what, statement: call(seal) })),
    ),
    ...Object.entries(MALFORMED).map(([what, seal]) => ({
      ...{ name: 'audit_seal', what, statement: `select audit_seal(${seal})` },
    })),
  ];

  it.each(PAIRS)('$name changes nothing if called with $what', async ({ statement }) => {
    await addSeal();
    await expectRefused(statement, /no seal at the position|null value|json|cannot call populate_composite|not-null/);
  });

  it.each([
    ['a table of another kind', "'accounts'"],
    ['the table itself', "'audit_records'"],
    ['the default partition', "'audit_records_default'"],
    ['the seals', "'audit_seals'"],
    ['a month without a partition', "'audit_records_1999_01'"],
    ['a month with a schema name', "'public.audit_records_2026_11'"],
    ['a name followed by a statement', "'audit_records_2026_11; drop table accounts'"],
    ['null', 'null'],
  ])('audit_drop_month drops only a month: %s', async (_what, name) => {
    await expectRefused(`select audit_drop_month(${name}, ${sealOf(DROPPED)})`, /is no month of/);
  });

  it('audit_seal accepts the seals that a service adds', async () => {
    await withPostgres(roles.service, (client) => client.query(`select audit_seal(${sealOf(CHECKPOINT)})`));
    expect((await found()).seals.at(-1)).toMatchObject({ kind: 'checkpoint', chain_id: CHAIN });
  });

  it.each([
    ['audit_delete', `select audit_delete(now() - interval '89 days', '${CHAIN}', ${sealOf(DROPPED)})`],
    ['audit_delete, of all', `select audit_delete('infinity', '${CHAIN}', ${sealOf(DROPPED)})`],
    ['audit_delete, of a null time', `select audit_delete(null, '${CHAIN}', ${sealOf(DROPPED)})`],
    ['audit_drop_month', `select audit_drop_month('audit_records_2026_11', ${sealOf(DROPPED)})`],
  ])('D7-10: %s rejects records younger than the retention', async (_what, statement) => {
    await expectRefused(statement, 'audit records are kept for 90 days');
  });

  it.each(['AAA+167BBB-167,M10.1.0/0,M3.1.0/0', 'AAA-167BBB+167,M3.1.0/0,M10.1.0/0'])(
    'D7-10: no session time zone shortens the retention: %s',
    async (zone) => {
      await asOwner(record(randomUUID(), new Date(Date.now() - 89 * 24 * 3_600_000).toISOString()));
      const before = await found();
      await withPostgres(roles.service, async (client) => {
        await client.query(`set timezone = '${zone}'`);
        const seal = sealOf({ ...DROPPED, before: '2026-01-01T00:00:00.000Z', unchained: 1 });
        await expect(
          client.query(`select audit_delete(now() - interval '${88 * 24} hours', '${CHAIN}', ${seal})`),
        ).rejects.toThrow('audit records are kept for 90 days');
      });
      expect(await found()).toEqual(before);
      await asOwner('truncate audit_records');
    },
  );

  it.each([
    ['the greatest number', ['9223372036854775807']],
    ['the least number', ['-9223372036854775808']],
    ['a negative number', ['-5', '-4']],
    ['no number', ['null', 'null']],
    ['the same number', ['7', '7', '8']],
  ])('records added by somebody with %s as their index do not stop the retention', async (_what, indices) => {
    await asOwner('truncate audit_records');
    for (const index of indices) {
      await asOwner(
        `${record(randomUUID(), '2025-01-01T12:00:00Z')}; update audit_records set chain_id = '${CHAIN}', chain_index = ${index} where chain_id is null`,
      );
    }
    await new AuditRetention({
      ...{ db: served.db, seals: sealsIn(served.db), nowMs: Date.now, retentionDays: 90 },
    }).enforce();
    expect((await found()).records).toEqual([]);
  });

  it.each([
    ['fewer records', { unchained: 0 }],
    ['more records', { unchained: 1, ranges: [{ chain: CHAIN, from: 0, to: 0 }] }],
    ['a cutoff that is younger than the retention', { unchained: 1, before: '2099-01-01T00:00:00.000Z' }],
    ['a range of nothing', { unchained: 1, ranges: [{ chain: CHAIN, from: 1, to: 0 }] }],
    ['a range without an end', { unchained: 1, ranges: [{ chain: CHAIN, from: 1 }] }],
    ['other records, made up for by a negative number', { unchained: -4, ranges: [{ chain: CHAIN, from: 0, to: 4 }] }],
    ['a very long body', { unchained: 1, more: 'x'.repeat(1_200) }],
  ])('D7-10: audit_delete rejects a seal of %s than it deletes', async (_what, more) => {
    await asOwner(record(randomUUID(), '2025-01-01T12:00:00Z'));
    const seal = sealOf({ ...DROPPED, ...more });
    await expectRefused(
      `select audit_delete('2025-02-01', '${CHAIN}', ${seal})`,
      /dropped records|are kept for 90 days/,
    );
    await asOwner("delete from audit_records where at < '2025-02-01'");
  });

  it.each([...TABLES.slice(0, 4), 'users'])(
    'the functions ignore a temporary %s, a search_path, and a cast or an operator of the caller',
    async (table) => {
      const user = randomUUID();
      await asOwner(`insert into nodes (id, name) values ('${user}', 'n');
        insert into users (id, node_id, address) values ('${user}', '${user}', 'a')`);
      const noted = record(randomUUID(), '2025-03-01T12:00:00Z', `'${user}', array['${user}']::uuid[], '{}'`);
      await asOwner(noted);
      await withPostgres(roles.service, async (client) => {
        await shadow(client, table.replace(/_(?:default|\d.*)$/, ''), table);
        const erased = await client.query(`select ${eraseCall(user)} as count`);
        expect(erased.rows).toEqual([{ count: 1 }]);
        const seal = sealOf({ ...DROPPED, unchained: 1 }).replaceAll('from audit_seals', 'from public.audit_seals');
        await client.query(`select public.audit_delete('2025-04-01', '${CHAIN}', ${seal})`);
        await client.query("select public.audit_make_month('2026-12-01')");
        const { records, seals } = await found();
        expect(seals.at(-1)).toMatchObject({ kind: 'dropped' });
        expect(records).not.toContainEqual(expect.objectContaining({ node_id: user }));
        expect((await client.query(`select * from pg_temp.${table}`)).rows).toEqual([]);
      });
    },
  );

  it('D7-10: audit_erase changes only records of the tenant of the user', async () => {
    const [one, other] = [randomUUID(), randomUUID()];
    await asOwner(`insert into nodes (id, name) values ('${one}', 'n'), ('${other}', 'n');
      insert into users (id, node_id, address) values ('${one}', '${one}', 'a')`);
    for (const node of [one, other, null]) {
      await asOwner(
        record(randomUUID(), '2026-11-20T12:00:00Z', `${node && `'${node}'`}, array['${one}']::uuid[], 'body'`),
      );
    }
    await withPostgres(roles.service, (client) => client.query(`select ${eraseCall(one)}, ${eraseCall(other)}`));
    const { records } = await found();
    const left = records.flatMap((row) => ('request_body' in row && row.request_body === 'body' ? [row] : []));
    expect(left.map((row) => ('node_id' in row ? row.node_id : ''))).toEqual(expect.arrayContaining([other, null]));
    expect(left).toHaveLength(2);
  });

  it('the retention in force is the longer one of the service and the owner', async () => {
    await asOwner('truncate audit_records');
    const ago = (count: number) => new Date(Date.now() - count * 24 * 3_600_000).toISOString();
    for (const age of [10, 50, 100]) await asOwner(record(randomUUID(), ago(age)));
    const left = async (retentionDays: number, days: number) => {
      await setAuditRetention(days === 0 ? served.db : owned.db, days);
      await new AuditRetention({ db: served.db, seals: sealsIn(served.db), nowMs: Date.now, retentionDays }).enforce();
      return (await found()).records.length;
    };
    expect(await left(1, 0)).toBe(2);
    expect(await left(60, 30)).toBe(2);
    expect(await left(20, 30)).toBe(1);
    await setAuditRetention(owned.db, 90);
  });

  /** Runs statements as the owner of the tables. */
  const asOwner = (statements: string) => owner.query(statements);

  async function addSeal(): Promise<void> {
    await sealsIn(served.db).add({ kind: 'opened', chain: randomUUID(), format: CHAIN_FORMAT });
  }
});

function record(id: string, at = '2026-11-20T12:00:00Z', more = 'null, null, null'): string {
  return `insert into audit_records (at, id, correlation_id, method, path, status_code, elapsed, headers, remote_address,
      real_ip, request_bytes, response_bytes, is_api, node_id, noted_users, request_body)
    values ('${at}', '${id}', 'c', 'GET', '/', 200, 1, '{}', '::1', '::1', 0, 0, false, ${more})`;
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

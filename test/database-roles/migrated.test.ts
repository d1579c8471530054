import { beforeAll, expect, it } from 'vitest';
import { ConfigError } from '../../src/platform/config/config.ts';
import { openDatabase } from '../../src/platform/database/open-database.ts';
import { migrate } from '../../src/platform/database/schema-migrations.ts';
import { portcullis } from '../support/cli/in-process.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { migrateWith, type TwoRoles, twoRoles } from '../support/harness/database-roles.ts';
import { freshDatabase } from '../support/services/isolation.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { describeReal } from '../support/services/real.ts';

const RIGHTS = ['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger'];

/** What the role of services may do, on each table and each function of the audit. */
function rightsOf({ service }: TwoRoles): Promise<Record<string, string>> {
  return withPostgres(service, async (client) => {
    const { rows } = await client.query(
      `select relname as name, (
         select string_agg(r, ' ' order by place) from unnest($1::text[]) with ordinality as rights (r, place)
         where has_table_privilege(oid, r)) as rights
       from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
       union all
       select proname, case when has_function_privilege(oid, 'execute') then 'execute' end
       from pg_proc where pronamespace = 'public'::regnamespace and prosecdef`,
      [RIGHTS],
    );
    return Object.fromEntries(rows.map(({ name, rights }) => [String(name), String(rights)]));
  });
}

const ROWS = 'select insert update delete';
const FUNCTIONS = ['audit_seal', 'audit_erase', 'audit_delete', 'audit_drop_month', 'audit_make_month'];
const APART = {
  audit_records: 'select insert',
  audit_records_default: 'null',
  audit_seals: 'select',
  mikro_orm_migrations: 'select',
  wallet_rule_versions: 'select',
  activity: 'select',
  keep_activity: 'null',
  keep_wallet_rule_version: 'null',
  ...Object.fromEntries(FUNCTIONS.map((name) => [name, 'execute'])),
};

/** A database of the owner that the release before has migrated, which knew one role. */
async function oldDatabase(): Promise<TwoRoles> {
  const roles = await twoRoles();
  await using database = await openDatabase({ url: roles.owner });
  await migrate(database);
  return roles;
}

describeReal('postgres', 'migrating with two roles', () => {
  it('the service role can only insert and read audit records, also on an existing database', async () => {
    for (const made of [twoRoles, oldDatabase]) {
      await using roles = await made();
      expect(await migrateWith(roles)).toEqual({ name: roles.names.service });
      const rights = await rightsOf(roles);
      expect(rights).toMatchObject(APART);
      const others = Object.keys(rights).filter((name) => !(name in APART));
      expect(others).toEqual(expect.arrayContaining(['accounts', 'transactions', 'outbox', 'users']));
      expect(Object.fromEntries(others.map((name) => [name, rights[name]]))).toEqual(
        Object.fromEntries(others.map((name) => [name, ROWS])),
      );
      expect(await migrateWith(roles)).toEqual({ name: roles.names.service });
      expect(await rightsOf(roles)).toEqual(rights);
    }
  });

  it('later months and tables get the grants of their kind; manual grants on audit records and seals are revoked', async () => {
    await using roles = await twoRoles();
    await migrateWith(roles);
    await withPostgres(roles.service, (client) => client.query("select audit_make_month('2031-04-01')"));
    await withPostgres(roles.owner, (client) =>
      client.query('create table later (id int generated always as identity)'),
    );
    await migrateWith(roles);
    expect(await rightsOf(roles)).toMatchObject({ ...APART, audit_records_2031_04: 'null', later: ROWS });
    await withPostgres(roles.service, (client) => client.query('insert into later default values'));
    await withPostgres(roles.owner, (client) =>
      client.query(
        `grant all on audit_records, audit_records_default, audit_seals, mikro_orm_migrations to "${roles.names.service}";
         grant update (path) on audit_records to "${roles.names.service}"`,
      ),
    );
    await migrateWith(roles);
    expect(await rightsOf(roles)).toMatchObject(APART);
    await expect(
      withPostgres(roles.service, (client) => client.query("update audit_records set path = ''")),
    ).rejects.toThrow('permission denied');
  });

  it('two concurrent runs grant once, and return the same', async () => {
    await using roles = await twoRoles();
    const done = await Promise.all([migrateWith(roles), migrateWith(roles)]);
    expect(done).toEqual([done[0], done[0]]);
    expect(await rightsOf(roles)).toMatchObject(APART);
  });
});

interface Fault {
  name: string;
  /** What the addresses become. */
  urls?: (roles: TwoRoles) => Partial<TwoRoles>;
  /** What changes the roles, and what ends that. */
  statements?: (roles: TwoRoles['names']) => readonly [change: string, back: string];
  says: RegExp;
}

const OWNS = /the role \S+ of DATABASE_URL owns the database or its tables, or can act as their owner: use another/;

const FAULTS: Fault[] = [
  {
    name: 'both are the owner',
    urls: ({ owner }) => ({ service: owner }),
    says: OWNS,
  },
  {
    name: 'the service role is a superuser',
    statements: ({ service }) => [`alter role ${service} superuser`, `alter role ${service} nosuperuser`],
    says: OWNS,
  },
  {
    name: 'the service role is a member of the owner, without inheriting',
    statements: ({ owner, service }) => [
      `grant ${owner} to ${service} with inherit false`,
      `revoke ${owner} from ${service}`,
    ],
    says: OWNS,
  },
  {
    name: 'the service role owns the database',
    statements: ({ owner, service }) => [
      `alter database ${service} owner to ${service}`,
      `alter database ${service} owner to ${owner}`,
    ],
    says: OWNS,
  },
  {
    name: 'the service role may create objects in the schema',
    statements: () => ['grant create on schema public to public', 'revoke create on schema public from public'],
    says: /the role \S+ of DATABASE_URL may create in the schema public: revoke create on schema public from it and from public/,
  },
  {
    name: 'the service role does not exist',
    urls: ({ service }) => ({ service: Object.assign(new URL(service), { username: 'nobody' }).href }),
    says: /the role nobody of DATABASE_URL does not exist: create it, see docs\/operations\/database-roles.md/,
  },
  {
    name: 'the role that migrates does not own the tables',
    statements: ({ owner }) => [
      'alter table audit_records owner to current_user',
      `alter table audit_records owner to ${owner}`,
    ],
    says: /the role \S+ of MIGRATE_DATABASE_URL does not own the tables: use \S+, which does/,
  },
];

describeReal('postgres', 'inconsistent database URLs', () => {
  const roles = beforeTests(twoRoles);
  beforeAll(async () => {
    await migrateWith(roles);
  });

  it.each(FAULTS)('$name: nothing is migrated or granted, and the error says what to change', async (fault) => {
    const before = await grantsIn(roles);
    const [change, back] = fault.statements?.(roles.names) ?? ['select 1', 'select 1'];
    await withPostgres(roles.server, (client) => client.query(change));
    try {
      const told = migrateWith({ ...roles, ...fault.urls?.(roles) });
      await expect(told).rejects.toThrow(ConfigError);
      await expect(told).rejects.toThrow(fault.says);
      expect(await grantsIn(roles)).toBe(before);
    } finally {
      await withPostgres(roles.server, (client) => client.query(back));
    }
    expect(await migrateWith(roles)).toHaveProperty('name');
  });

  it('different databases are detected, whatever their addresses are', async () => {
    await using other = await freshDatabase();
    await expect(migrateWith({ owner: other.url, service: roles.service })).rejects.toThrow(
      'MIGRATE_DATABASE_URL must name the same database as DATABASE_URL',
    );
    const renamed = Object.assign(new URL(roles.owner), { hostname: 'localhost' }).href;
    expect(await migrateWith({ ...roles, owner: renamed })).toHaveProperty('name');
  });

  it.each([
    ['DATABASE_URL', 'MIGRATE_DATABASE_URL'],
    ['MIGRATE_DATABASE_URL', 'DATABASE_URL'],
  ])('a wrong password in %s is reported for that variable', async (wrong, right) => {
    const urls = { DATABASE_URL: roles.service, MIGRATE_DATABASE_URL: roles.owner };
    const bad = Object.assign(new URL(urls[wrong as keyof typeof urls]), { password: 'wrong' }).href;
    const { code, err } = await portcullis(['migrate'], { ...urls, [wrong]: bad });
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringMatching(
        new RegExp(`^portcullis: the database at \\S+ cannot be used: the server rejects the password of ${wrong}\\n$`),
      ),
    });
    expect(right).not.toBe(wrong);
  });
});

/** Who may do what with audit records. */
function grantsIn({ server }: TwoRoles): Promise<string> {
  return withPostgres(server, async (client) => {
    const { rows } = await client.query(
      `select relname, relacl::text, obj_description(oid, 'pg_class') as comment from pg_class
       where relname in ('audit_seals', 'accounts') order by 1`,
    );
    return JSON.stringify(rows);
  });
}

describeReal('postgres', 'portcullis migrate', () => {
  it('D1-12: prints the grants that it made, as text and as JSON', async () => {
    await using fresh = await twoRoles();
    await using old = await oldDatabase();
    const env = ({ owner, service }: TwoRoles) => ({ DATABASE_URL: service, MIGRATE_DATABASE_URL: owner });
    const name = fresh.names.service;
    const first = await portcullis(['migrate', '--json'], env(fresh));
    expect(JSON.parse(first.out)).toMatchObject({ service_role: { name } });
    const text = `The role ${name} can add and read audit records and versions of wallet rules, but cannot change them.`;
    expect(await portcullis(['migrate'], env(fresh))).toEqual({
      code: 0,
      out: `No new migrations.\nNo new topics.\n${text}\n`,
      err: '',
    });
    const one = await portcullis(['migrate', '--json'], { DATABASE_URL: old.owner });
    expect(JSON.parse(one.out)).toMatchObject({ service_role: null });
  });
});

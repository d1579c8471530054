import { randomInt } from 'node:crypto';
import { setAuditRetention } from '../audit/audit-retention.ts';
import { type Config, ConfigError } from '../platform/config/config.ts';
import type { Db } from '../platform/database/database.ts';
import { type Database, openDatabase } from '../platform/database/open-database.ts';
import { type MigrationReports, migrate } from '../platform/database/schema-migrations.ts';
import { MigrationOwnerError, sqlState } from '../platform/errors.ts';

const PAGE = 'see docs/operations/database-roles.md';

/**
 * Migrates the schema. If the owner of the tables has its own URL, the owner does it, and then grants the role of
 * `DATABASE_URL` what a service needs. Sets the retention that the database enforces. Returns the names of the
 * migrations that have run, and the role of services; undefined if one role migrates and runs.
 * @throws ConfigError if the two URLs do not fit together, MigrationOwnerError if the database refuses something to the owner.
 */
export async function migrateByOwner({
  config,
  database,
  ...reports
}: Pick<MigrationReports, 'onMigration' | 'onWait'> & {
  config: Pick<Config, 'databaseUrl' | 'migrateDatabaseUrl' | 'auditRetentionDays'>;
  /** The database as services open it. */
  database: Database;
}) {
  const { databaseUrl = '', migrateDatabaseUrl: url, auditRetentionDays } = config;
  const migrated = async (migrator: Database) => {
    const migrations = await migrate(migrator, { ...reports, observer: database.db });
    await setAuditRetention(migrator.db, auditRetentionDays);
    return migrations;
  };
  if (url === undefined) return { migrations: await migrated(database), service: undefined };
  await using owner = await openDatabase({ url });
  const name = await serviceRole(database.db, owner.db, databaseUrl);
  try {
    return await owner.db.transaction(async () => {
      await checkRoles(owner.db, database.db, name);
      const migrations = await migrated(owner);
      await grant(owner.db, name);
      return { migrations, service: { name } };
    });
  } catch (error) {
    throw error instanceof ConfigError ? error : new MigrationOwnerError(error);
  }
}

function unscoped(db: Db) {
  return db.unscoped('roles are global');
}

/** Returns the name of the role by which services connect. */
async function serviceRole(service: Db, owner: Db, url: string): Promise<string> {
  try {
    const [row] = await unscoped(service).raw((sql) => sql<{ name: string }>`select current_user as name`);
    return row?.name ?? '';
  } catch (error) {
    const name = decodeURIComponent(new URL(url).username);
    const find = () => unscoped(owner).raw((sql) => sql`select 1 from pg_roles where rolname = ${name}`);
    if (!sqlState(error)?.startsWith('28') || (await find().catch(() => [error])).length > 0) throw error;
    throw new ConfigError([`the role ${name} of DATABASE_URL does not exist: create it, ${PAGE}`]);
  }
}

interface Facts {
  schema: string;
  migrator: string;
  /** The owner of the tables; null if there are none. */
  owner: string | null;
  mayMigrate: boolean;
  /** Whether the role of services may act as an owner of the database, its schema or a table. */
  isOwner: boolean;
  /** Whether the role of services may create in the schema. */
  creates: boolean;
}

/**
 * Checks that both connections lead to the same database, and that the two roles are what they must be.
 * @throws ConfigError that lists what is wrong.
 */
async function checkRoles(owner: Db, service: Db, name: string): Promise<void> {
  const key = randomInt(2 ** 47);
  await unscoped(owner).raw((sql) => sql`select pg_advisory_xact_lock(${key})`);
  // Such a lock belongs to one database. Comparing addresses is not enough: one of them may belong to a pooler.
  const [lock] = await unscoped(service).raw(
    (sql) => sql<{ taken: boolean }>`select pg_try_advisory_xact_lock(${key}) as taken`,
  );
  if (lock?.taken) throw new ConfigError(['MIGRATE_DATABASE_URL must name the same database as DATABASE_URL']);
  const [facts] = await unscoped(owner).raw(
    (sql) => sql<Facts>`
      with tables as (select * from pg_class where relnamespace = quote_ident(current_schema())::regnamespace),
        owners as (
          select oid from pg_roles where rolname = current_user
          union select datdba from pg_database where datname = current_database()
          union select nspowner from pg_namespace where nspname = current_schema()
          union select relowner from tables)
      select current_schema() as schema, current_user as migrator, audit.owner,
        pg_has_role(coalesce(audit.owner, current_user), 'usage') as "mayMigrate",
        exists (select from owners where pg_has_role(${name}, oid, 'member')) as "isOwner",
        has_schema_privilege(${name}, current_schema(), 'create') as creates
      from (select (select pg_get_userbyid(relowner) from tables where relname = 'audit_records') as owner) audit`,
  );
  const faults = facts ? faultsOf(facts, name) : [];
  if (faults.length > 0) throw new ConfigError(faults);
}

function faultsOf({ schema, migrator, owner, mayMigrate, isOwner, creates }: Facts, name: string): string[] {
  const all: [isFault: boolean, message: string][] = [
    [!mayMigrate, `the role ${migrator} of MIGRATE_DATABASE_URL does not own the tables: use ${owner}, which does`],
    [
      isOwner,
      `the role ${name} of DATABASE_URL owns the database or its tables, or can act as their owner: use another, ${PAGE}`,
    ],
    [
      creates && !isOwner,
      `the role ${name} of DATABASE_URL may create in the schema ${schema}: revoke create on schema ${schema} from it and from public`,
    ],
  ];
  return all.filter(([isFault]) => isFault).map(([, message]) => message);
}

/** The tables of which a service's role may change no row. */
const APART = ['mikro_orm_migrations', 'audit_records', 'audit_seals', 'wallet_rule_versions', 'activity'];

/** Gives the role of services what it needs, and takes from it what it does not. */
async function grant(db: Db, name: string): Promise<void> {
  const [row] = await unscoped(db).raw(
    (sql) => sql<{ schema: string; tables: string; apart: string; functions: string }>`
      with place as (select quote_ident(current_schema()) as schema),
        tables as (
          select oid, relispartition or relname = any(${APART}) as is_apart
          from pg_class, place
          where relnamespace = schema::regnamespace and relkind in ('r', 'p') and pg_has_role(relowner, 'usage'))
      select schema,
        (select string_agg(oid::regclass::text, ', ') from tables where not is_apart) as tables,
        (select string_agg(oid::regclass::text, ', ') from tables where is_apart) as apart,
        (select string_agg(oid::regprocedure::text, ', ') from pg_proc
          where pronamespace = schema::regnamespace and prosecdef and proname like 'audit\\_%') as functions
      from place`,
  );
  const statements = [
    `grant usage on schema ${row?.schema} to`,
    `grant select, insert, update, delete on ${row?.tables} to`,
    `revoke all on ${row?.apart} from`,
    `grant select on ${APART.join(', ')} to`,
    'grant insert on audit_records to',
    'grant usage on sequence audit_positions to',
    `grant execute on function ${row?.functions} to`,
  ];
  for (const text of statements) await unscoped(db).raw((sql) => sql`${sql.raw(text)} ${sql.id(name)}`);
}

/** What the role of a service is, and what it lacks of what `grant` gives it, as `insert on accounts, assets`. */
export async function lackingPrivileges(db: Db) {
  const [row] = await unscoped(db).raw(
    (sql) => sql<{ role: string; isReadOnly: boolean; lacking: string[] }>`
      with own as (select relnamespace, relowner from pg_class where oid = to_regclass('audit_records')),
        tables as (
          select oid, relname from pg_class natural join own where relkind in ('r', 'p') and not relispartition),
        lacking as (
          select relname as name, privilege from tables, unnest(case
            when relname = 'audit_records' then array['select', 'insert']
            when relname = any(${APART}) then array['select']
            else array['select', 'insert', 'update', 'delete'] end) privilege
          where not has_table_privilege(oid, privilege)
          union all
          select proname, 'execute' from pg_proc join own on pronamespace = relnamespace
          where prosecdef and proname like 'audit\\_%' and not has_function_privilege(oid, 'execute')
          union all
          select relname, 'usage' from pg_class natural join own
          where relname = 'audit_positions' and not has_sequence_privilege(oid, 'usage')
          union all
          select 'the schema of its search_path', 'usage' where current_schema() is null),
        by_object as (select name, string_agg(privilege, ', ' order by privilege) as privileges from lacking group by name),
        lines as (
          select privileges || ' on ' || array_to_string((array_agg(name::text order by name))[:5], ', ') ||
            case when count(*) > 5 then ' and ' || count(*) - 5 || ' more' else '' end as line
          from by_object group by privileges)
      select current_user as role, current_setting('default_transaction_read_only') = 'on' as "isReadOnly",
        array(select line from lines order by line) as lacking`,
  );
  return row ?? { role: '', isReadOnly: false, lacking: [] };
}

/** Checks whether the role of a service may change audit records, or act as their owner. */
export async function mayChangeAudit(db: Db): Promise<boolean> {
  const [row] = await unscoped(db).raw(
    (sql) => sql<{ may: boolean }>`
      select pg_has_role(relowner, 'member') or has_table_privilege(oid, 'update, delete, truncate, trigger') as may
      from pg_class where oid = to_regclass('audit_records')`,
  );
  return row?.may ?? false;
}

import { readFileSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterOrigin } from '../../scripts/new-cluster.ts';
import { type Database, openDatabase } from '../../src/platform/database/open-database.ts';
import { clusterIdentity, ensureCluster, NEW_CLUSTER } from '../../src/platform/embedded/cluster.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { embeddedDatabase } from '../support/harness/databases.ts';
import { emptyFolder } from '../support/start/folders.ts';

/** What a database is, each part of it as PostgreSQL itself spells it; no part has an id or a time of its making. */
const PARTS = {
  databases: `select datname, pg_encoding_to_char(encoding), datlocprovider, datcollate, datctype, datlocale from pg_database order by 1`,
  settings: `select name, setting from pg_settings where name <> 'data_directory' order by 1`,
  extensions: `select extname, extversion from pg_extension order by 1`,
  relations: `select relname, relkind, relpersistence, reloptions::text, pg_get_expr(relpartbound, oid) as bound, pg_get_partkeydef(oid) as key
    from pg_class where relnamespace = 'public'::regnamespace order by 1`,
  columns: `select c.relname, a.attname, a.attnum, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull, a.attidentity, a.attgenerated,
      pg_get_expr(d.adbin, d.adrelid) as value, a.attcollation::regcollation::text as collation
    from pg_attribute a join pg_class c on c.oid = a.attrelid left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    where c.relnamespace = 'public'::regnamespace and a.attnum > 0 order by 1, 3`,
  constraints: `select conrelid::regclass::text as relation, conname, pg_get_constraintdef(oid) as text
    from pg_constraint where connamespace = 'public'::regnamespace order by 1, 2`,
  indexes: `select indexname, indexdef from pg_indexes where schemaname = 'public' order by 1`,
  triggers: `select tgrelid::regclass::text as relation, tgname, pg_get_triggerdef(oid) as text from pg_trigger where not tgisinternal order by 1, 2`,
  functions: `select proname, pg_get_functiondef(oid) as text from pg_proc where pronamespace = 'public'::regnamespace order by 1`,
  types: `select typname, typtype, (select json_agg(enumlabel order by enumsortorder) from pg_enum where enumtypid = t.oid) as labels
    from pg_type t where typnamespace = 'public'::regnamespace order by 1`,
  views: `select viewname, definition from pg_views where schemaname = 'public' order by 1`,
  sequences: `select sequencename, data_type::text, start_value::text, increment_by::text, last_value::text from pg_sequences order by 1`,
  migrations: `select id, name from mikro_orm_migrations order by 1`,
};

const folder = beforeTests(emptyFolder);
let committed: Database;
let made: Database;

beforeAll(async () => {
  await ensureCluster(folder.path);
  committed = await openDatabase({ dataDir: join(folder.path, 'postgres') });
  made = await embeddedDatabase();
});

afterAll(async () => {
  await committed[Symbol.asyncDispose]();
  await made[Symbol.asyncDispose]();
});

function read({ db }: Database, text: string): Promise<Record<string, unknown>[]> {
  return db.unscoped('a test reads all').raw((sql) => sql([text] as unknown as TemplateStringsArray));
}

it('the committed cluster was made with the installed PGlite and the current migrations (npm run -s cluster makes it)', () => {
  const told = JSON.parse(readFileSync(join(NEW_CLUSTER, '../cluster.json'), 'utf8'));
  expect(told).toEqual(clusterOrigin());
});

it.each(Object.entries(PARTS))('the committed cluster has the same %s as a cluster made now', async (_part, text) => {
  expect(await read(committed, text)).toEqual(await read(made, text));
});

it('the committed cluster has no rows except the names of its migrations', async () => {
  const tables = await read(committed, PARTS.relations);
  const names = tables
    .filter(({ relkind }) => relkind === 'r' || relkind === 'p')
    .map(({ relname }) => String(relname));
  expect(names.length).toBeGreaterThan(20);
  for (const name of names.filter((found) => found !== 'mikro_orm_migrations')) {
    expect(await read(committed, `select * from "${name}" limit 1`), name).toEqual([]);
  }
});

it('D1-14: a cluster created from it is readable only by its owner, and has its own id', async () => {
  await using other = await emptyFolder();
  await ensureCluster(other.path);
  expect(clusterIdentity(other.path, undefined)).not.toBe(clusterIdentity(folder.path, undefined));
  const entries = await readdir(join(other.path, 'postgres'), { recursive: true, withFileTypes: true });
  expect(entries.length).toBeGreaterThan(900);
  for (const entry of entries) {
    const { mode } = await stat(join(entry.parentPath, entry.name));
    expect(mode & 0o077, entry.name).toBe(0);
  }
});

it('D1-14: PostgreSQL reports the same id as the files of the cluster', async () => {
  const [row] = await read(committed, 'select system_identifier::text as id from pg_control_system()');
  expect(BigInt.asUintN(64, BigInt(String(row?.id)))).toBe(BigInt(clusterIdentity(folder.path, undefined)));
});

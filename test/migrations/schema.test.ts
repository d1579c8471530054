import { execFileSync } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EntitySchema } from '@mikro-orm/core';
import type { SqlMikroORM } from '@mikro-orm/sql';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { comparableOrm } from '../../scripts/schema-orm.ts';
import { entities } from '../../src/tables/tables.ts';
import { MAX_LENGTHS, MAX_SIZES } from '../../src/tables/text-lengths.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { scratchDatabase } from '../support/harness/databases.ts';
import { ROOT } from '../support/start/process.ts';

/** Tables whose rows can be of no node. */
const OPTIONAL_NODE = ['audit_records'];
/** Tables of all nodes, and those of the program itself: without a node. */
const WITHOUT_NODE = [
  'audit_seals',
  'audit_verifications',
  'bus_messages',
  'bus_offsets',
  'chains',
  'dead_letter_decisions',
  'network_currencies',
  'networks',
  'nodes',
  'outbox',
  'parked_notifications',
  'processes',
  'reference_parked',
  'reference_tombstones',
  'transaction_ids',
  'transaction_lookups',
];

/** What the entities do not declare, by kind, with the reason. Only migrations make it, and MikroORM leaves it as it is. */
const UNDECLARED: Record<string, { why: string; names: readonly string[] }> = {
  trigger: {
    why: 'MikroORM knows neither triggers with transition tables nor constraint triggers',
    names: [
      ...['account_blocks_split', 'accounts_deleted', 'accounts_inserted', 'accounts_truncated', 'accounts_updated'],
      ...['keep_changed_wallet_rule_version', 'keep_wallet_rule_version', 'show_audit_position'],
      // Of clients, their secrets, supervisors, users, and the networks of wallets.
      ...Array.from({ length: 5 }, () => 'keep_activity'),
    ],
  },
  function: {
    why: 'MikroORM sets neither search_path, time zone nor privileges of a function',
    names: [
      ...['add_audit_seal', 'add_drop_seal', 'audit_delete', 'audit_drop_month', 'audit_erase', 'audit_make_month'],
      ...['audit_retention_days', 'audit_seal', 'count_account_delete', 'count_account_insert', 'count_account_update'],
      ...[
        'delete_unreferenced',
        'forget_account_counts',
        'identifier_key',
        'keep_activity',
        'keep_wallet_rule_version',
        'require_audit_age',
      ],
      ...['show_audit_position', 'split_account_block', 'split_account_superblock'],
    ],
  },
  partition: { why: 'the months of the audit are made as they begin', names: ['audit_records_default'] },
  sequence: { why: 'a default from a sequence counts as a number that increments', names: ['audit_positions'] },
  'without a primary key': { why: 'an entity must have one', names: ['account_changes'] },
  'not valid': {
    why: 'a check is either there or not; rows of 0.1.0 may be longer',
    names: [
      ...Object.entries(MAX_LENGTHS).flatMap(([table, columns]) =>
        Object.keys(columns).map((column) => `${table}_${column}_length`),
      ),
      ...Object.entries(MAX_SIZES).flatMap(([table, columns]) =>
        Object.keys(columns).map((column) => `${table}_${column}_size`),
      ),
    ],
  },
  storage: {
    why: 'MikroORM has no storage parameters; compression with LZ4 depends on the server',
    names: [
      ...['account_blocks: fillfactor=70', 'account_superblocks: fillfactor=70', 'migration_files.bytes: external'],
      ...['audit_records_position: autosummarize=on', 'audit_records_default_coalesce_at_idx: autosummarize=on'],
    ],
  },
};

const database = beforeTests(scratchDatabase);
let orm: SqlMikroORM;

beforeAll(async () => {
  orm = await comparableOrm(database);
});

describe('the entities', () => {
  it('declare what the migrations create: tables, columns, defaults, relations, indexes, uniques and checks', async () => {
    expect(await orm.schema.getUpdateSchemaSQL({ wrap: false })).toBe('');
  });

  it('declare indexes on expressions exactly as PostgreSQL has them, since MikroORM compares only names', async () => {
    const indexes = await database.db
      .unscoped('test')
      .raw<{ text: string }>((sql) => sql`select indexdef as text from pg_indexes where schemaname = 'public'`);
    const made = indexes.map(({ text }) => text.toLowerCase().replace(' public.', ' '));
    const declared = (entities as readonly EntitySchema[]).flatMap(({ meta }) =>
      [...meta.indexes, ...meta.uniques].flatMap(({ expression }) => expression ?? []),
    );
    expect(declared.length).toBeGreaterThan(3);
    expect(made).toEqual(expect.arrayContaining(declared));
  });

  it('declare everything in the schema, except what is listed with a reason', async () => {
    const found = await database.db.unscoped('test').raw<{ kind: string; name: string }>(
      (sql) => sql`
        with tables as (
          select * from pg_class where relnamespace = 'public'::regnamespace and relname !~ '^mikro_orm')
        select 'trigger' as kind, tgname as name from pg_trigger where not tgisinternal
        union all select 'function', proname from pg_proc where pronamespace = 'public'::regnamespace
        union all select 'partition', inhrelid::regclass::text
          from pg_inherits join tables t on t.oid = inhrelid where t.relkind in ('r', 'p')
        union all select 'sequence', relname from tables
          where relkind = 'S' and not exists (select from pg_depend where objid = tables.oid and deptype = 'i')
        union all select 'without a primary key', relname from tables
          where relkind in ('r', 'p') and not exists (select from pg_constraint where conrelid = tables.oid and contype = 'p')
        union all select 'not valid', conname from pg_constraint where not convalidated
        union all select 'storage', relname || ': ' || unnest(reloptions) from tables
        union all select 'storage', t.relname || '.' || attname || ': external'
          from pg_attribute a join tables t on t.oid = attrelid join pg_type y on y.oid = atttypid
          where t.relkind = 'r' and attstorage = 'e' and typstorage <> 'e'`,
    );
    const names = Map.groupBy(found, ({ kind }) => kind);
    const sorted = (list: readonly string[]) => list.toSorted();
    expect(Object.fromEntries([...names].map(([kind, rows]) => [kind, sorted(rows.map(({ name }) => name))]))).toEqual(
      Object.fromEntries(Object.entries(UNDECLARED).map(([kind, { names }]) => [kind, sorted(names)])),
    );
  });

  it.runIf(inject('isThorough'))(
    'after a change to an entity, migration:create writes a migration with only that change',
    {
      timeout: 120_000,
    },
    async () => {
      const copy = await mkdtemp(join(tmpdir(), 'portcullis-entities-'));
      try {
        for (const folder of ['src', 'scripts', 'migrations']) {
          await cp(join(ROOT, folder), join(copy, folder), { recursive: true });
        }
        await cp(join(ROOT, 'package.json'), join(copy, 'package.json'));
        await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
        const entity = join(copy, 'src/tables/accounts.entity.ts');
        const text = await readFile(entity, 'utf8');
        await writeFile(entity, text.replace('type: p.text(),', "type: p.text(),\n    label: p.text().default(''),"));
        const args = ['--liftoff-only', 'scripts/create-migration.ts', 'account-labels'];
        const written = execFileSync(process.execPath, args, { cwd: copy, encoding: 'utf8' }).trim();
        expect(written).toMatch(/^migrations\/migration-[0-9]{8}-account-labels\.ts$/);
        expect(await readFile(join(copy, written), 'utf8')).toBe(`import { Migration } from '@mikro-orm/migrations';

export class Migration${written.slice(21, 29)}AccountLabels extends Migration {
  override up(): void {
    this.addSql(\`alter table "accounts" add "label" text not null default '';\`);
  }
}
`);
      } finally {
        await rm(copy, { recursive: true });
      }
    },
  );
});

describe('the schema', () => {
  it('D4-01: every tenant table has a node_id that is not nullable', () => {
    const metas = [...orm.getMetadata().getAll().values()];
    const nodeOf = ({ props }: (typeof metas)[number]) => props.find((prop) => prop.fieldNames.join() === 'node_id');
    const strict = metas.filter((meta) => nodeOf(meta)?.nullable !== true && nodeOf(meta));
    const others = metas.filter((meta) => !strict.includes(meta)).map((meta) => meta.tableName);
    expect(others.toSorted()).toEqual([...OPTIONAL_NODE, ...WITHOUT_NODE].toSorted());
  });

  it('D4-01: a foreign key between two tenant tables includes the node', async () => {
    const references = await database.db.unscoped('test').raw<{ name: string; columns: string[]; targets: string[] }>(
      (text) => text`
        select c.conname as name,
          (select json_agg(a.attname order by k.at) from unnest(c.conkey) with ordinality k (number, at)
            join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.number) as columns,
          (select json_agg(a.attname order by k.at) from unnest(c.confkey) with ordinality k (number, at)
            join pg_attribute a on a.attrelid = c.confrelid and a.attnum = k.number) as targets
        from pg_constraint c
        where c.contype = 'f'
          and exists (select from pg_attribute a where a.attrelid = c.conrelid and a.attname = 'node_id')
          and exists (select from pg_attribute a where a.attrelid = c.confrelid and a.attname = 'node_id')`,
    );
    expect(references.length).toBeGreaterThan(5);
    for (const { name, columns: from, targets } of references) {
      expect({ name, from: from.indexOf('node_id') }).toEqual({ name, from: targets.indexOf('node_id') });
      expect(from).toContain('node_id');
    }
  });
});

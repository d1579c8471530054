import type { EntityMetadata } from '@mikro-orm/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/platform/database/database.ts';
import { entities } from '../../src/tables/tables.ts';
import { scratchDatabase } from '../support/harness/databases.ts';

/** Tables of the schema that no entity stands for. */
const WITHOUT_ENTITY = ['audit_records_default', 'mikro_orm_migrations'];
/** Tables whose rows can be of no node. */
const OPTIONAL_NODE = ['audit_records'];
/** Tables of all nodes, and those of the program itself: without a node. */
const WITHOUT_NODE = [
  'audit_seals',
  'bus_messages',
  'bus_offsets',
  'chains',
  'network_currencies',
  'networks',
  'nodes',
  'outbox',
  'parked_notifications',
  'reference_parked',
  'reference_tombstones',
  'transaction_ids',
  'transaction_lookups',
];

interface Column {
  table_name: string;
  column_name: string;
  is_nullable: 'YES' | 'NO';
}

let database: Database;
let columns: Column[];
let metas: EntityMetadata[];

beforeAll(async () => {
  database = await scratchDatabase();
  columns = await database.db.unscoped('test').raw<Column>(
    (text) => text`
      select table_name, column_name, is_nullable from information_schema.columns where table_schema = 'public'`,
  );
  metas = [...(await database.openOrm()).getMetadata().getAll().values()];
});

afterAll(() => database[Symbol.asyncDispose]());

describe('the schema', () => {
  it('has a table for each entity, and no other', () => {
    const tables = new Set(columns.map((column) => column.table_name));
    expect([...tables].sort()).toEqual([...entities.map((entity) => entity.meta.tableName), ...WITHOUT_ENTITY].sort());
  });

  it.each(entities.map((entity) => entity.meta.tableName))(
    'has for %s the columns of the entity, and null where it says',
    async (table) => {
      const meta = metas.find((found) => found.tableName === table);
      const ofEntity = (meta?.props ?? []).flatMap((prop) =>
        prop.fieldNames.map((name) => ({ name, isNullable: prop.nullable === true })),
      );
      const ofTable = columns
        .filter((column) => column.table_name === table)
        .map((column) => ({ name: column.column_name, isNullable: column.is_nullable === 'YES' }));
      const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
      expect(ofTable.toSorted(byName)).toEqual(ofEntity.toSorted(byName));
    },
  );

  it('D4-01: every table of a tenant has node_id, which is never null', () => {
    const nodeColumns = columns.filter((column) => column.column_name === 'node_id');
    const strict = nodeColumns.filter((column) => column.is_nullable === 'NO').map((column) => column.table_name);
    const known = new Set([...strict, ...OPTIONAL_NODE, ...WITHOUT_NODE, ...WITHOUT_ENTITY]);
    expect(new Set(columns.map((column) => column.table_name))).toEqual(known);
    expect(strict.filter((table) => WITHOUT_NODE.includes(table))).toEqual([]);
  });

  it('D4-01: a reference from one table of a tenant to another stays within the node', async () => {
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

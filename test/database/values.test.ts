import { describe, expect, it } from 'vitest';
import type { Database } from '../../src/platform/database/open-database.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { embeddedDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';

const ID = '0190a6c0-0000-7000-8000-000000000001';
const TIME = '2026-11-24 13:00:00.123456+00';

/** An expression in SQL, and what is read of it. */
const VALUES: readonly (readonly [sql: string, value: unknown])[] = [
  ['true', true],
  ['7::smallint', 7],
  ['7::integer', 7],
  ['9007199254740993::bigint', '9007199254740993'],
  ['1.5::double precision', 1.5],
  ['12345678901234567890.12::numeric', '12345678901234567890.12'],
  [`'é'::text`, 'é'],
  [`'${ID}'::uuid`, ID],
  [`'{"a":[1]}'::json`, { a: [1] }],
  [`'{"a":[1]}'::jsonb`, { a: [1] }],
  [`'\\x00ff'::bytea`, Buffer.from([0, 255])],
  [`'${TIME}'::timestamptz`, TIME],
  [`'2026-11-24'::date`, '2026-11-24'],
  [`'1 day'::interval`, '1 day'],
  [`array[true, false]`, [true, false]],
  [`array[7, null]::smallint[]`, [7, null]],
  [`array[7, 8]::integer[]`, [7, 8]],
  [`array[9007199254740993]::bigint[]`, ['9007199254740993']],
  [`array[1.5]::double precision[]`, [1.5]],
  [`array['a b', null, '"', '']::text[]`, ['a b', null, '"', '']],
  [`array['a']::varchar[]`, ['a']],
  [`array['${ID}']::uuid[]`, [ID]],
  [`array['{"a":[1]}']::json[]`, [{ a: [1] }]],
  [`array['{"a":[1]}']::jsonb[]`, [{ a: [1] }]],
  [`array['${TIME}']::timestamptz[]`, [TIME]],
  [`array['2026-11-24']::date[]`, ['2026-11-24']],
  [`array['1 day']::interval[]`, ['1 day']],
];

/** What arrays of the schema's columns are of. */
const ARRAY_COLUMNS = `
  select distinct format_type(a.atttypid, null) as type
  from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_type t on t.oid = a.atttypid
  where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and a.attnum > 0 and t.typcategory = 'A'`;

function readsValues(open: () => Promise<Database>): void {
  const database = beforeTests(open);

  const read = (text: string) =>
    database.db.unscoped('test').raw<Record<string, unknown>>((sql) => sql(Object.assign([text], { raw: [text] })));

  it.each(VALUES)('%s is read as %j', async (expression, value) => {
    expect(await read(`select ${expression} as value`)).toEqual([{ value }]);
  });

  it('array columns of the schema have only element types of the values above', async () => {
    const types = (await read(ARRAY_COLUMNS)).map(({ type }) => `::${type}`);
    expect(types.length).toBeGreaterThan(0);
    expect(types.filter((type) => !VALUES.some(([expression]) => expression.endsWith(type)))).toEqual([]);
  });
}

describe('the embedded database', () => readsValues(embeddedDatabase));

describeReal('postgres', 'PostgreSQL', () => readsValues(realDatabase));

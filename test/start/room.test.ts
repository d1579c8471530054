import { expect, it } from 'vitest';
import { checkStatements, DiskFullError } from '../../src/platform/database/open-database.ts';

function full(): never {
  throw new DiskFullError('full');
}

async function passes(sql: string): Promise<boolean> {
  const connection = { executeQuery: async (_query: { sql: string }): Promise<unknown> => true };
  checkStatements(connection, full);
  return connection.executeQuery({ sql }).then(
    () => true,
    (error: unknown) => {
      expect(error).toBeInstanceOf(DiskFullError);
      return false;
    },
  );
}

it.each([
  'select 1',
  ' SELECT "updated_at" from "x"',
  'with place as (select 1) select * from place',
  'begin',
  'start transaction',
  'commit',
  'rollback to savepoint s',
  'show server_version',
])('without disk space, statements that only read or end a transaction are allowed: %s', async (sql) => {
  expect(await passes(sql)).toBe(true);
});

it.each([
  'insert into x values (1)',
  'update x set y = 1',
  'delete from x',
  'with gone as (delete from x returning *) select * from gone',
  'with new as (insert into x values (1) returning *) select * from new',
  'select * from x for update',
  'select * from x for no key update',
  'select * from x for share',
  'select * from x for key share',
  'create table y ()',
  'vacuum x',
])('without disk space, statements that may write are rejected: %s', async (sql) => {
  expect(await passes(sql)).toBe(false);
});

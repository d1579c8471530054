import { beforeAll, describe, expect, it } from 'vitest';
import { type Complaint, complaints } from '../support/architecture/lint-copy.ts';

const DOOR = 'Raw SQL and query builders pass platform/database/database.ts alone';
const TAG = 'Raw SQL passes platform/database/database.ts alone';
const DRIVER = 'Only open-database.ts opens a driver';

const BAD: [line: string, says: string][] = [
  ["import { sql } from 'kysely';", TAG],
  ["import { type Kysely, sql as text } from 'kysely';", TAG],
  ["import * as kysely from 'kysely';", TAG],
  ["import kysely, { sql } from 'kysely';", TAG],
  ["import { raw } from '@mikro-orm/core';", TAG],
  ["import { sql } from '@mikro-orm/sql';", TAG],
  ["export { sql } from 'kysely';", TAG],
  ["export * from 'kysely';", TAG],
  ["export const kysely = await import('kysely');", TAG],
  ["import pg from 'pg';", DRIVER],
  ["import { PGlite } from '@electric-sql/pglite';", DRIVER],
  ["import { MikroORM } from '@mikro-orm/postgresql';", DRIVER],
  ["export const pglite = await import('@electric-sql/pglite');", DRIVER],
  ["export const orm = await import('@mikro-orm/pglite');", DRIVER],
  ["export const rows = (em: any) => em.getKysely().selectFrom('accounts');", DOOR],
  ['export const rows = (em: any) => em?.getKysely();', DOOR],
  ["export const rows = (em: any) => em['getKysely']();", DOOR],
  ['export const rows = (em: any) => em[`getKysely`]();', DOOR],
  ['export const rows = (em: any) => { const { getKysely } = em; return getKysely; };', DOOR],
  ['export const rows = (em: any) => { const { getKysely: open } = em; return open; };', DOOR],
  ["export const rows = (em: any) => em.execute('select 1');", DOOR],
  ["export const rows = (em: any) => em['execute']('select 1');", DOOR],
  ["export const rows = (em: any) => em.getConnection().execute('select 1');", DOOR],
  ["export const rows = (em: any) => em['getConnection']();", DOOR],
  ['export const rows = (em: any) => em.getDriver();', DOOR],
  ["export const rows = (em: any) => em.createQueryBuilder('accounts');", DOOR],
  ["export const rows = (em: any) => em.qb('accounts');", DOOR],
  ['export const rows = (query: any) => query.execute();', DOOR],
  ['export const rows = (query: any) => query.executeTakeFirst();', DOOR],
  ['export const rows = (query: any) => query.executeTakeFirstOrThrow();', DOOR],
];

/** No place is better than another: the domain, the adapters, lib, and the program around them. */
const FOLDERS = ['src/features/accounts', 'src/gateway', 'src/lib', 'src/cli', 'src'];

describe('lint: raw SQL outside the tenant-scoped database handle', () => {
  const files = FOLDERS.flatMap((folder) =>
    BAD.map(([line, says], at) => ({ file: `${folder}/bad-${at}.ts`, line, says })),
  );
  const doors = ['src/platform/database/database.ts', 'src/platform/database/open-database.ts'];
  let found: Complaint[];

  beforeAll(async () => {
    found = await complaints(Object.fromEntries(files.map(({ file, line }) => [file, `${line}\n`])), doors);
  });

  it.each(BAD)('rejects %s', (line, says) => {
    for (const bad of files.filter((candidate) => candidate.line === line)) {
      const messages = found.filter(({ file }) => file === bad.file).map(({ message }) => message);
      expect(messages, bad.file).toContainEqual(expect.stringContaining(says));
    }
  });

  it('accepts raw SQL in the files of the database handle', () => {
    expect(found.filter(({ file }) => doors.includes(file))).toEqual([]);
  });
});

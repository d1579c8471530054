import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { knowsLetterCase, openDatabase } from '../../src/platform/database/open-database.ts';
import { embeddedDatabase } from '../support/harness/databases.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';

it('D7-03: the embedded database compares non-ASCII letters in any case', async () => {
  await using database = await embeddedDatabase();
  expect(await knowsLetterCase(database.db)).toBe(true);
});

describeReal('postgres', 'on PostgreSQL', () => {
  it.each([
    ['C.UTF-8', true],
    ['C', false],
  ])(
    'D7-03: whether a database in the locale %s compares non-ASCII letters in any case: %s',
    async (locale, isKnown) => {
      const name = `t_${randomBytes(8).toString('hex')}`;
      const server = serviceAddress('postgres');
      const provider = locale === 'C' ? 'libc' : 'builtin';
      const own = provider === 'libc' ? `lc_collate 'C' lc_ctype 'C'` : `builtin_locale '${locale}'`;
      const options = `template template0 encoding 'UTF8' locale_provider ${provider} ${own}`;
      await withPostgres(server, (client) => client.query(`create database ${name} ${options}`));
      try {
        const url = new URL(server);
        url.pathname = `/${name}`;
        await using database = await openDatabase({ url: url.href });
        expect(await knowsLetterCase(database.db)).toBe(isKnown);
      } finally {
        await withPostgres(server, (client) => client.query(`drop database ${name} with (force)`));
      }
    },
  );
});

import { randomBytes, randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { silentLog } from '../../src/lib/log.ts';
import { shareDatabase } from '../../src/platform/database/instance-link.ts';
import { type Database, openDatabase } from '../../src/platform/database/open-database.ts';
import { sqlState, violatedConstraint } from '../../src/platform/errors.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { embeddedDatabase } from '../support/harness/databases.ts';
import { emptyFolder } from '../support/start/folders.ts';

const folder = beforeTests(emptyFolder);
const own = beforeTests(embeddedDatabase);
let linked: Database;
let sharing: AsyncDisposableStack;
beforeAll(async () => {
  sharing = new AsyncDisposableStack();
  await shareDatabase({ db: own.db, dataDir: folder.path, log: silentLog }, sharing);
  linked = await openDatabase({ instance: folder.path });
});
afterAll(async () => {
  await linked?.[Symbol.asyncDispose]();
  await sharing?.disposeAsync();
});

const both = () => [own, linked].map(({ db }) => db.unscoped('test'));
const nodeNames = async ({ db }: Database) =>
  (await db.unscoped('test').run((k) => k.selectFrom('nodes').select('name').orderBy('name'))).map(({ name }) => name);
const insert = ({ db }: Database, name: string, id: string = randomUUID()) =>
  db.unscoped('test').run((k) => k.insertInto('nodes').values({ id, name, version: '0' }).returning('id'));

it('D8-20: values arrive by the socket as they do in the process', async () => {
  const value = fc.oneof(fc.string({ unit: 'grapheme' }), fc.double({ noNaN: true }), fc.bigInt(), fc.constant(null));
  await fc.assert(
    fc.asyncProperty(value, fc.uint8Array({ maxLength: 300 }), async (text, bytes) => {
      const parameter = typeof text === 'string' ? text.replaceAll('\u0000', '').toWellFormed() : text;
      const rows = both().map((unscoped) =>
        unscoped.raw(
          (
            sql,
          ) => sql`select ${parameter === null ? null : String(parameter)}::text as text, ${Buffer.from(bytes)}::bytea as bytes,
            9007199254740993::bigint as big, timestamptz '2026-11-21 10:00:00.123456+02' as at, '{"a":[1,null]}'::jsonb as json,
            array['x', null] as list, 1.50::numeric as amount, true as is_true`,
        ),
      );
      const [inProcess, bySocket] = await Promise.all(rows);
      expect(bySocket).toEqual(inProcess);
    }),
    { numRuns: 50 },
  );
});

it('D8-20: megabytes arrive whole, in both directions and by COPY', async () => {
  const text = randomBytes(6 * 1024 * 1024).toString('base64');
  const [row] = await linked.db.unscoped('test').raw((sql) => sql<{ text: string }>`select ${text}::text as text`);
  expect(row?.text === text).toBe(true);
  const lines = Array.from({ length: 5_000 }, (_, index) => Buffer.from(`${randomUUID()}\tcopied ${index}\t0`));
  await linked.db.unscoped('test').copy('nodes', ['id', 'name', 'version'], lines);
  expect((await nodeNames(own)).filter((name) => name.startsWith('copied'))).toHaveLength(5_000);
});

it('D8-20: an error has the code and the constraint of PostgreSQL, and the connection goes on', async () => {
  const id = randomUUID();
  await insert(linked, 'once', id);
  const error: unknown = await insert(linked, 'twice', id).catch((caught: unknown) => caught);
  expect({ state: sqlState(error), constraint: violatedConstraint(error) }).toEqual({
    state: '23505',
    constraint: 'nodes_pkey',
  });
  expect(await nodeNames(linked)).toContain('once');
});

it('D8-20: a transaction is whole or not at all, and the process waits until it has ended', async () => {
  await linked.db.transaction(() => insert(linked, 'committed'));
  const failing = linked.db.transaction(async () => {
    await insert(linked, 'rolled back');
    throw new Error('on purpose');
  });
  await expect(failing).rejects.toThrow('on purpose');
  const aborted = linked.db.transaction(async () => {
    await insert(linked, 'before an error');
    await linked.db.unscoped('test').raw((sql) => sql`select 1 / 0`);
  });
  await expect(aborted).rejects.toMatchObject({ code: '22012' });
  let seen: Promise<string[]> | undefined;
  await linked.db.transaction(async () => {
    await insert(linked, 'seen');
    seen = nodeNames(own);
    await insert(linked, 'seen too');
  });
  expect(await seen).toEqual(expect.arrayContaining(['committed', 'seen', 'seen too']));
  expect(await nodeNames(own)).not.toContain('rolled back');
  expect(await nodeNames(own)).not.toContain('before an error');
});

it('D8-20: transactions of several commands and of the process itself do not mix', async () => {
  await using other = await openDatabase({ instance: folder.path });
  const name = randomUUID();
  const move = (database: Database, index: number) =>
    database.db.transaction(async () => {
      for (const part of ['a', 'b', 'c']) await insert(database, `${name} ${index} ${part}`);
      if (index % 2 === 1) throw new Error('odd');
    });
  const moves = Array.from({ length: 30 }, (_, index) => move([own, linked, other][index % 3] ?? own, index));
  await Promise.allSettled(moves);
  const names = (await nodeNames(own)).filter((found) => found.startsWith(name));
  expect(names).toHaveLength(45);
  expect(names.every((found) => Number(found.split(' ')[1]) % 2 === 0)).toBe(true);
});

it('D8-20: a transaction that is left idle is rolled back, and the process goes on', async () => {
  const idle = linked.db.transaction(async () => {
    await insert(linked, 'idle');
    expect(await nodeNames(own)).not.toContain('idle');
    await insert(linked, 'late');
  });
  await expect(idle).rejects.toThrow('no instance answers');
  // The next statement connects again.
  expect(await nodeNames(linked)).not.toContain('idle');
});

it('D8-20: where no socket can be made the instance goes on with a warning', async () => {
  await using stack = new AsyncDisposableStack();
  const warnings: string[] = [];
  const log = { ...silentLog, warn: (_fields: object, message: string) => void warnings.push(message) };
  await shareDatabase({ db: own.db, dataDir: '/proc/self', log }, stack);
  expect(warnings).toEqual(['cannot listen in DATA_DIR; commands cannot run until this process stops']);
});

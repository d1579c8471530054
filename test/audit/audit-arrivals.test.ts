import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AuditArrivals } from '../../src/audit/audit-filter.ts';
import { csvRecord } from '../../src/audit/export/csv.ts';
import { openDatabase } from '../../src/platform/database/open-database.ts';
import { portcullis } from '../support/cli/in-process.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { embeddedDatabase, type RealDatabase, realDatabase } from '../support/harness/databases.ts';
import { describeEmbedded } from '../support/harness/in-turn.ts';
import { describeReal } from '../support/services/real.ts';

type Db = RealDatabase['db'];

/** Inserts a record with a path, as the writer does; `position` null makes it one of 0.1.0. */
async function insert(db: Db, path: string, more: object = {}): Promise<void> {
  const at = new Date().toISOString();
  const texts = { correlation_id: randomUUID(), method: 'GET', path, remote_address: '', real_ip: '' };
  const numbers = { status_code: 200, elapsed: 1, request_bytes: 0, response_bytes: 0 };
  const row = { at, id: randomUUID(), ...texts, ...numbers, headers: '{}', is_api: false, aborted: false, ...more };
  await db.unscoped('test').run((k) => k.insertInto('audit_records').values(row as never));
}

async function pathsBehind(db: Db, position: number): Promise<{ paths: string[]; horizon: number }> {
  const arrivals = new AuditArrivals(db);
  const horizon = await arrivals.horizon();
  const paths: string[] = [];
  for await (const { path } of arrivals.read({}, position, horizon)) paths.push(path);
  return { paths, horizon };
}

/** Inserts in a transaction of its own that stays open until it is told to end. */
async function heldOpen(url: string, path: string) {
  const database = await openDatabase({ url });
  const inserted = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const ended = database.db.transaction(async () => {
    await insert(database.db, path);
    inserted.resolve();
    await release.promise;
  });
  await inserted.promise;
  return async () => {
    release.resolve();
    await ended;
    await database[Symbol.asyncDispose]();
  };
}

describeReal('postgres', 'audit records in the order of their arrival', () => {
  const database = beforeTests(realDatabase);

  it('D8-09: none is read behind one that an open transaction may still add, and none is left out when it has', async () => {
    const { db, url } = database;
    await insert(db, '/before');
    const end = await heldOpen(url, '/held');
    await insert(db, '/after');
    const during = await pathsBehind(db, 0);
    expect(during.paths).toEqual(['/before']);
    await insert(db, '/later');
    expect((await pathsBehind(db, during.horizon)).paths).toEqual([]);
    await end();
    const rest = await pathsBehind(db, during.horizon);
    expect(rest.paths).toEqual(['/held', '/after', '/later']);
    expect((await pathsBehind(db, rest.horizon)).paths).toEqual([]);
  });

  it('D8-09: a transaction that has inserted and is rolled back holds back nothing for good', async () => {
    const { db, url } = database;
    const { horizon } = await pathsBehind(db, 0);
    await using other = await openDatabase({ url });
    await other.db
      .transaction(async () => {
        await insert(other.db, '/undone');
        throw new Error('rolled back');
      })
      .catch(() => undefined);
    await insert(db, '/done');
    expect((await pathsBehind(db, horizon)).paths).toEqual(['/done']);
  });

  it('D8-09: readers that follow while writers commit in any order see each record once, in the order of positions', async () => {
    const { url } = database;
    const writers = await Promise.all(Array.from({ length: 4 }, () => openDatabase({ url })));
    onTestFinished(async () => {
      for (const writer of writers) await writer[Symbol.asyncDispose]();
    });
    const { horizon: start } = await pathsBehind(database.db, 0);
    let isOver = false;
    const written: string[] = [];
    const writing = writers.map(async ({ db }, writer) => {
      for (let batch = 0; batch < 15; batch += 1) {
        await db.transaction(async () => {
          for (let row = 0; row < 3; row += 1) {
            const path = `/w/${writer}/${batch}/${row}`;
            await insert(db, path);
            written.push(path);
          }
        });
      }
    });
    const seen: string[] = [];
    const reading = (async () => {
      for (let from = start; ; ) {
        const wasOver = isOver;
        const { paths, horizon } = await pathsBehind(database.db, from);
        seen.push(...paths);
        from = horizon;
        if (wasOver) return;
      }
    })();
    await Promise.all(writing);
    isOver = true;
    await reading;
    expect(seen.toSorted()).toEqual(written.toSorted());
  });

  it('D8-09: records of 0.1.0, which have no position, come first, and pages do not part at one position', async () => {
    await using own = await realDatabase();
    const { db } = own;
    for (let index = 0; index < 205; index += 1) await insert(db, `/old/${index}`, { position: null });
    await insert(db, '/new');
    const { paths } = await pathsBehind(db, -1);
    expect(paths).toHaveLength(206);
    expect(new Set(paths).size).toBe(206);
    expect(paths.at(-1)).toBe('/new');
    expect((await pathsBehind(db, 0)).paths).toEqual(['/new']);
  });

  it('D8-09: the newest that match are found across spans of positions', async () => {
    await using own = await realDatabase();
    const { db } = own;
    await insert(db, '/rare');
    await db.unscoped('test').raw((sql) => sql`select setval('audit_positions', 9000)`);
    await insert(db, '/rare');
    await insert(db, '/other');
    const arrivals = new AuditArrivals(db);
    const horizon = await arrivals.horizon();
    expect(horizon).toBe(9_002);
    expect(await arrivals.before({ path: '/rare' }, 1, horizon)).toBe(9_000);
    expect(await arrivals.before({ path: '/rare' }, 2, horizon)).toBe(0);
    expect(await arrivals.before({ path: '/rare' }, 3, horizon)).toBe(0);
    expect(await arrivals.before({}, 1, horizon)).toBe(9_001);
  });

  it('D8-09: audit list filters, prints CSV and JSON, and continues by position', async () => {
    await using own = await realDatabase();
    const { db, url } = own;
    const list = (...args: string[]) => portcullis(['audit', 'list', ...args], { DATABASE_URL: url });
    const client = randomUUID();
    await insert(db, '/v1/wallets/1', { status_code: 404, client_id: client });
    await insert(db, '/v1/wallets/2', { status_code: 500, subject: '=1+1' });
    await insert(db, '/v1/accounts', { status_code: 200, at: new Date(Date.now() - 7_200_000).toISOString() });
    const paths = async (...args: string[]) =>
      JSON.parse((await list('--json', ...args)).out).records.map(({ path }: { path: string }) => path);
    expect(await paths()).toEqual(['/v1/wallets/1', '/v1/wallets/2', '/v1/accounts']);
    expect(await paths('--failed')).toEqual(['/v1/wallets/1', '/v1/wallets/2']);
    expect(await paths('--status', '4xx')).toEqual(['/v1/wallets/1']);
    expect(await paths('--status', '500')).toEqual(['/v1/wallets/2']);
    expect(await paths('--client', client)).toEqual(['/v1/wallets/1']);
    expect(await paths('--subject', '=1+1')).toEqual(['/v1/wallets/2']);
    expect(await paths('--path', '/v1/wallets/*')).toEqual(['/v1/wallets/1', '/v1/wallets/2']);
    expect(await paths('--since', '1h')).toEqual(['/v1/wallets/1', '/v1/wallets/2']);
    expect(await paths('--until', '1h')).toEqual(['/v1/accounts']);
    expect(await paths('--limit', '1')).toEqual(['/v1/accounts']);
    const { records } = JSON.parse((await list('--json', '--after', '0', '--limit', '1')).out);
    expect(records.map(({ path }: { path: string }) => path)).toEqual(['/v1/wallets/1']);
    expect(await paths('--after', String(records[0].position))).toEqual(['/v1/wallets/2', '/v1/accounts']);
    const csv = await list('--csv', '--failed');
    expect(csv.out.split('\r\n').map((line) => line.split(',').slice(4, 8).join())).toEqual([
      'client_id,subject,method,path',
      `${client},,GET,/v1/wallets/1`,
      ",'=1+1,GET,/v1/wallets/2",
      '',
    ]);
    expect((await list('--csv', '--path', '/nowhere')).out).toMatch(/^position,.*\r\n$/);
    for (const [flag, value] of [
      ['--status', '6xx'],
      ['--since', '1 hour'],
      ['--after', 'x'],
    ]) {
      expect(await list(flag ?? '', value ?? '')).toMatchObject({ code: 2, err: expect.stringContaining(flag ?? '') });
    }
    expect(await list('--csv', '--json')).toMatchObject({ code: 2 });
  });
});

describeEmbedded('audit records in the order of their arrival, embedded', () => {
  it('D8-09: are read to the last', async () => {
    await using database = await embeddedDatabase();
    for (const path of ['/1', '/2', '/3']) await insert(database.db, path);
    expect(await pathsBehind(database.db, 1)).toEqual({ paths: ['/2', '/3'], horizon: 3 });
  });
});

describe('a record as CSV', () => {
  it('D8-09: has no cell that a spreadsheet takes for a formula, and keeps every text', () => {
    const cellText = fc.oneof(fc.string({ unit: 'binary' }), fc.stringMatching(/^[=+\-@\t\r;,"\n]{0,8}$/));
    fc.assert(
      fc.property(cellText, (text) => {
        const line = csvRecord(['first', text]);
        const [, quoted, plain = ''] = /^first,(?:"((?:[^"]|"")*)"|([^,"\r\n]*))\r\n$/.exec(line) ?? [line];
        const cell = quoted?.replaceAll('""', '"') ?? plain;
        expect(cell).not.toMatch(/(?:^|[;\t])[=+\-@\t\r]/);
        expect(cell.replaceAll("'", '')).toBe(text.replaceAll("'", ''));
      }),
    );
  });
});

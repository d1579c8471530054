import { describe, expect, it } from 'vitest';
import { MigrationPages } from '../../src/features/user-migrations/migration-files.service.ts';
import { MigrationJobs } from '../../src/features/user-migrations/migration-jobs.service.ts';
import { UserMigrations } from '../../src/features/user-migrations/user-migrations.service.ts';
import { silentLog } from '../../src/lib/log.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { scratchDatabase } from '../support/harness/databases.ts';
import {
  csvOf,
  fileOf,
  filesOn,
  never,
  newNode,
  onCommit,
  oneBatch,
  stateOf,
  work,
} from '../support/user-migrations/files-fixture.ts';

const HEADER = 'wallet_address,email,external_id,name,surname,kyc_sent';
const KNOWN = 'wallet_address, email, external_id, name, surname, kyc_sent';

const database = beforeTests(scratchDatabase);

/** Migrates a file to the end, for a new node. */
async function migrated(content: string | Buffer) {
  const caller = await newNode(database.db);
  const { files, jobs } = filesOn(database.db);
  const { id } = await files.start(caller, fileOf(content));
  expect(await work(jobs)).toBe('finished');
  return { id, caller, files, ...(await stateOf(database.db, caller.nodeId)) };
}

describe('a job', () => {
  it('D7-09: lets the event loop run between two batches, on the embedded database too', async () => {
    const turns: number[] = [];
    let turn = 0;
    let clock = setImmediate(function count() {
      turn += 1;
      clock = setImmediate(count);
    });
    const shared = { db: database.db, log: silentLog, nowMs: Date.now, notify: () => undefined };
    const jobs = new MigrationJobs({
      ...shared,
      userMigrations: new UserMigrations(shared),
      onBatch: () => turns.push(turn),
    });
    await filesOn(database.db).files.start(await newNode(database.db), fileOf(csvOf(1_501)));
    expect(await work(jobs)).toBe('finished');
    clearImmediate(clock);
    expect(turns).toHaveLength(4);
    expect(new Set(turns).size).toBe(4);
  });
});

describe('outcomes of a file', () => {
  it('D7-09: each row has the outcome that it would have in bulk, numbered among the data rows', async () => {
    const rows = [
      '  0xABC  ,Ann@X.Y,e1,Ann,"Lee, ""A""",TRUE',
      '0x2,ANN@x.y,e2,Bob,,',
      '0x3,,e1,Cy,,false',
      '0xabc,dee@x.y,,Dee,,False',
      '0x5,,,Eve,,',
      `${'x'.repeat(129)},f@x.y,,,,`,
      `0x7,${'y'.repeat(513)},,,,`,
      '0x8,g@x.y,,"two\nlines",,true',
    ];
    const { migrations, rows: recorded, users, events, chunks, jobs } = await migrated(`${HEADER}\n${rows.join('\n')}`);
    expect(migrations).toMatchObject([{ status: 'done', total: 8, success: 2, skipped: 4, failed: 2 }]);
    expect(recorded.map(({ index, status, reason }) => [index, status, reason])).toEqual([
      [1, 'created', null],
      [2, 'skipped', 'duplicate_email'],
      [3, 'skipped', 'duplicate_external_id'],
      [4, 'skipped', 'duplicate_wallet'],
      [5, 'skipped', 'missing_email_and_external_id'],
      [6, 'failed', 'wallet_address has more than 128 characters'],
      [7, 'failed', 'email has more than 512 characters'],
      [8, 'created', null],
    ]);
    expect(users).toMatchObject([
      { address: '0xabc', email: 'Ann@X.Y', external_id: 'e1', surname: 'Lee, "A"', kyc_verified: true },
      { address: '0x8', name: 'two\nlines', kyc_token_sent: true },
    ]);
    expect({ events, chunks, jobs }).toEqual({ events: [], chunks: [], jobs: [] });
  });

  it('D7-09 D7-08: each created user has one KYC event, with the correlation id of the upload', async () => {
    const { caller, users, events } = await migrated(csvOf(7, { 3: '0x3,user-3@x.y,Name,true' }));
    const unsent = users.filter((user) => !user.kyc_token_sent).map(({ id }) => id);
    expect(unsent).toHaveLength(6);
    expect(events.map(({ key }) => key).sort()).toEqual(unsent.sort());
    expect(new Set(events.map((event) => event.correlation_id))).toEqual(new Set([caller.correlationId]));
  });

  it('D7-09: outcomes equal those of a bulk request with the same rows', async () => {
    const inputs = Array.from({ length: 300 }, (_, at) => ({
      wallet_address: `0x${at % 97}`,
      email: at % 3 === 0 ? '' : `USER-${at % 89}@x.y`,
      external_id: at % 5 === 0 ? '' : `e-${at % 113}`,
      kyc_sent: at % 7 === 0,
    }));
    const lines = inputs.map((row) => [row.wallet_address, row.email, row.external_id, row.kyc_sent].join(','));
    const file = await migrated(['wallet_address,email,external_id,kyc_sent', ...lines].join('\n'));
    const caller = await newNode(database.db);
    const parts = { db: database.db, log: silentLog, nowMs: Date.now, notify: () => undefined };
    const bulk = await new UserMigrations(parts).migrateMany(caller, inputs);
    const reasons = bulk.rows.map(({ outcome }) => (outcome.status === 'created' ? null : outcome.reason));
    expect(file.rows.map(({ reason }) => reason)).toEqual(reasons);
    expect(file.migrations).toMatchObject([{ total: 300, success: bulk.success, skipped: bulk.skipped }]);
  });

  it.each([
    ['a field too many', '0x2,b@x.y,Lee,true,x', 'line 2: has 5 fields, not 4'],
    ['a blank wallet', '  ,b@x.y,Bob,', 'line 2: wallet_address must not be blank'],
    ['U+0000 in the wallet', '0\0x,b@x.y,Bob,', 'line 2: wallet_address must not contain U+0000'],
    ['kyc_sent that is neither true nor false', '0x2,b@x.y,Bob,yes', 'line 2: kyc_sent must be true or false'],
    ['bytes that are not UTF-8', Buffer.from('0x2,b@x.y,B\xf6b,', 'latin1'), 'line 2: is not UTF-8'],
  ])(
    'D7-09: a line with %s is a failed row with its line number, and the other rows are applied',
    async (_name, line, reason) => {
      const before = Buffer.from('wallet_address,email,name,kyc_sent\n0x1,a@x.y,Ann,\n');
      const after = Buffer.from('\n0x3,c@x.y,Cy,\n');
      const { migrations, rows, users } = await migrated(Buffer.concat([before, Buffer.from(line), after]));
      expect(migrations).toMatchObject([{ status: 'done', total: 3, success: 2, skipped: 0, failed: 1 }]);
      expect(rows).toMatchObject([{ status: 'created' }, { index: 2, status: 'failed' }, { status: 'created' }]);
      expect(rows[1]?.reason?.startsWith(reason)).toBe(true);
      expect(users.map(({ address }) => address)).toEqual(['0x1', '0x3']);
    },
  );

  it.each([
    ['camelCase, in any order', 'kycSent,externalId,walletAddress\ntrue,e,0x1\n'],
    ['a byte order mark and CRLF', '\ufeffwallet_address,external_id,kyc_sent\r\n0x1,e,true\r\n'],
  ])('D7-09: a file may have %s', async (_name, content) => {
    const { migrations, users } = await migrated(content);
    expect(migrations).toMatchObject([{ total: 1, success: 1 }]);
    expect(users).toMatchObject([{ address: '0x1', external_id: 'e', kyc_token_sent: true }]);
  });

  it('D7-09: a file with only a header is done, with no rows', async () => {
    expect((await migrated('wallet_address,email\n')).migrations).toMatchObject([{ status: 'done', total: 0 }]);
  });
});

describe('a rejected file', () => {
  it.each([
    ['nothing', '', `is empty: its first line must name the columns, ${KNOWN}`],
    ['empty lines alone', '\n\r\n', 'is empty'],
    ['no wallet_address', 'email,name\na,b\n', 'lacks the column wallet_address: add it'],
    ['an unknown column', 'wallet_address,phone\n', `has the unknown column "phone": use any of ${KNOWN}`],
    ['a column twice', 'wallet_address,email,walletAddress\n', 'has the column wallet_address twice: name it once'],
    ['a header with an open quote', '"wallet_address,email\n', 'has a header that has a quote that is not closed'],
    ['no line end for long', 'x'.repeat(600_000), 'has a header that has more than 16 KiB'],
  ])('D7-09: a file with %s is rejected with the reason, and nothing is stored', async (_name, content, message) => {
    const caller = await newNode(database.db);
    const { files } = filesOn(database.db);
    await expect(files.start(caller, fileOf(content, 100_000))).rejects.toMatchObject({
      code: 'invalid_input',
      details: { issues: [{ path: 'file', message: expect.stringContaining(message) }] },
    });
    const { migrations, chunks } = await stateOf(database.db, caller.nodeId);
    expect({ migrations, chunks }).toEqual({ migrations: [], chunks: [] });
  });

  it('D7-09: an interrupted upload stores nothing', async () => {
    const caller = await newNode(database.db);
    const { files } = filesOn(database.db);
    async function* broken() {
      yield* fileOf(csvOf(20_000), 65_536);
      throw new Error('gone');
    }
    await expect(files.start(caller, broken())).rejects.toThrow('gone');
    const { migrations, chunks } = await stateOf(database.db, caller.nodeId);
    expect({ migrations, chunks }).toEqual({ migrations: [], chunks: [] });
  });
});

describe('a running migration', () => {
  it('D7-09: its progress has the total from the start, and the counters of applied rows', async () => {
    const caller = await newNode(database.db);
    const { files, jobs } = filesOn(database.db);
    const { id } = await files.start(caller, fileOf(csvOf(1_200, { 5: '0x5,a,b,c,d', 900: '0x1,again@x.y,,' })));
    expect(await files.progress(caller.nodeId, id)).toMatchObject({ processed: 0, total: 1_200, done: false });
    expect(await oneBatch(database.db)).toBe('more');
    expect(await files.progress(caller.nodeId, id)).toMatchObject({
      migration: { status: 'running', success: 499, skipped: 0, failed: 1, finished_at: null },
      processed: 500,
      total: 1_200,
      done: false,
    });
    await work(jobs);
    const ended = await files.progress(caller.nodeId, id);
    expect(ended).toMatchObject({ processed: 1_200, total: 1_200, done: true });
    expect(ended?.migration).toMatchObject({ status: 'done', success: 1_198, skipped: 1, failed: 1 });
    expect(ended?.migration.finished_at).not.toBeNull();
    const [failure] = await new MigrationPages(database.db).failures(caller.nodeId, id, 10);
    expect(failure).toMatchObject({ index: 5, reason: 'line 5: has 5 fields, not 4' });
    expect(await files.progress(caller.nodeId, caller.nodeId)).toBeUndefined();
    expect(await files.progress((await newNode(database.db)).nodeId, id)).toBeUndefined();
  });

  it('D7-09: once cancelled, it stops before the next batch; applied rows stay, and the file is deleted', async () => {
    const caller = await newNode(database.db);
    const { files, jobs } = filesOn(database.db);
    const { id } = await files.start(caller, fileOf(csvOf(1_200)));
    await oneBatch(database.db);
    const cancelled = await files.cancel(caller.nodeId, id);
    expect(cancelled).toMatchObject({ status: 'cancelled', total: 1_200, success: 500 });
    expect(await files.cancel(caller.nodeId, id)).toEqual(cancelled);
    expect(await work(jobs)).toBe('none');
    const { users, rows, chunks, jobs: left } = await stateOf(database.db, caller.nodeId);
    expect([users.length, rows.length, chunks.length, left.length]).toEqual([500, 500, 0, 0]);
  });

  it('D7-09: only a running migration of the node can be cancelled', async () => {
    const { id, caller, files } = await migrated(csvOf(1));
    const other = await newNode(database.db);
    await expect(files.cancel(caller.nodeId, id)).rejects.toMatchObject({
      code: 'precondition_failed',
      message: 'the migration has already finished: it is done',
    });
    for (const missing of [id, other.nodeId, 'x']) {
      await expect(files.cancel(other.nodeId, missing)).rejects.toMatchObject({ code: 'not_found' });
    }
  });

  it('D7-09: files take turns, so a small one does not wait for the end of a large one', async () => {
    const [large, small] = [await newNode(database.db), await newNode(database.db)];
    const { files, jobs } = filesOn(database.db);
    const first = await files.start(large, fileOf(csvOf(11_000), 65_536));
    const second = await files.start(small, fileOf(csvOf(3)));
    expect(await jobs.iterate(never)).toBe('more');
    expect(await jobs.iterate(never)).toBe('finished');
    expect(await files.progress(large.nodeId, first.id)).toMatchObject({ processed: 10_000, done: false });
    expect(await files.progress(small.nodeId, second.id)).toMatchObject({ processed: 3, done: true });
    expect(await work(jobs)).toBe('finished');
  });

  it('D7-09: an error that repeats at one row ends the migration as failed, and is logged', async () => {
    const caller = await newNode(database.db);
    const logged: unknown[] = [];
    const log = {
      ...silentLog,
      warn: (fields: object) => void logged.push(fields),
      error: (fields: object) => void logged.push(fields),
    };
    let nowMs = Date.now();
    let commits = 0;
    // The first of each turn is the batch's, the second tells of the fault.
    const faulty = onCommit(database.db, () => {
      commits += 1;
      if (commits % 2 === 1) throw new TypeError('a bug');
    });
    const { files, jobs } = filesOn(database.db, { nowMs: () => nowMs });
    const { id } = await files.start(caller, fileOf(csvOf(700)));
    await oneBatch(database.db, () => nowMs);
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      expect(await files.progress(caller.nodeId, id)).toMatchObject({ done: false });
      expect(await filesOn(faulty, { log, nowMs: () => nowMs }).jobs.iterate(never)).toBe('yielded');
      nowMs += 1_000;
    }
    expect((await files.progress(caller.nodeId, id))?.migration).toMatchObject({ status: 'failed', success: 500 });
    expect(logged).toMatchObject(Array(3).fill({ correlation_id: caller.correlationId, migration_id: id, row: 501 }));
    expect(await work(jobs)).toBe('none');
    expect((await stateOf(database.db, caller.nodeId)).chunks).toEqual([]);
  });

  it('D7-09: parts of an unfinished upload are deleted after a day, and files in use are kept', async () => {
    const caller = await newNode(database.db);
    const { files } = filesOn(database.db, { nowMs: () => Date.now() - 25 * 3_600_000 });
    const kept = await files.start(caller, fileOf(csvOf(3)));
    const values = (hours: number) => ({
      migration_id: caller.nodeId,
      seq: hours,
      bytes: Buffer.from('x'),
      created_at: new Date(Date.now() - hours * 3_600_000).toISOString(),
    });
    await database.db
      .forNode(caller.nodeId)
      .run((k) => k.insertInto('migration_files').values([values(23), values(25)]));
    await filesOn(database.db).jobs.deleteAbandoned();
    const { chunks } = await stateOf(database.db, caller.nodeId);
    expect(chunks.map((chunk) => chunk.seq).sort()).toEqual([0, 23]);
    await files.cancel(caller.nodeId, kept.id);
  });
});

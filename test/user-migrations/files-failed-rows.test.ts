import { describe, expect, inject, it } from 'vitest';
import { UserMigrations } from '../../src/features/user-migrations/user-migrations.service.ts';
import { silentLog } from '../../src/lib/log.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { scratchDatabase } from '../support/harness/databases.ts';
import { fileOf, filesOn, newNode, oneBatch, stateOf, work } from '../support/user-migrations/files-fixture.ts';
import { steppedDb } from '../support/user-migrations/stepped-db.ts';

const HEADER = 'wallet_address,email\n';
const GOOD = 10;
const LINES = 30_000;
const MISSING = 3_300;
const AFTER_LEASE_MS = 11_000;
/** From one interrupted step to the next one that is. */
const STRIDE = inject('isThorough') ? 1 : 3;
/**
 * Users, and then 120 KB of lines that are none: half of the rows that fit have no identifier. There is one user among
 * the first ones that do not fit.
 */
const ATTACK = [
  HEADER,
  ...Array.from({ length: GOOD }, (_, at) => `0x${at},user-${at}@x.y\n`),
  'abc\n'.repeat(MISSING),
  'a,b,c\n'.repeat(6_600 - MISSING),
  '0xlate,late@x.y\n',
  'abc\n'.repeat(LINES - 6_601),
].join('');
/** The batches that fit into 1 MB: 13 of 500 rows, 149 bytes each. */
const APPLIED = 6_500;
const REASON = `line ${APPLIED + 1}: the migration stopped here: its failed rows and rows without an identifier would take more than 10 times the bytes read of the file`;

const database = beforeTests(scratchDatabase);

/** That a node has what the attack may leave, and nothing else. */
async function expectEnded(nodeId: string): Promise<void> {
  const { migrations, rows, users, events, chunks, jobs } = await stateOf(database.db, nodeId);
  const failed = APPLIED - GOOD - MISSING + 1;
  const counts = { total: GOOD + LINES, success: GOOD, skipped: MISSING, failed };
  expect(migrations).toMatchObject([{ status: 'failed', ...counts }]);
  expect(migrations[0]?.finished_at).not.toBeNull();
  expect(users).toHaveLength(GOOD);
  expect(events).toHaveLength(GOOD);
  expect(rows.map(({ index }) => index)).toEqual(Array.from({ length: APPLIED + 1 }, (_, at) => at + 1));
  expect(rows.filter(({ status }) => status === 'created')).toHaveLength(GOOD);
  expect(rows.at(-2)).toMatchObject({ status: 'failed', reason: `line ${APPLIED}: has 3 fields, not 2` });
  expect(rows.at(-1)).toMatchObject({ status: 'failed', reason: REASON, email: null, user_id: null });
  expect({ chunks, jobs }).toEqual({ chunks: [], jobs: [] });
}

describe('a file whose failed rows would take much more space than the file', () => {
  it('a file over the limit stops there: applied rows stay, and the last row and the log give the reason', async () => {
    const caller = await newNode(database.db);
    const logged: unknown[] = [];
    const warn = (fields: object, message?: string) => void logged.push([fields, message]);
    const { files, jobs } = filesOn(database.db, { log: { ...silentLog, warn } });
    const { id } = await files.start(caller, fileOf(ATTACK, 65_536));
    expect(await work(jobs)).toBe('finished');
    await expectEnded(caller.nodeId);
    expect(await files.progress(caller.nodeId, id)).toMatchObject({ processed: APPLIED + 1, done: true });
    const fields = { correlation_id: caller.correlationId, migration_id: id, row: APPLIED + 1 };
    expect(logged).toEqual([
      [
        fields,
        'migration failed: its failed rows and rows without an identifier would take over 10 times the bytes read',
      ],
    ]);
    expect(await work(jobs)).toBe('none');
  });

  it('D7-09: a file stops at the same row when another process continues after each batch', async () => {
    const caller = await newNode(database.db);
    await filesOn(database.db).files.start(caller, fileOf(ATTACK, 65_536));
    while ((await oneBatch(database.db)) === 'more');
    await expectEnded(caller.nodeId);
  });

  it('D7-09: a file stops at the same row when its end is interrupted at any statement or commit', async () => {
    const caller = await newNode(database.db);
    await filesOn(database.db).files.start(caller, fileOf(ATTACK, 65_536));
    for (let batch = 0; batch < APPLIED / 500; batch += 1) await oneBatch(database.db);
    let nowMs = Date.now();
    let cuts = 0;
    for (let isCut = true; isCut; cuts += STRIDE) {
      isCut = false;
      let step = 0;
      const cutting = steppedDb(database.db, () => {
        step += 1;
        if (step <= cuts + 1) return;
        isCut = true;
        throw new Error('Connection terminated unexpectedly');
      });
      nowMs += AFTER_LEASE_MS;
      await work(filesOn(cutting, { nowMs: () => nowMs }).jobs).catch(() => undefined);
      if (isCut) {
        const { migrations, rows } = await stateOf(database.db, caller.nodeId);
        expect(migrations).toMatchObject([{ status: 'running', failed: APPLIED - GOOD - MISSING }]);
        expect(rows).toHaveLength(APPLIED);
      }
    }
    expect(cuts).toBeGreaterThan(5);
    await expectEnded(caller.nodeId);
  });
});

describe('a file that is applied completely', () => {
  it.each([
    ['1 MB of failed rows at most', 'a,b,c\n'.repeat(6_600), 'failed'],
    ['1 MB of rows without an identifier at most', 'abc\n'.repeat(6_600), 'skipped'],
    ['failed rows of 24 bytes, any number', 'a"b, user-1@example.org\n'.repeat(9_000), 'failed'],
    ['existing users, any number', '0x1,a@x.y\n'.repeat(9_000), 'skipped'],
  ])('a file may have %s', async (_name, lines, outcome) => {
    const caller = await newNode(database.db);
    const { files, jobs } = filesOn(database.db);
    await new UserMigrations({ db: database.db, log: silentLog, nowMs: Date.now, notify: () => undefined }).migrateOne(
      caller,
      { wallet_address: '0x1', email: 'a@x.y', kyc_sent: false },
    );
    await files.start(caller, fileOf(`${HEADER}${lines}`, 65_536));
    expect(await work(jobs)).toBe('finished');
    const rows = lines.split('\n').length - 1;
    const { migrations } = await stateOf(database.db, caller.nodeId);
    expect(migrations).toMatchObject([{ success: 1 }, { status: 'done', total: rows, [outcome]: rows }]);
  });
});

import fc from 'fast-check';
import { expect, inject, it, vi } from 'vitest';
import { silentLog } from '../../src/lib/log.ts';
import { openDatabase } from '../../src/platform/database/open-database.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { withPostgres } from '../support/services/pg-client.ts';
import { describeReal, serviceAddress } from '../support/services/real.ts';
import { csvOf, fileOf, filesOn, never, newNode, stateOf, work } from '../support/user-migrations/files-fixture.ts';
import { steppedDb } from '../support/user-migrations/stepped-db.ts';

// Commits wait for disks, on machines that are busy with other tests.
const AFTER_LEASE_MS = 11_000;
const ROWS = 1_250;
/** Three batches, with duplicates across them, faults, and a record over two lines. */
const FILE = csvOf(ROWS, {
  3: 'b"ad',
  490: '0x490,user-490@x.y,"two\nlines",true',
  700: '0x700,USER-1@x.y,Again,',
  900: '0x900,c@x.y,"open,',
  1100: '0x3,free@x.y,Name,',
  1200: '0x1,d@x.y,Name,',
});
const COUNTS = { total: ROWS, success: ROWS - 4, skipped: 2, failed: 2 };

describeReal('postgres', 'files that are taken up again, on PostgreSQL', () => {
  const database = beforeTests(realDatabase);
  const replica = beforeTests(() => openDatabase({ url: database.url }));

  /** That each row was applied once, whoever did it. */
  const expectAll = async (nodeId: string) => {
    const { migrations, rows, users, events, chunks, jobs } = await stateOf(database.db, nodeId);
    expect(migrations).toMatchObject([{ status: 'done', ...COUNTS }]);
    expect(rows.map(({ index }) => index)).toEqual(Array.from({ length: ROWS }, (_, at) => at + 1));
    const created = rows.flatMap(({ user_id: id }) => id ?? []);
    expect(users.map(({ id }) => id).sort()).toEqual(created.sort());
    const unsent = users.filter((user) => !user.kyc_token_sent).map(({ id }) => id);
    expect(events.map(({ key }) => key).sort()).toEqual(unsent.sort());
    expect(unsent).toHaveLength(COUNTS.success - 1);
    expect({ chunks, jobs }).toEqual({ chunks: [], jobs: [] });
    return rows.map(({ status, reason }) => [status, reason]);
  };

  it('D7-09: interrupted at any statements and commits, a file ends with the same outcomes', async () => {
    const whole = await newNode(database.db);
    await filesOn(database.db).files.start(whole, fileOf(FILE));
    let steps = 0;
    const counting = steppedDb(database.db, () => {
      steps += 1;
    });
    await work(filesOn(counting).jobs);
    const outcomes = await expectAll(whole.nodeId);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: steps }), { minLength: 1, maxLength: 4 }), async (cuts) => {
        const caller = await newNode(database.db);
        await filesOn(database.db).files.start(caller, fileOf(FILE));
        let nowMs = Date.now();
        for (const cut of cuts) {
          let step = 0;
          const db = steppedDb(database.db, () => {
            step += 1;
            if (step === cut) throw new Error('Connection terminated unexpectedly');
          });
          await work(filesOn(db, { nowMs: () => nowMs }).jobs).catch(() => undefined);
          nowMs += AFTER_LEASE_MS;
        }
        await work(filesOn(database.db, { nowMs: () => nowMs }).jobs);
        expect(await expectAll(caller.nodeId)).toEqual(outcomes);
      }),
      { numRuns: inject('isThorough') ? 12 : 3 },
    );
  });

  it('D7-09: two processes that take over the job from each other apply each row once', async () => {
    const caller = await newNode(database.db);
    const { id } = await filesOn(database.db).files.start(caller, fileOf(FILE));
    const runners = [database, replica].map(({ db }) => filesOn(db).jobs);
    const turns = { taken: 0 };
    await Promise.all(
      runners.map(async (jobs) => {
        for (let end = await jobs.iterate(never, { id, isForced: true }); ; ) {
          if (end === 'yielded') turns.taken += 1;
          const { jobs: left } = await stateOf(database.db, caller.nodeId);
          if (left.length === 0) return;
          end = await jobs.iterate(never, { id, isForced: true });
        }
      }),
    );
    await expectAll(caller.nodeId);
  });

  it('D7-09: a leased job is not taken over until the lease ends, unless it is forced', async () => {
    const caller = await newNode(database.db);
    const first = filesOn(database.db);
    const { id } = await first.files.start(caller, fileOf(FILE), { lease: () => first.jobs.lease() });
    const wanted = { id, isForced: false };
    expect(await filesOn(replica.db).jobs.iterate(never)).toBe('none');
    expect(await filesOn(replica.db).jobs.iterate(never, wanted)).toBe('none');
    const later = filesOn(replica.db, { nowMs: () => Date.now() + AFTER_LEASE_MS });
    expect(await later.jobs.iterate(never, wanted)).toBe('finished');
    expect(await first.jobs.iterate(never, wanted)).toBe('none');
    await expectAll(caller.nodeId);
  });

  it('D7-09: while PostgreSQL is unavailable the job waits, and then continues where it was', async () => {
    const caller = await newNode(database.db);
    const logged: string[] = [];
    const tell = (_fields: object, message: string) => void logged.push(message);
    let batches = 0;
    const pausing = steppedDb(replica.db, async (what) => {
      if (what !== 'commit') return;
      batches += 1;
      if (batches === 2) await outage();
    });
    const name = new URL(database.url).pathname.slice(1);
    const sql = (text: string) => withPostgres(serviceAddress('postgres'), (client) => client.query(text));
    const outage = async () => {
      await sql(`alter database ${name} allow_connections false`);
      await sql(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
      const noticed = vi.waitFor(() => expect(logged).not.toEqual([]));
      void noticed.then(() => sql(`alter database ${name} allow_connections true`));
    };
    const { files } = filesOn(database.db);
    const { id } = await files.start(caller, fileOf(FILE));
    const { jobs } = filesOn(pausing, { log: { ...silentLog, warn: tell, error: tell } });
    jobs.start();
    await vi.waitFor(() => expect(logged).toEqual(['file migrations paused; database unavailable']));
    await vi.waitFor(async () => expect(await files.progress(caller.nodeId, id)).toMatchObject({ done: true }), {
      interval: 250,
    });
    await jobs.stop();
    await expectAll(caller.nodeId);
  });
});

import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { MAX_WAITING_CHUNKS } from '../../src/features/user-migrations/migrations.store.ts';
import { openDatabase } from '../../src/platform/database/open-database.ts';
import { Refusal } from '../../src/platform/errors.ts';
import { beforeTests } from '../support/harness/before-tests.ts';
import { realDatabase } from '../support/harness/databases.ts';
import { describeReal } from '../support/services/real.ts';
import { csvOf, fileOf, filesOn, newNode, stateOf } from '../support/user-migrations/files-fixture.ts';

describeReal('postgres', 'files that wait', () => {
  const database = beforeTests(realDatabase);
  const replica = beforeTests(() => openDatabase({ url: database.url }));

  /** A caller for a node whose files may have so many more chunks. */
  async function nodeWithRoomFor(chunks: number) {
    const caller = await newNode(database.db);
    await database.db.unscoped('test').raw(
      (sql) => sql`
        insert into migration_files (migration_id, seq, node_id, bytes, created_at)
        select ${randomUUID()}::uuid, seq, ${caller.nodeId}::uuid, '', now()
        from generate_series(1, ${MAX_WAITING_CHUNKS - chunks}::integer) seq`,
    );
    return caller;
  }
  const chunksOf = async (nodeId: string) => (await stateOf(database.db, nodeId)).chunks.length;
  const refusal = expect.objectContaining({
    code: 'precondition_failed',
    message: expect.stringMatching(/4 GiB: wait .* or cancel/),
  });

  it('DG-09: concurrent uploads to two processes store at most 4 GiB for a tenant', async () => {
    const caller = await nodeWithRoomFor(5);
    const processes = [filesOn(database.db), filesOn(replica.db)];
    const uploads = Array.from({ length: 12 }, (_, at) => processes[at % 2]?.files.start(caller, fileOf(csvOf(3))));
    const outcomes = await Promise.allSettled(uploads);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(5);
    const reasons = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
    expect(reasons).toEqual(Array(7).fill(refusal));
    expect(await chunksOf(caller.nodeId)).toBe(MAX_WAITING_CHUNKS);
  });

  it('DG-09: a file that exceeds the limit is rejected during the upload, and nothing of it is stored', async () => {
    const caller = await nodeWithRoomFor(2);
    let sent = 0;
    async function* endless() {
      for (; sent < 100; sent += 1) yield Buffer.from(csvOf(10_000));
    }
    await expect(filesOn(database.db).files.start(caller, endless())).rejects.toThrow(Refusal);
    expect(sent).toBeLessThan(10);
    expect(await chunksOf(caller.nodeId)).toBe(MAX_WAITING_CHUNKS - 2);
  });

  it('DG-09: a cancelled migration frees its space; other tenants and the command line have separate limits', async () => {
    const caller = await nodeWithRoomFor(1);
    const { files, jobs } = filesOn(database.db);
    const { id } = await files.start(caller, fileOf(csvOf(1)));
    const another = () => files.start(caller, fileOf(csvOf(1)));
    await expect(another()).rejects.toThrow(Refusal);
    await files.start(await newNode(database.db), fileOf(csvOf(1)));
    await files.start(caller, fileOf(csvOf(1)), { lease: () => jobs.lease() });
    await files.cancel(caller.nodeId, id);
    await expect(another()).rejects.toThrow(Refusal);
    const [job] = (await stateOf(database.db, caller.nodeId)).jobs;
    await files.cancel(caller.nodeId, job?.migration_id ?? '');
    expect(await another()).toMatchObject({ status: 'running' });
  });
});

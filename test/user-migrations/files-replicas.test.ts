import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type Portcullis, startOnRealServers, startReplica } from '../support/harness.ts';
import { describeReal } from '../support/services/real.ts';
import { csvOf, fileOf, stateOf } from '../support/user-migrations/files-fixture.ts';

// Commits wait for disks, on machines that are busy with other tests.
const ROWS = 1_100;

describeReal(['postgres', 'redis', 'kafka'], 'files between replicas', () => {
  let worker: Portcullis;
  let gateway: Portcullis;
  beforeAll(async () => {
    worker = await startOnRealServers();
    gateway = await startReplica(worker, { env: { PORTCULLIS_ROLE: 'gateway' } });
  });
  afterAll(async () => {
    await gateway?.[Symbol.asyncDispose]();
    await worker?.[Symbol.asyncDispose]();
  });

  it('D7-09: a file uploaded to one replica is applied by another, and its events are published', async () => {
    const { migrationFiles, database } = gateway.service.context;
    const caller = { nodeId: gateway.demo.node_id, subject: 'ann', correlationId: 'upload' };
    const { id } = await migrationFiles.start(caller, fileOf(csvOf(ROWS)));
    await vi.waitFor(
      async () => expect(await migrationFiles.progress(caller.nodeId, id)).toMatchObject({ done: true }),
      { interval: 100 },
    );
    const ended = await migrationFiles.progress(caller.nodeId, id);
    expect(ended).toMatchObject({ processed: ROWS, migration: { status: 'done', success: ROWS, created_by: 'ann' } });
    expect((await stateOf(database.db, caller.nodeId)).chunks).toEqual([]);
    await vi.waitFor(async () => expect((await stateOf(database.db, caller.nodeId)).events).toEqual([]), {
      interval: 250,
    });
  });
});

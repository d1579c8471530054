import { expect, it } from 'vitest';
import { changingFile, hangUp, tableText } from '../support/gateway/reloaded.ts';
import { startOnRealServers } from '../support/harness.ts';
import { describeReal } from '../support/services/real.ts';
import { emptyFolder } from '../support/start/folders.ts';
import { printed, spawnInstance } from '../support/start/process.ts';

/** The shipped table and one more public endpoint, which no handler has: 503 where it is registered. */
function tableWith(path: string): string {
  return tableText({ endpoints: [{ methods: ['GET'], path, services: ['integration'], visibility: 'public' }] });
}

describeReal(['postgres', 'redis', 'kafka'], 'on shared stores', () => {
  it('a gateway takes the file when it is told to; a worker says that it has no gateway, and goes on', async () => {
    await using file = await changingFile(tableWith('/before'));
    const env = { PORTCULLIS_ROLE: 'gateway', GATEWAY_CONFIG: file.path };
    await using gateway = await startOnRealServers({ env });
    await using spool = await emptyFolder();
    await using worker = spawnInstance({ ...gateway.env, PORTCULLIS_ROLE: 'worker', AUDIT_SPOOL_DIR: spool.path });
    await printed(worker, /"msg":"started"/);
    await file.replace(tableWith('/after'));
    await gateway.service.reload();
    const statuses = ['/before', '/after'].map(async (path) => (await gateway.call('GET', path)).status);
    expect(await Promise.all(statuses)).toEqual([404, 503]);
    hangUp(worker);
    await printed(worker, /"level":"info".*nothing to reload: this process is not a gateway/);
    process.kill(worker.pid, 'SIGTERM');
    expect(await worker.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  });
});
